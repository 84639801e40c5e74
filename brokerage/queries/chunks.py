"""What a batch of tasks needs beside the grid: their datasets and where these are, and how their own jobs ended lately.

A query each, for all of them. Here: reading it. Not here: the ask made of it (`asks`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import prefetch_related_objects

from broker_site.foundation import gdpconfig
from brokerage.queries.asks import GB, Input, stations_of
from brokerage.queries.site_limits import station_sites
from brokerage.rules.facts.job_kind import MERGING_KINDS
from brokerage.rules.facts.needs import remaining_work
from brokerage.rules.grid.measurements import NO_JOBS
from brokerage.rules.world.stored_snapshot import TaskFacts
from brokerage.states import JOB, STORAGE_DOWN
from workqueues.catalogue import CatalogueUnavailable, Copies, DatasetKey, catalogue
from workqueues.models import Dataset, Task
from workqueues.queries.read_grants import withheld_inputs
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import dataset_key
from workqueues.states import MASTER_TYPES

LARGE = 5_000
"""Files of a dataset from which on only the copies of those files are looked for that are needed: all of them are too many."""


class CannotAsk(Exception):
    """Something that the ask needs is not known now; the message is the reason with which the task waits."""


class UnknownInput(CannotAsk):
    """The catalogue does not have an input, which was there when the task read it."""

    def __init__(self, dataset_name: str) -> None:
        super().__init__(f"the catalogue does not know the input dataset {dataset_name}")
        self.dataset_name = dataset_name


@dataclass(slots=True)
class BatchInputs:
    """What the tasks of a batch read: datasets by task (masters first), sizes of datasets, copies by name, ended jobs by task.

    `unavailable`: why the catalogue did not answer; empty where it did. `withheld`: by task, an input of another VO that it may
    not read any more. `offered`: stations that the tasks name -> sites that offer them.
    """

    inputs: Mapping[int, list[Dataset]]
    sizes: Mapping[int, tuple[int, int]]
    replicas: Mapping[DatasetKey, Sequence[Copies]]
    unavailable: str
    ended: Mapping[int, list[Mapping[str, Any]]]
    withheld: Mapping[int, str] = field(default_factory=dict)
    offered: Mapping[str, Collection[str]] = field(default_factory=dict)

    def masters(self, task: Task) -> list[Dataset]:
        return [dataset for dataset in self.inputs.get(task.id, ()) if dataset.master_id is None]

    def work_at(self, nucleus: str, task: Task) -> dict[str, Any]:
        """What the task brings to its nucleus, as the part `work` of a grid document has it (HS06 s)."""
        masters = self.masters(task)
        events, used = sum(d.n_events or 0 for d in masters), sum(d.n_events_used or 0 for d in masters)
        work = remaining_work(events, used, task.cpu_time, task.cpu_time_unit)
        return {"nucleus": nucleus, "share": task.gshare, "priority": task.current_priority, "rw": work}

    def whole_input(self, task: Task) -> list[Input]:
        """All that the task reads, or its masters where it says that only they count for its nucleus; without masters that are
        deleted, where it skips these.

        Sizes of masters must have been loaded.
        """
        masters_only = task.params.task_params.get("taskBrokerOnMaster")
        read = [d for d in self.inputs.get(task.id, ()) if d.type == "input" and not (masters_only and d.master_id)]
        if parse(task.split_rule).ignore_missing and not self.unavailable:
            keys = {d.id: dataset_key(task.vo, d.dataset_name, d.data_vo) for d in read}
            read = [d for d in read if d.master_id is not None or keys[d.id] in self.replicas]
        moved = [d for d in read if not read_attributes(d.attributes).everywhere]
        return [Input(d.dataset_name, d.master_id is None, *self.sizes.get(d.id, (0, 0))) for d in moved]

    def has_parts_of_others(self, task: Task) -> bool:
        """Whether some storage has a part only of a secondary: which files these are is not known."""
        others = [d for d in self.inputs.get(task.id, ()) if d.type == "input" and d.master_id is not None]
        keys = {d.id: dataset_key(task.vo, d.dataset_name, d.data_vo) for d in others}
        return any(copy.files < d.n_files for d in others for copy in self.replicas.get(keys[d.id], ()))

    def task_facts(
        self, task: Task, inputs: Sequence[Input], storages: Container[str], files: Sequence[InputFile] = ()
    ) -> TaskFacts:
        """What is known of the input of a chunk, on these storages, and of the jobs of its task. Raises CannotAsk.

        `files` are those of the master; where it is large, or some storage has a part of it only, they are looked for by name.
        """
        if inputs and self.unavailable:
            raise CannotAsk(f"the catalogue does not answer: {self.unavailable}")
        replicas = tuple(
            {"dataset": source.name, "storage": copy.storage, "files": copy.files, "gb": copy.size / GB}
            for source in inputs
            for copy in self._copies(task, source, files if source.master else ())
            if copy.storage in storages
        )
        return TaskFacts(replicas, tuple(self.ended.get(task.id, ())))

    def _copies(self, task: Task, source: Input, files: Sequence[InputFile]) -> Sequence[Copies]:
        """Where a dataset is; of a master where these files of it are, unless all storages that have any have all."""
        row = next((d for d in self.inputs.get(task.id, ()) if d.dataset_name == source.name), None)
        dataset = dataset_key(task.vo, source.name, row.data_vo if row else "")
        copies = self.replicas.get(dataset)
        whole = row.n_files if row else 0
        if files and (whole >= LARGE or (copies and any(copy.files < whole for copy in copies))):
            try:
                return catalogue().replicas_of_files(dataset, [f.lfn for f in files])
            except CatalogueUnavailable as error:
                raise CannotAsk(f"the catalogue does not answer: {error}") from error
        if copies is None:
            raise UnknownInput(source.name)
        return copies


def load_batch(tasks: Sequence[Task], *, whole: bool = False) -> BatchInputs:
    """What these tasks read, and their parameters; a fixed number of queries. `whole`: sizes of masters too."""
    prefetch_related_objects(list(tasks), "params")
    inputs = inputs_of([task.id for task in tasks])
    read = [dataset for datasets in inputs.values() for dataset in datasets if dataset.type == "input"]
    sized = [dataset.id for dataset in read if whole or dataset.master_id is not None]
    listed = {dataset_key(d.vo, d.dataset_name, d.data_vo) for d in read if whole or d.master_id is not None or d.n_files < LARGE}
    users = [task for task in tasks if activity_of(task.prod_source_label) == "analysis"]
    within_s = {task.id: gdpconfig.value("anal_jobbroker", "TW_DONE_JOB_STAT", vo=task.vo) for task in users}
    replicas: Mapping[DatasetKey, Sequence[Copies]] = {}
    unavailable = ""
    try:
        replicas = catalogue().replicas(listed) if listed else {}
    except CatalogueUnavailable as error:
        unavailable = str(error) or "no reason given"
    sizes, withheld = sizes_of(sized) if sized else {}, withheld_inputs(tasks, read)
    offered = station_sites(stations_of(tasks))
    return BatchInputs(inputs, sizes, replicas, unavailable, ended_lately(within_s), withheld, offered)


def joined(batches: Sequence[BatchInputs]) -> BatchInputs:
    """What was loaded for the parts of a batch, as one."""
    if len(batches) == 1:
        return batches[0]
    whole = BatchInputs({}, {}, {}, next((part.unavailable for part in batches if part.unavailable), ""), {})
    for part in batches:
        whole.inputs = {**whole.inputs, **part.inputs}
        whole.sizes = {**whole.sizes, **part.sizes}
        whole.replicas = {**whole.replicas, **part.replicas}
        whole.ended = {**whole.ended, **part.ended}
        whole.withheld = {**whole.withheld, **part.withheld}
        whole.offered = {**whole.offered, **part.offered}
    return whole


def inputs_of(task_ids: Sequence[int]) -> Mapping[int, list[Dataset]]:
    """Input datasets of tasks that are not excluded, masters before their secondaries."""
    by_task: dict[int, list[Dataset]] = defaultdict(list)
    rows = Dataset.objects.filter(task_id__in=task_ids, type__in=MASTER_TYPES, excluded=False)
    for dataset in sorted(rows, key=lambda d: (d.master_id is not None, d.id)):
        by_task[dataset.task_id].append(dataset)
    return by_task


def ended_lately(within_s: Mapping[int, float]) -> Mapping[int, list[Mapping[str, Any]]]:
    """Task and how far back to look (seconds) -> its ended jobs, as the part `jobs` of a grid document has them; those that
    merge say nothing of the others."""
    by_task: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    if not within_s:
        return by_task
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT j.task_id, q.name, j.status, count(*)
            FROM unnest(%s::bigint[], %s::float8[]) AS v(task_id, within_s)
                JOIN brokerage_job j ON j.task_id = v.task_id AND j.ended_at >= now() - make_interval(secs => v.within_s)
                JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
            WHERE j.status = ANY (%s) AND j.sub_status <> ALL (%s) AND j.kind <> ALL (%s) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
            """,
            [list(within_s), list(within_s.values()), list(JOB.tried), [STORAGE_DOWN], [kind.value for kind in MERGING_KINDS]],
        )
        for task_id, queue, status, n in cursor:
            by_task[task_id].append({**NO_JOBS, "queue": queue, "status": status, "task_id": task_id, "n": n})
    return by_task


def sizes_of(dataset_ids: Sequence[int]) -> Mapping[int, tuple[int, int]]:
    """Dataset -> number of its files and their size in bytes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT dataset_id, count(*), coalesce(sum(fsize), 0) FROM workqueues_file WHERE dataset_id = ANY (%s) GROUP BY 1",
            [list(dataset_ids)],
        )
        return {dataset: (files, int(size)) for dataset, files, size in cursor}
