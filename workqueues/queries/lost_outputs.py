"""Outputs that are lost: which job made them, of what, and who makes them again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from django.db.models import Exists, OuterRef

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.models import CatalogueDataset, Dataset, EventRange, File, PlannedOutput, Replica, Task
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.recovered_parts import Beginning, WantedPart
from workqueues.rules.refine import DatasetKey, dataset_key
from workqueues.states import EVENT, INPUT_TYPES, MASTER_TYPES, OUTPUT_TYPES, TASK


class MadeOutput(NamedTuple):
    """A finished output: its row, the task and the job that made it, and whether it is known to be lost."""

    file_id: int
    lfn: str
    task_id: int
    job_id: int
    lost: bool


def made_outputs(vo: str, dataset_name: str, lfns: Collection[str]) -> dict[str, MadeOutput]:
    """The newest file of each of these names that a job made for the dataset."""
    rows = File.objects.filter(
        lfn__in=lfns, dataset__dataset_name=dataset_name, dataset__vo=vo, dataset__type__in=OUTPUT_TYPES, status="finished",
        out_job_id__isnull=False, no_output=False,
    )  # fmt: skip
    return {
        lfn: MadeOutput(id_, lfn, task_id, job_id or 0, lost_at is not None)
        for id_, lfn, task_id, job_id, lost_at in rows.order_by("id").values_list("id", "lfn", "task_id", "out_job_id", "lost_at")
    }


def made_by_jobs(task_id: int, dataset_name: str, job_ids: Collection[int]) -> list[MadeOutput]:
    """All files of the dataset that these jobs of a task made, in order: who makes one of a job again makes all of it."""
    rows = File.objects.filter(
        out_job_id__in=job_ids, task_id=task_id, dataset__dataset_name=dataset_name, status="finished", no_output=False,
        type__in=OUTPUT_TYPES,
    )  # fmt: skip
    columns = ("id", "lfn", "task_id", "out_job_id", "lost_at")
    return [MadeOutput(i, lfn, t, j or 0, at is not None) for i, lfn, t, j, at in rows.order_by("id").values_list(*columns)]


def template_of(task_id: int, dataset_name: str) -> str:
    """The template of which the task made the dataset; empty where of none."""
    made = Dataset.objects.filter(task_id=task_id, dataset_name=dataset_name, template_id__isnull=False)
    names = Dataset.objects.filter(id__in=made.values("template_id")).values_list("dataset_name", flat=True)
    return names.first() or ""


def sound_outputs(vo: str, dataset_name: str) -> set[str]:
    """The files of the dataset that tasks have finished and that are not lost."""
    rows = File.objects.filter(
        dataset__dataset_name=dataset_name, dataset__vo=vo, type__in=OUTPUT_TYPES, status="finished", lost_at__isnull=True
    )
    return set(rows.values_list("lfn", flat=True))


class Content(NamedTuple):
    """A file that one job had for itself, or `part` of its events, with the type of its dataset, and whether that is a master.

    `part`: the first of the events, counted from 0 in the file, and the one behind the last; `file` has so many.
    """

    job_id: int
    key: DatasetKey
    dataset_name: str
    type: str
    master: bool
    file: NewFile
    part: tuple[int, int] | None = None

    @property
    def beginning(self) -> Beginning:
        """By what a job is known whose first input this is."""
        return self.file.lfn, self.part[0] if self.part else 0


_FILE = ("lfn", "fsize", "checksum", "guid", "n_events", "boundary_id", "lumi_block_nr", "first_event")


def contents(task_id: int, job_ids: Collection[int]) -> list[Content]:
    """What these finished jobs of a task had for themselves, records and seeds included, in the order of its use: whole files,
    then parts of files.
    """
    tracked = {
        d.id: d
        for d in Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES)
        if d.type == "random_seed" or d.master_id is None or read_attributes(d.attributes).tracked
    }
    rows = File.objects.filter(dataset_id__in=tracked, task_id=task_id, job_id__in=job_ids, status="finished")
    whole = rows.exclude(Exists(EventRange.objects.filter(file_id=OuterRef("id"))))
    done = EventRange.objects.filter(task_id=task_id, job_id__in=job_ids, status__in=EVENT.processed, dataset_id__in=tracked)
    spans = ("def_min_event_id", "def_max_event_id", *(f"file__{name}" for name in _FILE))
    return [
        *(
            _content(tracked[dataset_id], job_id, NewFile(*file))
            for job_id, dataset_id, *file in whole.order_by("id").values_list("job_id", "dataset_id", *_FILE)
        ),
        *(
            _content(tracked[dataset_id], job_id, NewFile(*file)._replace(n_events=last + 1 - first), (first, last + 1))
            for job_id, dataset_id, first, last, *file in done.order_by("file_id", "def_min_event_id").values_list(
                "job_id", "dataset_id", *spans
            )
        ),
    ]


def _content(d: Dataset, job_id: int, file: NewFile, part: tuple[int, int] | None = None) -> Content:
    key = dataset_key(d.vo, d.dataset_name, d.data_vo)
    return Content(job_id, key, d.dataset_name, d.type, d.master_id is None, file, part)


def parts_beside_files(had: Sequence[Content]) -> bool:
    """Whether jobs had parts of files beside files of other datasets that are used once."""
    return any(c.part for c in had) and any(c.type == "input" and not c.master for c in had)


def gone_inputs(files: Sequence[Content]) -> dict[DatasetKey, list[str]]:
    """Those of these files that the catalogue does not have any more, or has no copy of, by dataset."""
    wanted: dict[DatasetKey, list[str]] = defaultdict(list)
    for content in files:
        if content.type == "input":
            wanted[content.key].append(content.file.lfn)
    gone = {}
    for key, lfns in wanted.items():
        there = set(
            Replica.objects.filter(
                file__dataset__vo=key.vo, file__dataset__name=key.name, file__lfn__in=lfns, state="available"
            ).values_list("file__lfn", flat=True)
        )
        if missing := [lfn for lfn in lfns if lfn not in there]:
            gone[key] = missing
    return gone


def recovering_tasks(vo: str, dataset_name: str, but: int = 0) -> dict[str, Task]:
    """Files of the dataset that live tasks, all but one, make again, with these tasks."""
    planned = PlannedOutput.objects.filter(writer__dataset_name=dataset_name, writer__vo=vo)
    live = planned.exclude(task__status__in=TASK.final).exclude(task_id=but)
    rows = live.select_related("task__params").order_by("task_id")
    again = [row.task for row in rows if row.task.params.task_params.get("oldDatasetName") == dataset_name]
    return {lfn: task for task in again for lfn in task.params.task_params["lostFiles"]}


BESIDE = "had parts of files beside files of other datasets, which is not supported yet"


def check_lost(vo: str, dataset_name: str, lfns: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with files that a task is to make again: those that are not known to be lost, or that another one makes."""
    if not (dataset_name and lfns):
        return
    made, under_way = made_outputs(vo, dataset_name, lfns), recovering_tasks(vo, dataset_name)
    jobs: dict[int, set[int]] = defaultdict(set)
    for output in made.values():
        jobs[output.task_id].add(output.job_id)
    beside = {task_id for task_id, of_task in jobs.items() if parts_beside_files(contents(task_id, of_task))}
    for i, lfn in enumerate(lfns):
        if lfn not in made or not made[lfn].lost:
            yield problem(f"lostFiles[{i}]", "lost", f"{lfn[:255]} is no file of {dataset_name} that is known to be lost")
        elif lfn in under_way:
            yield problem(f"lostFiles[{i}]", "unique", f"task {under_way[lfn].id} makes {lfn} again already")
        elif made[lfn].task_id in beside:
            yield problem(f"lostFiles[{i}]", "not_supported_yet", f"the job that made {lfn[:255]} {BESIDE}")


