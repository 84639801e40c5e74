"""What refining a task takes and gives: frozen records, shapes only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from broker_site.foundation.kernel.verdict import Problem
from workqueues.rules.task_parameters import TaskParameters
from workqueues.states import MASTER_TYPES, OUTPUT_TYPES, DatasetType, OutputType, PremergedType

MOST_LISTED = 500
"""Problems that one answer lists; whatever looks for them stops there."""

ItemType = Literal["constant", "input", "pseudo_input", "number", "output", "log"]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of jobParameters or log. `path` is where it stands, as `jobParameters[2]`.

    `names` are its datasets (several only for input), `stream` the placeholder that stands for its files, `file_name` the
    template of an output's or log's names. `offset` counts serials, seeds, records or events, by type. `on_command_line` is
    false in `log`. `attributes`: of an input, as the dataset's row has them; `n_records`: length of a sequence; `source_name`:
    what the payload calls an output; `destination`: where its dataset goes when the task has ended;
    `transient`: it is removed a while later; `merge_only`: only jobs that merge outputs write it. `files`: the only ones that are
    used of an input, all where there are none; not of the datasets that came to it later (`further`).
    """

    path: str
    type: ItemType
    value: str = ""
    names: tuple[str, ...] = ()
    stream: str = ""
    file_name: str = ""
    container: str = ""
    token: str = ""
    offset: int = 0
    hidden: bool = False
    padding: bool = True
    optional: bool = False
    on_command_line: bool = True
    attributes: str = ""
    n_records: int | None = None
    source_name: str = ""
    destination: str = ""
    transient: bool = False
    merge_only: bool = False
    files: tuple[str, ...] = ()
    further: tuple[str, ...] = ()


class OutputName(NamedTuple):
    """One output or log of a task: its dataset and the template of its file names. `path`: of its item."""

    dataset: str
    file_name: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class TaskDocument:
    """What could be read of a submission: well-typed parameters, items, and what is wrong with the rest."""

    parameters: TaskParameters
    items: tuple[Item, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the datasets that the task reads."""
        return tuple(dict.fromkeys(name for item in self.items if item.type == "input" for name in item.names))

    @property
    def outputs(self) -> tuple[OutputName, ...]:
        """What the task writes, logs included, known before it is refined; nothing where it instantiates templates."""
        if self.parameters.instantiates:
            return ()
        return tuple(
            OutputName(name, item.file_name, item.path) for item in self.items if item.type in OUTPUT_TYPES for name in item.names
        )

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the datasets that the task writes, as far as they are known before it is refined."""
        return tuple(dict.fromkeys(output.dataset for output in self.outputs))


@dataclass(frozen=True, slots=True)
class ParentFacts:
    """The parent task: its id, its status, and the names of the datasets that it writes."""

    task_id: int
    status: str
    outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class InputWriterFacts:
    """A task that was to write an input at the submission, and its status now: a parent that only delays (decision F5)."""

    task_id: int
    status: str
    dataset_name: str


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """A dataset that the catalogue knows: its state is `open` or `closed`; of `n_uncounted` files the events are not known.

    `data_vo`: the VO that has it, where that is not the task's own.
    """

    name: str
    state: str = "closed"
    n_files: int | None = None
    n_events: int | None = None
    n_uncounted: int = 0
    data_vo: str = ""


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """One dataset of a task, in the order in which rows are made; indexes point into the plan's `datasets`.

    `master`: no `master_index`, and its files make jobs. `n_files`, `n_events`: how much of it the task wants, None for all;
    for pseudo_input the number of records to make. `offset`: records, seeds or serials begin at 1 + offset. `state`: the
    catalogue's word, empty for outputs and pseudo datasets, `missing` if it is not there yet. `events_per_file`: what counts
    where the catalogue does not know better or, without `real_events`, whatever it knows. `needs_events`: the parameter for which
    the events of every file must be known, empty without one. `attributes`: how its files are dealt out (facts on task
    parameters 3.3). `data_vo`: the VO that has an input, where that is not the task's own. `files`: the only ones of an input
    that the task uses, empty for all; those of its stream together name each one.
    """

    name: str
    type: DatasetType
    stream_name: str = ""
    master_index: int | None = None
    provenance_index: int | None = None
    state: str = ""
    attributes: str = ""
    n_files: int | None = None
    n_events: int | None = None
    events_per_file: int | None = None
    real_events: bool = False
    needs_events: str = ""
    offset: int = 0
    container: str = ""
    storage_token: str = ""
    data_vo: str = ""
    destination: str = ""
    files: tuple[str, ...] = ()

    @property
    def master(self) -> bool:
        return self.type in MASTER_TYPES and self.master_index is None


@dataclass(frozen=True, slots=True)
class OutputTemplatePlan:
    """How the files of one output are named. `serial_nr` is the last serial number used: the first file gets the next one."""

    dataset_index: int
    filename_template: str
    stream_name: str
    serial_nr: int = 0
    out_type: OutputType | PremergedType = "output"
    source_name: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A refined task. `columns`: values of the task's row by column name, the split rule included.

    `shares_outputs`: other tasks of its owner may write to its datasets too (allowTaskDuplication). `continues`: a dataset of
    another task, of which it makes lost files again. `skips_used_by`: tasks whose files it leaves out. `newer_attempts`: of files
    that are named. `max_attempt`
    and `max_failure` hold for each file of a master dataset (None: no limit). `divided`: its work can be divided into elements.
    `notes` is what the submitter should know although nothing is wrong.
    """

    columns: Mapping[str, object]
    datasets: tuple[DatasetPlan, ...]
    templates: tuple[OutputTemplatePlan, ...]
    job_parameters: str
    max_attempt: int | None = 3
    max_failure: int | None = None
    shares_outputs: bool = False
    continues: str = ""
    skips_used_by: tuple[int, ...] = ()
    newer_attempts: bool = False
    divided: bool = False
    notes: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskWait:
    """The task cannot be refined yet; `clock`: whether the time counts towards the pending timeout (frozen time)."""

    reason: str
    clock: bool


@dataclass(frozen=True, slots=True)
class TaskFaults:
    """The task can never be refined."""

    problems: tuple[Problem, ...]

    @property
    def reason(self) -> str:
        return "; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in self.problems)


Refined = TaskPlan | TaskWait | TaskFaults
