"""What a splitter takes and gives.

A splitter cuts the usable pieces of one master dataset into jobs: pure, deterministic, a job always a run of neighbouring pieces.
Files come as columns, not as rows, so that a million of them cost little; a job names positions in these columns, not ids.
Here: the shapes. Not here: the ways of cutting (files beside this one) and which one a dataset takes (`choice`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, Protocol

from workqueues.rules.jobs.dataset_attributes import Attributes
from workqueues.rules.jobs.job_size import Budget
from workqueues.rules.jobs.split_rule import SplitRules


@dataclass(frozen=True, slots=True)
class Files:
    """The usable pieces of a dataset in the order in which they are to be used, as columns of one length.

    A piece is a whole file or, where events are cut, a run of events of a file that no job has: the same file may stand several
    times, but runs that touch are one piece. `sizes` of the whole file in bytes, `n_events` of the piece, 0 where unknown;
    `firsts`: the first event of the piece, counted from 0 in its file; `totals`: events of the whole file; `boundaries` and
    `lumi_blocks`: None where a file has none; files of one boundary or lumi block stand together.
    An empty column means that nothing is known of any piece. `complete`: no usable piece comes behind these, now or later (the
    catalogue closed the dataset, and the columns hold all that is left). `names` of the files, for generators that look at them;
    ours do not, and get none.
    """

    ids: Sequence[int]
    sizes: Sequence[int] = ()
    n_events: Sequence[int] = ()
    firsts: Sequence[int] = ()
    totals: Sequence[int] = ()
    boundaries: Sequence[int | None] = ()
    lumi_blocks: Sequence[int | None] = ()
    complete: bool = True
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in COLUMNS:
            if len(getattr(self, name)) not in (0, len(self.ids)):
                raise ValueError("columns of files differ in length")

    def __len__(self) -> int:
        return len(self.ids)

    def window(self, start: int, stop: int, skip: int = 0) -> Files:
        """The pieces at positions `start` up to but not including `stop`, the first without its first `skip` events; complete
        only where it holds the last one.
        """
        cut = {name: getattr(self, name)[start:stop] for name in COLUMNS}
        if skip and start < stop:
            first = self.firsts[start] if self.firsts else 0
            rest = self.n_events[start] - skip
            totals = list(self.totals or self.n_events)[start:stop]
            cut["firsts"] = [first + skip, *(cut["firsts"][1:] or [0] * (len(cut["ids"]) - 1))]
            cut["n_events"], cut["totals"] = [rest, *cut["n_events"][1:]], totals
        return replace(self, **cut, complete=self.complete and stop >= len(self))


COLUMNS = tuple(each.name for each in fields(Files) if each.name != "complete")


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What one job may take, all together: `max_files` master files, `max_inputs` files with those of secondary datasets, and
    what they cost by each budget.
    """

    max_files: int = 200
    max_inputs: int = 1000
    budgets: tuple[Budget, ...] = ()


@dataclass(frozen=True, slots=True)
class Secondary:
    """A secondary dataset: how it is dealt out (`rule`), its usable files, and the position of the next one to use.

    Of a dataset that is repeated or may be used again (ru, reuseSecOnDemand) `files` are all, and `at` may be anywhere in them.
    `name`: for reasons. `sums`: of its bytes and events so far, which a split hands on so that they are not made again.
    """

    rule: Attributes
    files: Files
    at: int = 0
    name: str = "a secondary dataset"
    sums: tuple[list[int], list[int]] | None = field(default=None, repr=False, compare=False)


class SecondaryRow(NamedTuple):
    """One file of a secondary dataset: size in bytes, 0 where unknown; `tracked`: it is used once (decision F1).

    `beside_file`, `beside_event`: the master file, and its event, with which jobs get it; None: no job had it yet.
    """

    id: int
    dataset_id: int
    lfn: str
    size: int
    n_events: int
    attempt_nr: int
    job_id: int | None
    boundary_id: int | None
    tracked: bool
    beside_file: int | None = None
    beside_event: int | None = None


class SecondaryFiles(NamedTuple):
    """A secondary dataset for a splitter, and its files: `rows[i]` is the file at position `i` of `secondary.files`."""

    dataset_id: int
    stream_name: str
    secondary: Secondary
    rows: Sequence[SecondaryRow]


class Portion(NamedTuple):
    """Files of a secondary dataset that a job takes: so many from a position on, going round behind the last one."""

    start: int
    n: int


class JobPlan(NamedTuple):
    """One job: the master pieces at positions `start` up to but not including `stop`, with their events and bytes (0 if
    unknown).

    Where events are cut: `skip` events of the first piece belong to the job before, and of the last piece the job takes those
    below `upto`, counted from the start of the piece; 0 = all. `others`: what it takes of each secondary dataset, in the order
    in which they were given; its bytes are part of `size`.
    """

    start: int
    stop: int
    n_events: int = 0
    size: int = 0
    skip: int = 0
    upto: int = 0
    others: tuple[Portion, ...] = ()

    @property
    def n_files(self) -> int:
        return self.stop - self.start


class Dropped(NamedTuple):
    """Events of a piece that no job will ever take, by the task's own rules: from `skip` up to `upto`, 0 = all behind."""

    position: int
    skip: int
    upto: int
    reason: str


@dataclass(frozen=True, slots=True)
class Split:
    """The jobs, in order and without gaps from the first piece on, and how many pieces behind them are left, with the reason.

    `skip`: events of the first piece that is left which jobs took already (`Files.window` takes it). `dropped`: the only gaps
    between jobs. `unfit`: what comes next breaks a hard budget of these limits, however small the job; elsewhere it may fit.
    `secondaries`: those that were given, as they stand behind the last job.
    """

    jobs: tuple[JobPlan, ...]
    left: int = 0
    reason: str = ""
    secondaries: tuple[Secondary, ...] = ()
    skip: int = 0
    dropped: tuple[Dropped, ...] = ()
    unfit: bool = False

    def __iter__(self) -> Iterator[JobPlan]:
        return iter(self.jobs)


class Splitter(Protocol):
    """Cuts `files` by the task's rules within what the queue allows, into at most `most` jobs (None: as many as there are files
    for), each with its part of the secondary datasets.
    """

    def __call__(
        self, files: Files, rules: SplitRules, limits: JobLimits, most: int | None = None, secondaries: Sequence[Secondary] = ()
    ) -> Split: ...
