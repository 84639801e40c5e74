"""One task with all that its page shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.permissions import VoScope
from brokerage.queries.dataset_places import PlaceOfDataset, dataset_places
from brokerage.rules.placement.binding import binding_of, told
from brokerage.states import JOB
from monitoring.queries.database import alias, rows
from monitoring.queries.tasks import FILE_COUNTERS, Files, files_in, files_of
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.states import INPUT_TYPES, MASTER_TYPES, OUTPUT_TYPES, PREMERGED_TYPES

MOST_JOBS = 100_000
"""Jobs of a task that are counted by state; beyond, numbers are lower bounds."""
MOST_DATASETS = 200
MOST_RELATIVES = 50
MOST_PLACED = 20_000
"""Output files of a task that are looked for where they are wanted, each time that its page is made."""


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One dataset of a task with its counters. `n_events_used`: events that are processed; `dealt`: how a secondary dataset is
    dealt out to jobs, in words.
    """

    id: int
    dataset_name: str
    type: str
    status: str
    secondary: bool
    excluded: bool
    n_files_wanted: int
    n_files_used: int
    n_files_finished: int
    n_files_failed: int
    n_files_on_hold: int
    n_files_missing: int
    n_events: int | None
    n_events_used: int
    dealt: str

    @property
    def is_input(self) -> bool:
        return self.type in INPUT_TYPES

    @property
    def premerged(self) -> bool:
        """Whether its files are merged into those of another dataset."""
        return self.type in PREMERGED_TYPES

    @property
    def outcome(self) -> str:
        """The status; a closed output without files is told apart."""
        empty = self.status == "done" and self.type in OUTPUT_TYPES and not self.n_files_finished
        return "done, empty" if empty else self.status


@dataclass(frozen=True, slots=True)
class RelatedTask:
    id: int
    task_name: str
    status: str


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Jobs of a task by state, in the order of the machine; lower bounds where `capped`."""

    by_state: Mapping[str, int]
    capped: bool

    @property
    def total(self) -> int:
        return sum(self.by_state.values())

    @property
    def live(self) -> int:
        return sum(n for state, n in self.by_state.items() if state not in JOB.final)

    @property
    def waiting(self) -> int:
        """Those that no pilot has."""
        return sum(n for state, n in self.by_state.items() if state in JOB.waiting)

    @property
    def running(self) -> int:
        """Those that a pilot has, and those whose outputs are under way."""
        return self.live - self.waiting


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A task and its surroundings. `task` is the row itself, read only, with its parameters.

    `places`: a dataset, and how far it is where it is wanted. `binding`: when its jobs get their queue, as a sentence.
    """

    task: Task
    parameters: Mapping[str, Any]
    job_params_template: str
    files: Files
    datasets: list[DatasetRow]
    places: list[tuple[str, PlaceOfDataset]]
    parent: RelatedTask | None
    children: list[RelatedTask]
    jobs: JobCounts
    binding: str = ""

    @property
    def any_premerged(self) -> bool:
        """Whether jobs of the task merge what others made."""
        return any(dataset.premerged for dataset in self.datasets)


def find_task(task_id: int, scope: VoScope) -> Task | None:
    """The task, if there is one in the scope, with its parent, where it has one there, and its newest children."""
    related = ("work_queue", "params", "job_params_template")
    shown = JSONObject(id="id", task_name="task_name", status="status")
    others = Task.objects.filter(scope.q()).exclude(id=OuterRef("pk"))
    children = others.filter(parent_tid=OuterRef("pk")).order_by("-id")[:MOST_RELATIVES]
    tasks = Task.objects.using(alias()).select_related(*related).filter(scope.q(), id=task_id)
    return tasks.annotate(
        parent_shown=Subquery(others.filter(id=OuterRef("parent_tid")).values(json=shown)[:1]),
        children_shown=ArraySubquery(children.values(json=shown)),
    ).first()


def jobs_by_state(states: Iterable[str]) -> JobCounts:
    """The same of all jobs of a task, where these are already read."""
    counts = Counter(states)
    return JobCounts({state: counts[state] for state in JOB.states if state in counts}, capped=False)


