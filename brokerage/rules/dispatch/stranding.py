"""Jobs that wait at a queue where they cannot start (decisions C7, D18).

Pure. Here: what is known of a queue, and when its jobs stop counting as queued and when they are closed to be brokered anew. Not
here: who counts (`brokerage.queries.stranded_jobs`) and who closes them (`brokerage.ledger.expiry`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from brokerage.rules.dispatch.timeouts import QueueFacts, suspended
from brokerage.rules.facts.queue_names import names_in
from brokerage.rules.grid.queue_columns import Switches

HANDS_OUT = frozenset({"online", "brokeroff", "test"})
"""A queue of another status gives its pilots no jobs."""


@dataclass(frozen=True, slots=True)
class QueueService:
    """How a queue with jobs serves them.

    `status_s`: seconds since it has its status. `silent_s`: seconds since a pilot was seen, or, where none ever was, since the
    oldest job there stands as it does. `workers`: batch workers that are reported.
    """

    id: int
    name: str
    status: str = "online"
    storage_down: bool = False
    catchall: str = ""
    params: Mapping[str, Any] | None = None
    status_s: float = 0.0
    silent_s: float = 0.0
    workers: int = 0

    def silent(self, limit_s: float) -> bool:
        """Whether no pilot has been seen for so long, though jobs wait for one and nobody reports batch workers."""
        alone = not self.workers and not Switches(self.catchall, self.params).on("allow_no_pilot")
        return alone and self.silent_s > limit_s

    def starts_none(self, dead_s: float) -> bool:
        """Whether jobs that wait here cannot start: nothing is handed out, or no pilot was seen for `dead_s`."""
        return self.storage_down or self.status not in HANDS_OUT or self.silent(dead_s)

    def left(self, stopped_s: float, dead_s: float) -> str:
        """Why the jobs that wait here are to run elsewhere; empty where they stay.

        `stopped_s`, `dead_s`: how long the queue may hand nothing out, and be without pilots. Nothing is closed at a queue where
        timeout rules are suspended (decision D4), or for a storage that is down, which is waited for.
        """
        if suspended(QueueFacts(self.status, self.catchall)):
            return ""
        if self.status not in HANDS_OUT and self.status_s > stopped_s:
            return f"{self.name} has been {self.status} for {_lasting(self.status_s)}"
        if self.silent(dead_s):
            return f"no pilot of {self.name} was seen for {_lasting(self.silent_s)}"
        return ""


def names_place(places: Collection[str], site: str, included: Iterable[str]) -> bool:
    """Whether a task says by name that its jobs run at a queue: in `site`, a comma list, or in includedSite.

    `places`: the names of the queue and of its site. A task that says in `site` where it runs would not go elsewhere.
    """
    return bool(names_in(site)) or any(name in places for name in included)


def _lasting(seconds: float) -> str:
    """A time of hours or minutes, or less."""
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
