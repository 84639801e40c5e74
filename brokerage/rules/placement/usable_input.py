"""What of a master dataset can be cut into jobs now: its usable pieces as columns, with those of its secondary datasets.

Not here: where they come from (`brokerage.queries.usable_input`), the limits of queues (`job_limits`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from brokerage.rules.facts.job_kind import JobKind
from workqueues.rules.jobs.event_ranges import DroppedEvents, InputFile, Piece
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.choice import Kind
from workqueues.splitters.generation import Generation
from workqueues.splitters.protocol import Dropped, Files, JobLimits, JobPlan, Secondary, SecondaryFiles, Split, Splitter
from workqueues.splitters.runs import WHOLE

FEW = 20
"""Files that are taken for each job of a task that may have more: one whose jobs take them all gets fewer jobs at once."""

LOOKED_AT = 10_000
"""Jobs that are looked at for what is asked of queues."""


class MasterDataset(Protocol):
    """What cutting must know of the dataset from which jobs are cut; the row does."""

    @property
    def id(self) -> int: ...
    @property
    def dataset_name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def stream_name(self) -> str: ...
    @property
    def n_files(self) -> int: ...
    @property
    def n_files_to_be_used(self) -> int: ...
    @property
    def n_events(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class UsableInput:
    """Usable pieces of a master dataset; `files` are distinct.

    `columns` describe its pieces; where events are cut `pieces` are these, else they are the files themselves. `max_files` of a
    job where the task says nothing. `generation`: how jobs are made of them.
    """

    dataset: MasterDataset
    rules: SplitRules
    max_files: int
    files: Sequence[InputFile]
    pieces: Sequence[Piece]
    columns: Files
    generation: Generation
    others: Sequence[SecondaryFiles] = ()

    @property
    def kind(self) -> JobKind:
        """Of which kind the jobs are that are made of it now."""
        if self.rules.in_step:
            return JobKind.PREPROCESS
        return JobKind.SCOUT if self.rules.scouting else JobKind.NORMAL

    @property
    def secondaries(self) -> tuple[Secondary, ...]:
        """The secondary datasets as a splitter takes them."""
        return tuple(other.secondary for other in self.others)

    def cut(self, files: Files, limits: JobLimits, most: int | None, secondaries: Sequence[Secondary]) -> Split:
        """Cut pieces into jobs as the task and its generator say. Raises BadPlan."""
        return self._splitter(files, self.rules, limits, most, secondaries)

    def cut_anywhere(self) -> Split:
        """The jobs that could be made of all pieces if no queue had limits. Raises BadPlan."""
        return self.cut(self.columns, JobLimits(self.max_files), None, self.secondaries)

    def smallest(self, most: int = LOOKED_AT) -> tuple[JobPlan, ...]:
        """The smallest jobs that the task allows: of its number of files or events, else of one file each.

        Where the task says how much a job takes, at most so many: files of many events are in millions of jobs of few. A queue
        that can take each of these can take some job of the task; how much more, its own limits say. Raises BadPlan.
        """
        fixed = self.rules.files_per_job or cuts_events(self.dataset.type, self.rules)
        rules = self.rules if fixed else replace(self.rules, files_per_job=1)
        whole = replace(self.columns, complete=True)
        return self._splitter(whole, rules, JobLimits(self.max_files), most if fixed else None, self.secondaries).jobs

    @property
    def _splitter(self) -> Splitter:
        kind: Kind = "numbers" if self.dataset.type == "pseudo_input" else "events" if self.pieces else "files"
        return self.generation.splitter(self.dataset.type, self.rules, kind)

    def dropped_events(self, dropped: Iterable[Dropped]) -> dict[str, list[DroppedEvents]]:
        """What no job will ever take, by reason; whole files have no count of events."""
        by_reason: dict[str, list[DroppedEvents]] = defaultdict(list)
        for position, skip, upto, reason in dropped:
            if self.pieces:
                piece = self.pieces[position]
                events = DroppedEvents(piece.file_id, piece.first + skip, (upto or piece.n_events) - skip)
            else:
                events = DroppedEvents(self.columns.ids[position], 0, 0)
            by_reason[reason].append(events)
        return by_reason


def most_jobs_of(usable: UsableInput, most: int) -> int:
    """How many jobs can be cut from the input at most, where a limit of a queue may halve them; never more than `most`."""
    size = usable.rules.target_events or usable.rules.events_per_job
    if not usable.pieces or not size:
        return max(len(usable.columns), 1)
    return min(2 * sum(-(-piece.n_events // size) or 1 for piece in usable.pieces), max(most, len(usable.columns)))


def columns_of(
    files: Sequence[InputFile],
    pieces: Sequence[Piece] | None,
    *,
    complete: bool,
    named: bool,
    boundaries: Sequence[int | None] | None = None,
) -> Files:
    """Files as a splitter takes them, or where events are cut their pieces; `named`: with the names of the files; `boundaries` of
    the pieces, where they are not those of the files.
    """
    by_id = {f.id: f for f in files}
    of = files if pieces is None else [by_id[piece.file_id] for piece in pieces]
    events = [f.n_events or 0 for f in of]
    return Files(
        ids=[f.id for f in of],
        sizes=[f.fsize or 0 for f in of],
        n_events=events if pieces is None else [piece.n_events for piece in pieces],
        firsts=() if pieces is None else [piece.first for piece in pieces],
        totals=() if pieces is None else events,
        boundaries=[f.boundary_id for f in of] if boundaries is None else boundaries,
        lumi_blocks=[f.lumi_block_nr for f in of],
        complete=complete,
        names=[f.lfn for f in of] if named else (),
    )


def cuts_events(dataset_type: str, rules: SplitRules) -> bool:
    """Whether jobs of the dataset may end within a file (decision F2)."""
    return dataset_type == "input" and bool(rules.events_per_job or rules.target_events)


def files_wanted(rules: SplitRules, dataset: MasterDataset, max_files: int, jobs: int) -> int:
    """How many files to take for so many jobs: enough for one of the largest, and not many more than will be used.

    All of them where boundaries are not split: a job is made only when the last file of its boundary is there. `max_files` of a
    job where the task says nothing.
    """
    if rules.boundary >= WHOLE:
        return max(dataset.n_files_to_be_used, 1)
    most = rules.files_per_job or rules.max_files_per_job or max_files
    if cuts_events(dataset.type, rules) and dataset.n_events:
        per_job = rules.events_per_job or rules.target_events or 1
        used = -(-jobs * per_job * dataset.n_files // dataset.n_events)
    else:
        used = jobs * (1 if dataset.type == "pseudo_input" else rules.files_per_job or min(most, FEW))
    return max(used, most)
