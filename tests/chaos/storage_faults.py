"""What is done to storage endpoints while jobs run: their roots go away for a while, in the ways in which mounts do."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from brokerage.pilot.storage_root import MARKER
from tests.chaos.campaign import QUEUES, Campaign, endpoint
from tests.chaos.history import History, wall_time


@dataclass(frozen=True, slots=True)
class Outage:
    """A root that is away: the folder, until when, and how it comes back."""

    root: Path
    until: float
    restore: Callable[[], None]


@dataclass(slots=True)
class StorageFaults:
    """The outages of one run, one at a time. `written`: what was found where a root ought to be, which must be nothing."""

    campaign: Campaign
    history: History
    dice: random.Random
    kinds: list[str]
    done: Counter[str] = field(default_factory=Counter)
    written: list[str] = field(default_factory=list)
    last_at: float = field(default_factory=time.monotonic)
    _outage: Outage | None = None

    @classmethod
    def planned(cls, campaign: Campaign, history: History, times: int) -> StorageFaults:
        """Each way so many times, in the order that the seed gives."""
        dice = random.Random(campaign.seed)
        kinds = [kind for kind in WAYS for _ in range(times)]
        dice.shuffle(kinds)
        return cls(campaign, history, dice, kinds)

    @property
    def over(self) -> bool:
        """Whether every outage has been and is over."""
        return not self.kinds and self._outage is None

    def inject(self) -> None:
        """Begin the next outage, once the last one is over."""
        if self._outage is not None or not self.kinds:
            return
        kind = self.kinds.pop(0)
        root = self.campaign.storage / endpoint(self.dice.choice(list(QUEUES)))
        restore = WAYS[kind](self, root)
        self._outage, self.last_at = Outage(root, time.monotonic() + self.campaign.outage_s, restore), time.monotonic()
        self.done[kind] += 1
        self.history.add("fault", f"storage {kind}", root=root.name, sent=wall_time())

    def tend(self) -> None:
        """End the outage whose time is over."""
        if self._outage is not None and time.monotonic() >= self._outage.until:
            self.restore()

    def restore(self) -> None:
        """End the outage that is going on."""
        if self._outage is not None:
            self._outage.restore()
            self.history.add("fault", "storage back", root=self._outage.root.name, sent=wall_time())
            self._outage, self.last_at = None, time.monotonic()

    def moved_away(self, root: Path) -> Callable[[], None]:
        """Nothing is left in its place."""
        away = root.with_name(f"{root.name}.away")
        root.rename(away)

        def restore() -> None:
            if root.exists():
                self.written += [str(path) for path in (root, *root.rglob("*"))]
                root.rename(root.with_name(f"{root.name}.made"))
            away.rename(root)

        return restore

    def unmounted(self, root: Path) -> Callable[[], None]:
        """The bare mount point is left."""
        back = self.moved_away(root)
        root.mkdir()

        def restore() -> None:
            if not any(root.iterdir()):
                root.rmdir()
            back()

        return restore

    def a_plain_file_in_its_place(self, root: Path) -> Callable[[], None]:
        """Somebody wrote a file there."""
        back = self.moved_away(root)
        root.write_text("not a folder\n", encoding="ascii")

        def restore() -> None:
            root.unlink()
            back()

        return restore

    def unreadable(self, root: Path) -> Callable[[], None]:
        """Its mark cannot be read, whoever tries."""
        marker, kept = root / MARKER, root / f"{MARKER}.kept"
        marker.rename(kept)
        marker.mkdir()

        def restore() -> None:
            marker.rmdir()
            kept.rename(marker)

        return restore


WAYS: Mapping[str, Callable[[StorageFaults, Path], Callable[[], None]]] = {
    "moved away": StorageFaults.moved_away,
    "unmounted": StorageFaults.unmounted,
    "replaced by a file": StorageFaults.a_plain_file_in_its_place,
    "unreadable": StorageFaults.unreadable,
}