def task_facts(task: Task, jobs: JobCounts | None = None) -> TaskSummary:
    """What belongs to a task that was found; three statements at most. `jobs`: where they are counted already."""
    datasets, near = list(_stored_datasets(task.id)), vars(task)
    return TaskSummary(
        task=task,
        parameters=task.params.task_params if hasattr(task, "params") else {},
        job_params_template=task.job_params_template.job_params_template if hasattr(task, "job_params_template") else "",
        files=_files(task.id, datasets),
        datasets=_dataset_rows(datasets),
        places=_places(datasets),
        parent=RelatedTask(**near["parent_shown"]) if near["parent_shown"] else None,
        children=[RelatedTask(**child) for child in near["children_shown"]],
        jobs=jobs or count_jobs(task.id),
        binding=_binding(task),
    )


def _binding(task: Task) -> str:
    """When the jobs of the task get their queue; its generator is known only when they are made, and their history says that."""
    config = gdpconfig.component("dispatch", vo=task.vo)
    parameters = task.params.task_params if hasattr(task, "params") else {}
    binding = binding_of(parameters, activity_of(task.prod_source_label), task.core_count, config)
    return told(binding, f"{binding.after_s:,} s")


SAME = (
    "id", "dataset_name", "type", "status", "excluded", "n_files_used", "n_files_finished", "n_files_failed", "n_files_on_hold",
    "n_files_missing", "n_events",
)  # fmt: skip
"""Columns of a dataset that are shown as they are stored."""


def _stored_datasets(task_id: int) -> QuerySet[Dataset]:
    return Dataset.objects.using(alias()).filter(task_id=task_id).order_by("id")[:MOST_DATASETS]


def _files(task_id: int, datasets: Sequence[Dataset]) -> Files:
    """What became of the files of its master datasets; those that are shown are all in most cases."""
    if len(datasets) >= MOST_DATASETS:
        return files_of([task_id]).get(task_id, Files())
    masters = [d for d in datasets if d.type in MASTER_TYPES and d.master_id is None and not d.excluded]
    return files_in([tuple(getattr(d, name) for name in FILE_COUNTERS) for d in masters]) if masters else Files()


def _places(datasets: Sequence[Dataset]) -> list[tuple[str, PlaceOfDataset]]:
    """How far outputs are where they are wanted, by name of the dataset; one statement, none where they stay or are too many."""
    wanted = {d.id: d for d in datasets if d.type in OUTPUT_TYPES and (d.collected_at or d.destination)}
    if not wanted or sum(d.n_files for d in wanted.values()) > MOST_PLACED:
        return []
    found = dataset_places(wanted, alias())
    return [(wanted[id_].dataset_name, place) for id_ in wanted for place in found.get(id_, ())]


def _dataset_rows(datasets: Sequence[Dataset]) -> list[DatasetRow]:
    table = [
        DatasetRow(
            **{name: getattr(dataset, name) for name in SAME},
            secondary=dataset.master_id is not None,
            n_files_wanted=dataset.n_files,
            n_events_used=dataset.n_events_used or 0,
            dealt=dealt_out(dataset.attributes) if dataset.master_id is not None and dataset.type in MASTER_TYPES else "",
        )
        for dataset in datasets
    ]
    return sorted(table, key=lambda row: (not row.is_input, row.secondary))


def dealt_out(attributes: str) -> str:
    """How the files of a secondary dataset come to jobs."""
    rule = read_attributes(attributes)
    if rule.nosplit:
        return "all files to every job"
    if rule.files_per_job is not None:
        amount = f"{rule.files_per_job} a job"
    elif rule.event_ratio is not None:
        amount = f"{rule.event_ratio:g} events for each event"
    else:
        amount = f"{rule.ratio:g} for each file"
    return amount if rule.tracked else f"{amount}, used again and again"


def count_jobs(task_id: int) -> JobCounts:
    """Jobs of a task by state; one bounded statement."""
    counts = dict(
        rows(
            """
            SELECT status, count(*) FROM (SELECT status FROM brokerage_job WHERE task_id = %(task)s LIMIT %(most)s) AS bounded
            GROUP BY status
            """,
            {"task": task_id, "most": MOST_JOBS + 1},
        )
    )
    return JobCounts({state: counts[state] for state in JOB.states if state in counts}, sum(counts.values()) > MOST_JOBS)