def taken_over(task: Task) -> str:
    """Why a task that was to make lost files again must not be run again: others make, or made, one of them; else empty.

    In a transaction, in which nobody has files of the dataset made again: so it stays.
    """
    params = task.params.task_params
    dataset, lost = params.get("oldDatasetName") or "", params.get("lostFiles") or ()
    if not (dataset and lost):
        return ""
    list(CatalogueDataset.objects.select_for_update(no_key=True).filter(vo=task.vo, name=dataset))
    under_way, made = recovering_tasks(task.vo, dataset, but=task.id), made_outputs(task.vo, dataset, lost)
    for lfn in lost:
        if lfn in under_way:
            return f"task {under_way[lfn].id} makes {lfn} again"
        if lfn in made and not made[lfn].lost and made[lfn].task_id != task.id:
            return f"task {made[lfn].task_id} has made {lfn} again"
    return ""


class Recovery(NamedTuple):
    """What a task makes again: contents of the old jobs, and by where each begins the names that it gives."""

    contents: Sequence[Content]
    names: Mapping[Beginning, Sequence[str]]


def recovery_of(task: Task) -> Recovery:
    """What a task with lostFiles makes again."""
    params = task.params.task_params
    dataset, lost = params["oldDatasetName"], params["lostFiles"]
    rows = File.objects.filter(
        lfn__in=lost, dataset__dataset_name=dataset, dataset__vo=task.vo, lost_at__isnull=False, task_id__lt=task.id
    )
    newest = {lfn: (task_id, job or 0) for lfn, task_id, job in rows.order_by("id").values_list("lfn", "task_id", "out_job_id")}
    files: list[Content] = []
    names: dict[Beginning, list[str]] = {}
    for old_id in sorted({task_id for task_id, _ in newest.values()}):
        jobs = {job for task_id, job in newest.values() if task_id == old_id}
        found = contents(old_id, jobs)
        made: dict[int, list[str]] = defaultdict(list)
        for output in made_by_jobs(old_id, dataset, jobs):
            made[output.job_id].append(output.lfn)
        files += found
        names |= {c.beginning: made[c.job_id] for c in found if c.master and c.type in MASTER_TYPES}
    return Recovery(files, names)


def wanted_parts(task: Task) -> dict[str, list[WantedPart]]:
    """The parts of files of which a task with lostFiles makes them again, by name of the file."""
    parts: dict[str, list[WantedPart]] = defaultdict(list)
    for position, content in enumerate(recovery_of(task).contents):
        if content.part:
            parts[content.file.lfn].append(WantedPart(content.job_id, position, *content.part))
    return parts
