"""Making jobs.

Serial numbers and seeds reserved, then the jobs with their inputs, outputs and history, all by COPY in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from broker_site.kernel.machine import NEW
from brokerage.models import TaskQueue
from workqueues.ledger.claims import hold_claim
from workqueues.ledger.copying import copy_rows, take_ids
from workqueues.ledger.moves import Stale, move_dataset, move_task
from workqueues.models import Dataset, File, OutputTemplate, Task
from workqueues.rules.seeds import choose_seeds


@dataclass(frozen=True, slots=True)
class InputUse:
    """One input of a job: the file as it was picked."""

    file_id: int
    dataset_id: int
    attempt_nr: int
    tracked: bool
    previous_job_id: int | None = None


@dataclass(frozen=True, slots=True)
class OutputName:
    """One output of a job: dataset, type (output, log) and name."""

    dataset_id: int
    type: str
    lfn: str


@dataclass(frozen=True, slots=True)
class NewJob:
    """One job to make. Sizes: ram and disk in MB for the whole job, walltime in s, input in bytes; 0 where unknown."""

    id: int
    computing_queue_id: int
    task_queue_id: int
    storage: str
    inputs: Sequence[InputUse]
    outputs: Sequence[OutputName]
    parameters: str
    attempt_nr: int
    core_count: int = 1
    ram_mb: int = 0
    disk_mb: int = 0
    walltime_s: int = 0
    input_bytes: int = 0
    n_events: int = 0


@dataclass(frozen=True, slots=True)
class Requirements:
    """What makes jobs share a task queue (row D1)."""

    computing_queue_id: int
    vo: str
    prod_source_label: str
    work_queue_id: int
    gshare: str
    resource_type: str
    core_count: int
    ram_mb: int
    disk_mb: int
    walltime_s: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """Numbers that belong to a generator's jobs and to no others: job ids, first serial number per template, seed files."""

    job_ids: Sequence[int]
    first_serial: Mapping[int, int]
    seeds: Sequence[File]


def reserve(run_id: str, task_id: int, n: int) -> Reserved:
    """Reserve ids, serial numbers and, where the task uses them, seeds for `n` jobs.

    What is not used leaves a gap, never a twin.
    """
    with transaction.atomic():
        hold_claim(task_id, run_id)
        seeds = _take_seeds(task_id, n)
        first: dict[int, int] = {}
        for template in OutputTemplate.objects.select_for_update().filter(task_id=task_id).order_by("id"):
            first[template.id] = template.serial_nr + 1
            OutputTemplate.objects.filter(id=template.id).update(serial_nr=template.serial_nr + n)
        return Reserved(take_ids("brokerage_job", n), first, seeds)


def _take_seeds(task_id: int, n: int) -> list[File]:
    """The lowest free seeds, then new ones (decision of seed 001, "Random seed assignment"), picked for this run."""
    dataset = Dataset.objects.select_for_update().filter(task_id=task_id, type="random_seed").first()
    if dataset is None:
        return []
    # Task and type too: the index of a task's files has the newest seed last; by the dataset alone all seeds would be read.
    known = File.objects.filter(dataset_id=dataset.id, task_id=task_id, type="random_seed")
    free = list(known.filter(status="ready").order_by("first_event")[:n])
    largest = known.order_by("-id").values_list("first_event", flat=True).first() or 0
    reused, fresh = choose_seeds([f.first_event or 0 for f in free], largest, n)
    File.objects.bulk_create(
        File(dataset_id=dataset.id, task_id=task_id, lfn=f"pseudo_seed_{s}", type="random_seed", first_event=s, status="ready")
        for s in fresh
    )
    chosen = list(known.filter(status="ready", first_event__in=[*reused, *fresh]).order_by("first_event"))
    File.objects.filter(id__in=[f.id for f in chosen]).update(status="picked")
    Dataset.objects.filter(id=dataset.id).update(
        n_files=F("n_files") + len(fresh),
        n_files_to_be_used=F("n_files_to_be_used") + len(fresh),
        n_files_used=F("n_files_used") + len(chosen),
    )
    return chosen


def task_queues(requirements: Sequence[Requirements]) -> dict[Requirements, int]:
    """The task queue of each set of requirements; missing ones are made."""
    wanted = list(dict.fromkeys(requirements))
    TaskQueue.objects.bulk_create([TaskQueue(**_columns(r)) for r in wanted], ignore_conflicts=True)
    return {r: TaskQueue.objects.values_list("id", flat=True).get(**_columns(r)) for r in wanted}


def _columns(requirements: Requirements) -> dict[str, object]:
    return {name: getattr(requirements, name) for name in Requirements.__dataclass_fields__}


