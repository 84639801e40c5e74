"""The sleepers of a run: pilots that stop themselves before they report, and are continued when others have done their work."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from broker_site.roof.supervisor import System
from broker_site.roof.supervisor.child import Child, Spec
from tests.chaos.campaign import Campaign
from tests.chaos.history import History, wall_time
from tests.chaos.watching import Watch

AWAITED = {"ALPHA": ("used",), "BETA": ("live", "used")}
"""Where a sleeper works, one each, and what it waits for: that others have used its inputs, or that they are about to."""
PATIENCE_S = 15.0
"""How long a sleeper waits for that at most, once its job was given up."""
MODULE = "tests.chaos.sleeper"


@dataclass(slots=True)
class Asleep:
    """A sleeper that stands still before the report of a job."""

    pid: int
    job: int
    given_up_at: float | None = None


class Sleepers:
    """Continues each sleeper after its lease, when its report comes too late."""

    def __init__(self, system: System, campaign: Campaign, history: History, watch: Watch) -> None:
        self._system, self._campaign, self._history, self._watch = system, campaign, history, watch
        self.asleep: dict[str, Asleep] = {}
        self.late = 0
        self.last_at = 0.0

    def start(self) -> None:
        """Add the sleepers to the system, beside its pilots."""
        for queue in AWAITED:
            pilot = self._system.children[f"pilot-{queue}-0"].spec
            work = self._campaign.folder / "work" / queue / "sleeper"
            work.mkdir(parents=True, exist_ok=True)
            given = [MODULE if word == "brokerage.pilot" else word for word in pilot.command]
            command = _replaced(given, {"--slot": f"{queue}-sleeper", "--work": str(work)})
            self._system.supervisor.add(Spec(f"sleeper-{queue}", tuple(command), pilot.environment, pilot.folder))

    def tend(self) -> None:
        """Notice who has fallen asleep, wake who has slept too long."""
        for slot, pid in self._stopped():
            if slot not in self.asleep:
                job = self._watch.held_by(slot)
                if job is None:
                    continue
                self.asleep[slot] = Asleep(pid, job)
            self._look(slot, self.asleep[slot])

    def wake(self) -> None:
        """Continue all, whatever has become of their jobs."""
        for slot, pid in self._stopped():
            self._continue(slot, pid)

    def _look(self, slot: str, asleep: Asleep) -> None:
        ended, replaced = self._watch.over(asleep.job, AWAITED[slot.partition("-")[0]])
        if not ended:
            return
        asleep.given_up_at = asleep.given_up_at or time.monotonic()
        if replaced or time.monotonic() > asleep.given_up_at + PATIENCE_S:
            self.late += 1
            self._continue(slot, asleep.pid, job=asleep.job, replaced=replaced)

    def _continue(self, slot: str, pid: int, **facts: object) -> None:
        self.asleep.pop(slot, None)
        self.last_at = time.monotonic()
        self._history.add("fault", "continue sleeper", slot=slot, pid=pid, sent=wall_time(), **facts)
        self._system.supervisor.kill(f"sleeper-{slot.partition('-')[0]}", signal.SIGCONT)

    def _stopped(self) -> Iterator[tuple[str, int]]:
        for queue in AWAITED:
            child: Child = self._system.children[f"sleeper-{queue}"]
            pid = child.pid
            if pid is not None and psutil.pid_exists(pid) and psutil.Process(pid).status() == psutil.STATUS_STOPPED:
                yield f"{queue}-sleeper", pid


def _replaced(words: list[str], values: dict[str, str]) -> Iterator[str]:
    """A command with the values of some options replaced."""
    for before, word in zip(["", *words[:-1]], words, strict=True):
        yield values.get(before, word)
