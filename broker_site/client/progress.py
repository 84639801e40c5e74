"""How far a task is: its input files by what became of them, the rate at which they are done, and when it may end. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MASTERS = frozenset({"input", "pseudo_input"})
"""Types of datasets whose files, or numbers, make the jobs."""
WINDOW_S = 600.0
"""The rate is that of this time."""
LEAST = 20
"""Files that must be done before an end is guessed."""


@dataclass(frozen=True)
class Progress:
    """Input files that jobs work through (or numbers, of a task without input): done, given up, in jobs that wait or run, all."""

    done: int = 0
    failed: int = 0
    in_jobs: int = 0
    total: int = 0

    @property
    def left(self) -> int:
        """Those that are in no job yet."""
        return max(self.total - self.done - self.failed - self.in_jobs, 0)

    @property
    def percent(self) -> int:
        """Of all, how many are done."""
        return self.done * 100 // self.total if self.total else 0


def progress_of(datasets: Iterable[Mapping[str, Any]]) -> Progress:
    """What the datasets of a task say, as the server gives them with it."""
    masters = [each for each in datasets if each.get("type") in MASTERS and each.get("master_id") is None]

    def total(name: str) -> int:
        return sum(int(each.get(name) or 0) for each in masters)

    done, failed = total("n_files_finished"), total("n_files_failed")
    return Progress(done, failed, max(total("n_files_used") - done - failed, 0), total("n_files_to_be_used"))


class Pace:
    """How fast files are done, from what was seen; times are seconds of any clock that does not go back."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._latest = Progress()

    def note(self, at: float, progress: Progress) -> None:
        """One look at the task."""
        self._latest = progress
        self._seen.append((at, progress.done + progress.failed))
        while len(self._seen) > 2 and self._seen[1][0] < at - WINDOW_S:
            self._seen.popleft()

    @property
    def per_minute(self) -> float | None:
        """Files done or given up a minute; None while that cannot be said."""
        if len(self._seen) < 2 or self._seen[-1][0] <= self._seen[0][0]:
            return None
        return (self._seen[-1][1] - self._seen[0][1]) * 60 / (self._seen[-1][0] - self._seen[0][0])

    @property
    def seconds_left(self) -> float | None:
        """Until all are through at this rate; None where too few are, or none was lately."""
        rate = self.per_minute
        through = self._latest.done + self._latest.failed
        if not rate or rate < 0 or through < LEAST:
            return None
        return max(self._latest.total - through, 0) * 60 / rate
