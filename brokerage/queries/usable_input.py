"""What of an input dataset can be cut into jobs now: its usable pieces as columns, and those of its secondary datasets.

Here: from rows to what a splitter takes. Not here: picking files (`workqueues.ledger.picking`), the limits of queues
(`brokerage.rules.placement.job_limits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from broker_site.foundation import gdpconfig
from brokerage.rules.decision.generator_choice import generator_chosen
from workqueues.models import Dataset, File, Task, TaskParams
from workqueues.queries.pieces import Piece, free_pieces
from workqueues.queries.secondaries import SecondaryFiles
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.splitters.choice import Kind
from workqueues.splitters.generation import STANDARD, Generation
from workqueues.splitters.generator import GeneratorTask
from workqueues.splitters.protocol import Files, JobLimits, JobPlan, Secondary, Split, Splitter
from workqueues.splitters.runs import WHOLE
from workqueues.states import INPUT_FILE

FEW = 20
"""Files that are taken for each job of a task that may have more: one whose jobs take them all gets fewer jobs at once."""

LOOKED_AT = 10_000
"""Jobs that are looked at for what is asked of queues."""


class InputFile(Protocol):
    """What cutting must know of a file: a row, or the light record of a picked one."""

    @property
    def id(self) -> int: ...
    @property
    def lfn(self) -> str: ...
    @property
    def fsize(self) -> int | None: ...
    @property
    def n_events(self) -> int | None: ...
    @property
    def first_event(self) -> int | None: ...
    @property
    def boundary_id(self) -> int | None: ...
    @property
    def lumi_block_nr(self) -> int | None: ...
    @property
    def attempt_nr(self) -> int: ...
    @property
    def ram_count(self) -> int: ...
    @property
    def job_id(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class UsableInput:
    """Usable pieces of a master dataset; `files` are distinct.

    `columns` describe its pieces; where events are cut `pieces` are these, else they are the files themselves. `generation`: how
    jobs are made of them.
    """

    dataset: Dataset
    rules: SplitRules
    max_files: int
    files: Sequence[InputFile]
    pieces: Sequence[Piece]
    columns: Files
    generation: Generation
    others: Sequence[SecondaryFiles] = ()

    @property
    def secondaries(self) -> tuple[Secondary, ...]:
        """The secondary datasets as a splitter takes them."""
        return tuple(other.secondary for other in self.others)

    def cut(self, files: Files, limits: JobLimits, most: int | None, secondaries: Sequence[Secondary]) -> Split:
        """Cut pieces into jobs as the task and its generator say. Raises BadPlan."""
        return self._splitter(files, self.rules, limits, most, secondaries)

    def smallest(self, most: int = LOOKED_AT) -> tuple[JobPlan, ...]:
        """The smallest jobs that the task allows: of its number of files or events, else of one file each.

        Where the task says how much a job takes, at most so many: files of many events are in millions of jobs of few. A queue
        that can take each of these can take some job of the task; how much more, its own limits say. Raises BadPlan.
        """
        fixed = self.rules.files_per_job or cuts_events(self.dataset, self.rules)
        rules = self.rules if fixed else replace(self.rules, files_per_job=1)
        whole = replace(self.columns, complete=True)
        return self._splitter(whole, rules, JobLimits(self.max_files), most if fixed else None, self.secondaries).jobs

    @property
    def _splitter(self) -> Splitter:
        kind: Kind = "numbers" if self.dataset.type == "pseudo_input" else "events" if self.pieces else "files"
        return self.generation.splitter(self.dataset.type, self.rules, kind)


def cuts_events(dataset: Dataset, rules: SplitRules) -> bool:
    """Whether jobs of the dataset may end within a file (decision F2)."""
    return dataset.type == "input" and bool(rules.events_per_job or rules.target_events)


def files_wanted(task: Task, dataset: Dataset, jobs: int) -> int:
    """How many files to take for so many jobs: enough for one of the largest, and not many more than will be used.

    All of them where boundaries are not split: a job is made only when the last file of its boundary is there.
    """
    rules = parse(task.split_rule)
    if rules.boundary >= WHOLE:
        return max(dataset.n_files_to_be_used, 1)
    most = rules.files_per_job or rules.max_files_per_job or max_files_of(task)
    if cuts_events(dataset, rules) and dataset.n_events:
        per_job = rules.events_per_job or rules.target_events or 1
        used = -(-jobs * per_job * dataset.n_files // dataset.n_events)
    else:
        used = jobs * (1 if dataset.type == "pseudo_input" else rules.files_per_job or min(most, FEW))
    return max(used, most)


def max_files_of(task: Task) -> int:
    """Most files of a job where the task says nothing."""
    return int(gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB", vo=task.vo))


def supply(task: Task, dataset: Dataset, files: Sequence[InputFile], others: Sequence[SecondaryFiles] = ()) -> UsableInput:
    """What these files of a claimed task give; where events are cut, their free events are looked up. Raises NoGenerator."""
    rules, generation = parse(task.split_rule), generation_of(task)
    complete = dataset.n_files_to_be_used <= dataset.n_files_used + len(files) and dataset.state != "open"
    cut = cuts_events(dataset, rules)
    pieces = free_pieces(files) if cut else []
    columns = _of_pieces(files, pieces, complete) if cut else _of_files(files, complete)
    if len(columns) and not generation.standard:
        columns = replace(columns, names=_names(files, pieces))
    return UsableInput(dataset, rules, max_files_of(task), files, pieces, columns, generation, others)


def _names(files: Sequence[InputFile], pieces: Sequence[Piece]) -> list[str]:
    """The name of the file of each piece."""
    if not pieces:
        return [f.lfn for f in files]
    by_id = {f.id: f.lfn for f in files}
    return [by_id[piece.file_id] for piece in pieces]


def _of_files(files: Sequence[InputFile], complete: bool) -> Files:
    return Files(
        ids=[f.id for f in files],
        sizes=[f.fsize or 0 for f in files],
        n_events=[f.n_events or 0 for f in files],
        boundaries=[f.boundary_id for f in files],
        lumi_blocks=[f.lumi_block_nr for f in files],
        complete=complete,
    )


def _of_pieces(files: Sequence[InputFile], pieces: Sequence[Piece], complete: bool) -> Files:
    by_id = {f.id: f for f in files}
    of = [by_id[piece.file_id] for piece in pieces]
    whole = _of_files(of, complete)
    firsts, events = [piece.first for piece in pieces], [piece.n_events for piece in pieces]
    return replace(whole, n_events=events, firsts=firsts, totals=whole.n_events)


def peek(task: Task, dataset: Dataset, most: int) -> UsableInput:
    """What the files that would be used next, not picked, give.

    Each state is read in the order of the index by state: in the order of ids alone the planner would rather leaf through all
    files that are older than those of the dataset.
    """
    usable = File.objects.filter(dataset_id=dataset.id, held="")
    of_states = [usable.filter(status__range=(state, state)).order_by("status", "id")[:most] for state in INPUT_FILE.usable]
    found = of_states[0].union(*of_states[1:], all=True)
    return supply(task, dataset, sorted(found, key=lambda file: file.id)[:most])


def generation_of(task: Task) -> Generation:
    """The generator at work on a task. Raises NoGenerator.

    Ours is told nothing more than the number of the task: it looks at nothing else, and the parameters are a row to read.
    """
    generator = generator_chosen(task.vo, activity_of(task.prod_source_label), gdpconfig.component("core", vo=task.vo))
    return Generation(generator, GeneratorTask(task.id) if generator is STANDARD else _generator_task(task))


def _generator_task(task: Task) -> GeneratorTask:
    submitted = TaskParams.objects.filter(task_id=task.id).values_list("task_params", flat=True).first() or {}
    return GeneratorTask(
        id=task.id,
        vo=task.vo,
        label=task.prod_source_label,
        processing_type=task.processing_type,
        working_group=task.working_group,
        user=task.user_name,
        priority=task.current_priority,
        share=task.gshare,
        transformation=task.trans_path,
        parameters=MappingProxyType(submitted),
    )
