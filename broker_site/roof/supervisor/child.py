"""One process of the running system: what it is, and starting, watching and ending it.

A child leads a session of its own; what is left of that session when its leader dies is killed before it is started again.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from broker_site.roof.embedded import process
from broker_site.roof.embedded.process import Identity
from broker_site.roof.supervisor.console import Event

FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 30.0
SETTLED_S = 20.0
"""A child that ran so long is started again at once; one that dies sooner waits longer each time."""


class Pause:
    """How long to wait before the next try: twice as long each time, until `reset`."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._next_s = first_s

    def next(self) -> float:
        """Seconds to wait now."""
        pause, self._next_s = self._next_s, min(2 * self._next_s, self._longest_s)
        return pause

    def reset(self) -> None:
        """The last try was a success."""
        self._next_s = self._first_s


@dataclass(frozen=True, slots=True)
class Spec:
    """What a child is. `environment` is all that it gets; `grace_s` is how long it may take to end when told to.

    `makes_work`: for others, which therefore are told to end after it.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    grace_s: float = 10.0
    makes_work: bool = False


class Child:
    """A process by its name, through all its restarts. Not thread-safe: the supervisor holds its lock around every call."""

    def __init__(self, spec: Spec, logs: Path) -> None:
        self.spec, self.log = spec, logs / f"{spec.name}.log"
        self.starts = 0
        self.began = 0.0
        self._popen: subprocess.Popen[bytes] | None = None
        self._identity: Identity | None = None
        self._pause = Pause(FIRST_WAIT_S, LONGEST_WAIT_S)
        self._again_at: float | None = None
        self._end_is_told = self._settled = False

    @property
    def pid(self) -> int | None:
        """The pid of the leader; None when it is not running."""
        return self._identity.pid if self._identity and self._identity.alive() else None

    def pids(self) -> list[int]:
        """The leader and everything it has started, leader first."""
        if (leader := self.pid) is None:
            return []
        try:
            return [leader, *(each.pid for each in psutil.Process(leader).children(recursive=True))]
        except psutil.NoSuchProcess:
            return []

    def start(self) -> None:
        """Start the process; it is told to end when the thread that called this does."""
        self._popen = process.launch(
            self.spec.command, log=self.log, env=self.spec.environment, cwd=self.spec.folder, parent_death=signal.SIGTERM
        )
        self._identity = Identity.of(self._popen.pid)
        self.starts += 1
        self.began = time.monotonic()
        self._again_at, self._settled = None, False

    def tend(self) -> Event | None:
        """Start it again when it has died and its waiting time is over; what there is to tell."""
        if self._popen is None:
            return None
        now = time.monotonic()
        if self._identity and self._identity.alive():
            if self._settled or now - self.began < SETTLED_S:
                return None
            self._settled = True
            self._pause.reset()
            return Event(self.spec.name, "", f"{self.spec.name} runs again (start {self.starts}, pid {self.pid})")
        if self._again_at is None:
            return self._note_end(now)
        if now < self._again_at:
            return None
        try:
            self.start()
        except OSError as error:
            self._again_at = now + LONGEST_WAIT_S
            return Event(self.spec.name, "start", f"{self.spec.name} cannot be started: {error}")
        return None

    def destroy(self) -> None:
        """Kill it with all of its session; `tend` starts it again and does not tell of this end, the caller does."""
        self._end_is_told = True
        self.signal(signal.SIGKILL)

    def _note_end(self, now: float) -> Event | None:
        """Collect what is left of it and choose when it is started again."""
        if self._popen is None:
            return None
        process.kill_group(self._popen.pid)
        self._popen.wait()
        wait_s = self._pause.next()
        self._again_at = now + wait_s
        if self._end_is_told:
            self._end_is_told = False
            return None
        code = self._popen.returncode
        ending = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        again = f"starting it again in {wait_s:.1f} s, later each time that it ends soon"
        return Event(self.spec.name, ending, f"{self.spec.name} ended with {ending}; {again}")

    def signal(self, number: int) -> None:
        if self._identity:
            self._identity.signal(number)

    def finish(self, deadline: float) -> None:
        """Wait until `deadline` (monotonic) for the process to end, then kill exactly its session."""
        if self._popen is None:
            return
        if self._identity:
            process.gone(self._identity, deadline - time.monotonic())
        process.kill_group(self._popen.pid)
        self._popen.wait()
        self._popen = self._identity = None


def end_leftovers(marker: str, value: str, grace_s: float = 5.0) -> None:
    """End the processes whose environment has this marker, children of a killed supervisor; killed after `grace_s` seconds."""
    leftovers = []
    for each in psutil.process_iter():
        try:
            if each.environ().get(marker) == value and (identity := Identity.of(each.pid)):
                leftovers.append(identity)
        except (psutil.Error, OSError):  # another user's process, or one that has just ended
            continue
    for identity in leftovers:
        identity.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    for identity in leftovers:
        if not process.gone(identity, max(0.0, deadline - time.monotonic())):
            process.stop(identity, [(signal.SIGKILL, 2.0)])
