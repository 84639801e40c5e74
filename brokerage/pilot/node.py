"""The pilot's own node: whether its work folder can take a job, and how long to leave jobs alone when it could not.

A node at fault makes every job fail at once. Without a pause its pilot would burn the tries of one job after the other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from brokerage.pilot.clocks import now
from brokerage.pilot.payload import LEAST_FREE

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
LONGEST_LOOK_S = 30.0
"""A work folder that takes nothing is looked at at least so often."""
MOST_DOUBLINGS = 10
PROBE = ".probe"


class WorkFolder:
    """The work folder of a slot as a place for jobs. `say`: the log of the pilot."""

    def __init__(self, path: Path, offered_mb: int, say: Callable[[str], None]) -> None:
        self._path, self._offered_mb, self._say = path, offered_mb, say
        self._failures = self._looks = 0
        self._not_before = float("-inf")
        self._told = ""
        self._short = False

    def rest_s(self) -> float:
        """Seconds for which no job is to be asked for; 0: the folder can take one."""
        if (left := self._not_before - now()) > 0:
            return left
        fault = self._fault()
        if fault != self._told:
            self._say(f"asks for no job: {fault}" if fault else f"{self._path} can be written to again")
            self._told = fault
        if not fault:
            self._looks = 0
            return 0.0
        self._looks += 1
        return _pause(self._looks, LONGEST_LOOK_S)

    def disk_mb(self) -> int:
        """What the pilot can offer now: no more than is free. 0: it never said how much it has."""
        disk = os.statvfs(self._path)
        free_mb = disk.f_bavail * disk.f_frsize // 10**6
        if (short := free_mb < self._offered_mb) != self._short:
            less = f"has {free_mb} MB, less than the slot's {self._offered_mb}: jobs that need more are not asked for"
            self._say(f"{self._path} {less if short else f'has {self._offered_mb} MB again'}")
            self._short = short
        return self._offered_mb and max(1, min(self._offered_mb, free_mb))

    def note_end(self, fault: str) -> None:
        """A job has ended; `fault`: what of this node made it fail, empty where nothing did. Each in a row doubles the pause."""
        if not fault:
            self._failures = 0
            return
        self._failures += 1
        pause = _pause(self._failures, LONGEST_PAUSE_S)
        self._not_before = now() + pause
        self._say(f"the job failed for a fault of this node ({fault}): asks for none for {pause:g} s")

    def _fault(self) -> str:
        """Why the folder takes nothing; empty when it does."""
        probe = self._path / PROBE
        try:
            probe.write_bytes(bytes(LEAST_FREE))
        except OSError as problem:
            return f"{problem.strerror}: {self._path}"
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
        return ""


def _pause(times: int, longest_s: float) -> float:
    return min(FIRST_PAUSE_S * 2.0 ** min(times - 1, MOST_DOUBLINGS), longest_s)