def generate(run_id: str, task_id: int, jobs: Sequence[NewJob], who: str, decision_id: int | None) -> None:
    """Insert jobs as activated, their inputs picked -> running, their outputs, one history row each; the task starts to run.

    Raises Stale, having written nothing, when the claim or one of the files is no longer this run's.
    """
    if not jobs:
        return
    with transaction.atomic():
        task = hold_claim(task_id, run_id)
        output_ids = sorted({o.dataset_id for j in jobs for o in j.outputs})
        datasets = list(Dataset.objects.select_for_update().filter(id__in=output_ids).order_by("id"))
        _use_inputs(jobs)
        _copy_jobs(task, jobs, who, decision_id)
        _copy_outputs(task, jobs)
        for dataset in datasets:
            n = sum(1 for j in jobs for o in j.outputs if o.dataset_id == dataset.id)
            Dataset.objects.filter(id=dataset.id).update(
                n_files=F("n_files") + n, n_files_to_be_used=F("n_files_to_be_used") + n, n_files_used=F("n_files_used") + n
            )
            if dataset.status != "running":
                move_dataset(dataset, "running", who, "jobs write to it")
        _record_retries(task_id, jobs)
        if task.status == "ready":
            move_task(
                task,
                "running",
                who,
                f"{len(jobs)} jobs made",
                start_time=task.start_time or Now(),
                frozen_time=None,
                error_dialog="",
            )
        else:
            Task.objects.filter(id=task_id).update(frozen_time=None, error_dialog="")


def _use_inputs(jobs: Sequence[NewJob]) -> None:
    tracked = [(use.file_id, job.id) for job in jobs for use in job.inputs if use.tracked]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE workqueues_file f SET status = 'running', job_id = v.job_id, last_attempt_time = now()
            FROM unnest(%s::bigint[], %s::bigint[]) AS v(file_id, job_id) WHERE f.id = v.file_id AND f.status = 'picked'
            """,
            [[t[0] for t in tracked], [t[1] for t in tracked]],
        )
        if cursor.rowcount != len(tracked):
            raise Stale(f"{len(tracked) - cursor.rowcount} of {len(tracked)} files are no longer picked")


def _copy_jobs(task: Task, jobs: Sequence[NewJob], who: str, decision_id: int | None) -> None:
    copy_rows(
        "brokerage_job",
        ["id", "task_id", "status", "priority", "ready_priority", "task_queue_id", "computing_queue_id", "work_queue_id",
         "resource_type", "core_count", "attempt_nr"],
        (
            (j.id, task.id, "activated", task.current_priority, -task.current_priority, j.task_queue_id, j.computing_queue_id,
             task.work_queue_id, task.resource_type, j.core_count, j.attempt_nr)
            for j in jobs
        ),
    )  # fmt: skip
    constant = (task.vo, task.user_name, task.prod_source_label, task.processing_type, task.working_group, task.trans_path)
    release = " ".join(filter(None, [task.trans_uses, task.trans_home]))
    copy_rows(
        "brokerage_jobspec",
        ["job_id", "job_name", "vo", "user_name", "prod_source_label", "processing_type", "working_group", "transformation",
         "software_release", "job_parameters", "ram_mb", "disk_mb", "walltime_s", "n_input_files", "input_bytes", "n_events",
         "nucleus", "storage", "decision_id"],
        (
            (j.id, f"{task.task_name[:230]}.{j.id}", *constant, release, j.parameters, j.ram_mb, j.disk_mb, j.walltime_s,
             len(j.inputs), j.input_bytes, j.n_events, task.nucleus, j.storage, decision_id)
            for j in jobs
        ),
    )  # fmt: skip
    copy_rows(
        "brokerage_jobinput",
        ["job_id", "file_id", "dataset_id", "tracked", "attempt_nr"],
        ((j.id, u.file_id, u.dataset_id, u.tracked, u.attempt_nr) for j in jobs for u in j.inputs),
    )
    copy_rows("brokerage_jobchange", ["job_id", "old", "new", "epoch", "who"], ((j.id, NEW, "activated", 0, who) for j in jobs))


def _copy_outputs(task: Task, jobs: Sequence[NewJob]) -> None:
    def rows() -> Iterator[tuple[object, ...]]:
        for job in jobs:
            for output in job.outputs:
                yield output.dataset_id, task.id, output.lfn, output.type, "running", job.id

    copy_rows("workqueues_file", ["dataset_id", "task_id", "lfn", "type", "status", "out_job_id"], rows())


def _record_retries(task_id: int, jobs: Sequence[NewJob]) -> None:
    """Old job -> new job for every input that an earlier job gave back.

    The origin is the smallest one recorded for the old job.
    """
    pairs = sorted({(u.previous_job_id, j.id) for j in jobs for u in j.inputs if u.previous_job_id})
    if not pairs:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO brokerage_jobretryhistory (task_id, old_job_id, new_job_id, origin_job_id, relation_type)
            SELECT %s, v.old, v.new, COALESCE(
                (SELECT min(h.origin_job_id) FROM brokerage_jobretryhistory h WHERE h.new_job_id = v.old), v.old), 'retry'
            FROM unnest(%s::bigint[], %s::bigint[]) AS v(old, new) ON CONFLICT DO NOTHING
            """,
            [task_id, [p[0] for p in pairs], [p[1] for p in pairs]],
        )


def start_noted(job_id: int) -> None:
    """Note that a job began to run at its queue, at most once a minute per queue."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE brokerage_computingqueue SET last_start = now()
            WHERE id = (SELECT computing_queue_id FROM brokerage_job WHERE id = %s)
              AND (last_start IS NULL OR last_start < now() - interval '1 minute')
            """,
            [job_id],
        )
