"""What a splitter takes and gives.

A splitter cuts the usable files of one master dataset into jobs: pure, deterministic, a job always a run of neighbouring files.
Files come as columns, not as rows, so that a million of them cost little; a job names positions in these columns, not ids.
Here: the shapes. Not here: the ways of cutting (files beside this one) and which one a dataset takes (`choice`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from workqueues.rules.job_size import Budget
from workqueues.rules.split_rule import SplitRules


@dataclass(frozen=True, slots=True)
class Files:
    """The usable files of a master dataset in the order in which they are to be used, as columns of one length.

    `sizes` in bytes, `n_events` 0 where unknown; an empty column means that nothing is known of any file. `complete`: no usable
    file comes behind these, now or later (the catalogue closed the dataset, and the columns hold all that is left).
    """

    ids: Sequence[int]
    sizes: Sequence[int] = ()
    n_events: Sequence[int] = ()
    complete: bool = True

    def __post_init__(self) -> None:
        for column in (self.sizes, self.n_events):
            if len(column) not in (0, len(self.ids)):
                raise ValueError("columns of files differ in length")

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What one job may take, all together: `max_files` master files, and what they cost by each budget."""

    max_files: int = 200
    budgets: tuple[Budget, ...] = ()


class JobPlan(NamedTuple):
    """One job: the master files at positions `start` up to but not including `stop`, with their events and bytes (0 if
    unknown).
    """

    start: int
    stop: int
    n_events: int = 0
    size: int = 0

    @property
    def n_files(self) -> int:
        """Master files of the job."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Split:
    """The jobs, in order and without gaps from the first file on, and how many files behind them are left, with the reason."""

    jobs: tuple[JobPlan, ...]
    left: int = 0
    reason: str = ""

    def __iter__(self) -> Iterator[JobPlan]:
        return iter(self.jobs)


class Splitter(Protocol):
    """Cuts `files` by the task's rules within what the queue allows, into at most `most` jobs (None: as many as there are files
    for).
    """

    def __call__(self, files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None) -> Split: ...
