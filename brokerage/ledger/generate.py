"""Making jobs: the jobs with their inputs, outputs and history, all by COPY in one transaction.

The numbers that they carry are reserved before (`reservation`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from broker_site.foundation.kernel.machine import NEW
from broker_site.foundation.sql.copying import cell, copy_lines, escaped
from brokerage.rules.placement.new_job import DealtFiles, NewJob
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.events import insert_ranges, settle_file_states
from workqueues.ledger.moves import Stale, move_dataset, move_task
from workqueues.ledger.secondaries import advance
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.event_ranges import NewRange


def generate(
    run_id: str,
    task_id: int,
    jobs: Iterable[NewJob],
    who: str,
    decision_id: int | None,
    written: Mapping[int, int],
    cut: Collection[int] = (),
    dealt: Sequence[DealtFiles] = (),
) -> None:
    """Insert jobs as activated, their inputs picked -> running, their outputs, one history row each; the task starts to run.

    `written`: output dataset -> how many files of it the jobs make; `cut`: input datasets of which jobs get ranges. The jobs are
    asked for one by one, while the database takes in those before. Raises Stale, having written nothing, when the claim or one
    of the files is no longer this run's.
    """
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        locked = {*written, *cut, *(d.dataset_id for d in dealt)}
        datasets = list(Dataset.objects.select_for_update(no_key=True).filter(id__in=sorted(locked)).order_by("id"))
        made: list[NewJob] = []
        copy_lines("brokerage_jobinput", _INPUT, _whole_files(jobs, made))
        _use_inputs(task_id, made)
        if cut:
            _use_ranges(task_id, [r for j in made for r in j.ranges])
        _copy_jobs(task, made, decision_id)
        copy_lines("brokerage_jobchange", _CHANGE, (f"{j.id}\t{NEW}\tactivated\t0\t{who}" for j in made))
        for dataset_id, n in dealt:
            advance(dataset_id, n)
        copy_lines("workqueues_file", _OUTPUT, _outputs(task_id, made))
        _count_outputs(datasets, written, who)
        _record_retries(task_id, made)
        _start(task, who, len(made))


def _count_outputs(datasets: Sequence[Dataset], written: Mapping[int, int], who: str) -> None:
    for dataset in datasets:
        if n := written.get(dataset.id, 0):
            Dataset.objects.filter(id=dataset.id).update(
                n_files=F("n_files") + n, n_files_to_be_used=F("n_files_to_be_used") + n, n_files_used=F("n_files_used") + n
            )
            if dataset.status != "running":
                move_dataset(dataset, "running", who, "jobs write to it")


def _start(task: Task, who: str, n: int) -> None:
    """The task runs, if it did not before."""
    if task.status == "ready":
        started = task.start_time or Now()
        move_task(task, "running", who, f"{n} jobs made", start_time=started, frozen_time=None, error_dialog="")
    else:
        Task.objects.filter(id=task.id).update(frozen_time=None, error_dialog="")


_JOB = (
    "id", "kind", "computing_queue_id", "task_queue_id", "core_count", "attempt_nr", "task_id", "status", "priority",
    "ready_priority", "work_queue_id", "resource_type",
)  # fmt: skip
_SPEC = (
    "job_id", "storage", "job_parameters", "ram_mb", "disk_mb", "walltime_s", "n_input_files", "input_bytes", "n_events",
    "job_name", "vo", "user_name", "prod_source_label", "processing_type", "working_group", "transformation",
    "software_release", "nucleus", "decision_id",
)  # fmt: skip
_INPUT = ("job_id", "file_id", "dataset_id", "tracked", "attempt_nr", "event_range_id")
_CHANGE = ("job_id", "old", "new", "epoch", "who")
_OUTPUT = ("task_id", "status", "out_job_id", "dataset_id", "type", "lfn")


def _copy_jobs(task: Task, jobs: Sequence[NewJob], decision_id: int | None) -> None:
    """The narrow and the wide rows; what all jobs of the task have in common is put into text once."""
    common = "\t".join(
        map(cell, (task.id, "activated", task.current_priority, -task.current_priority, task.work_queue_id, task.resource_type))
    )
    copy_lines(
        "brokerage_job",
        _JOB,
        (
            f"{j.id}\t{j.kind:d}\t{j.computing_queue_id}\t{j.task_queue_id}\t{j.slot.core_count}\t{j.attempt_nr}\t{common}"
            for j in jobs
        ),
    )
    release = " ".join(filter(None, [task.trans_uses, task.trans_home]))
    name = escaped(task.task_name[:230])
    constant = "\t".join(
        map(
            cell,
            (task.vo, task.user_name, task.prod_source_label, task.processing_type, task.working_group, task.trans_path,
             release, task.nucleus, decision_id),
        )
    )  # fmt: skip
    copy_lines(
        "brokerage_jobspec",
        _SPEC,
        (
            f"{j.id}\t{escaped(j.storage)}\t{escaped(j.parameters)}\t{j.slot.ram_mb}\t{j.slot.disk_mb}\t{j.slot.walltime_s}"
            f"\t{len(j.inputs) + len(j.ranges)}"
            f"\t{j.input_bytes}\t{j.n_events}\t{name}.{j.id}\t{constant}"
            for j in jobs
        ),
    )


def _whole_files(jobs: Iterable[NewJob], made: list[NewJob]) -> Iterator[str]:
    """Uses of whole files; the jobs are kept in `made`."""
    for job in jobs:
        made.append(job)
        for file_id, dataset_id, attempt_nr, tracked in job.inputs:
            yield f"{job.id}\t{file_id}\t{dataset_id}\t{'t' if tracked else 'f'}\t{attempt_nr}\t\\N"


def _use_ranges(task_id: int, ranges: Sequence[NewRange]) -> None:
    """Ranges of events with their uses; their files are running, or ready where events are left."""
    ids = insert_ranges(task_id, ranges)
    copy_lines(
        "brokerage_jobinput",
        _INPUT,
        (f"{r.job_id}\t{r.file_id}\t{r.dataset_id}\tt\t{r.attempt_nr}\t{id_}" for r, id_ in zip(ranges, ids, strict=True)),
    )
    settle_file_states(sorted({r.file_id for r in ranges}))


def _use_inputs(task_id: int, jobs: Sequence[NewJob]) -> None:
    """Tracked inputs: picked -> running. They are found by their uses, which stand already.

    The bounds of their ids let the database read no more of a large table than where they are.
    """
    tracked = [u.file_id for j in jobs for u in j.inputs if u.tracked]
    if not tracked:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE workqueues_file f SET status = 'running', job_id = i.job_id, last_attempt_time = now()
            FROM brokerage_jobinput i
            WHERE i.job_id = ANY (%s) AND i.tracked AND f.id = i.file_id AND f.task_id = %s AND f.status = 'picked'
              AND f.id BETWEEN %s AND %s
            """,
            [[j.id for j in jobs], task_id, min(tracked), max(tracked)],
        )
        if cursor.rowcount != len(tracked):
            raise Stale(f"{len(tracked) - cursor.rowcount} of {len(tracked)} files are no longer picked")


def _outputs(task_id: int, jobs: Sequence[NewJob]) -> Iterator[str]:
    for job in jobs:
        for dataset_id, kind, lfn in job.outputs:
            yield f"{task_id}\trunning\t{job.id}\t{dataset_id}\t{kind}\t{escaped(lfn)}"


def _record_retries(task_id: int, jobs: Sequence[NewJob]) -> None:
    """Old job -> new job for every input that an earlier job gave back.

    The origin is the smallest one recorded for the old job.
    """
    pairs = sorted({(previous, j.id) for j in jobs for previous in j.previous_jobs})
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
