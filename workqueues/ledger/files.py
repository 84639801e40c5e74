"""Input files: picked for jobs, given back, used, and what became of them; output files when their job ends.

Every verb keeps the counters of the datasets in the same transaction; what a counter counts: facts on datasets 1.2.4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from workqueues.ledger.claims import hold_claim
from workqueues.models import Dataset, File, FileChange
from workqueues.rules.attempts import after_try
from workqueues.states import INPUT_TYPES

Outcome = Literal["finished", "failed", "returned"]
"""How a job treats its inputs: used; a failure; a try that was not a failure (closed, cancelled)."""


@dataclass(frozen=True, slots=True)
class MadeFile:
    """What is known of an output that a job made: size in bytes, adler32 as 8 hex digits."""

    size: int
    checksum: str
    n_events: int | None = None


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The end of one job as its files see it.

    `made` maps ids of output files to what was made; the others failed, unless they are among `not_needed`, which a finished job
    may leave out.
    `suspects` maps ids of input files that the job could not read to the reason: they are held until the catalogue was asked.
    """

    job_id: int
    outcome: Outcome
    inputs: Sequence[int]
    outputs: Sequence[int] = ()
    made: Mapping[int, MadeFile] = field(default_factory=dict)
    suspects: Mapping[int, str] = field(default_factory=dict)
    not_needed: frozenset[int] = frozenset()


def take_files(run_id: str, task_id: int, dataset_id: int, limit: int) -> list[File]:
    """Pick up to `limit` ready files of a dataset for the holder of the claim, lowest ids first."""
    with transaction.atomic():
        hold_claim(task_id, run_id)
        dataset = Dataset.objects.select_for_update().get(id=dataset_id)
        wanted = min(limit, dataset.n_files_to_be_used - dataset.n_files_used)
        if wanted <= 0:
            return []
        with connection.cursor() as cursor:
            cursor.execute(
                """
                UPDATE workqueues_file SET status = 'picked'
                WHERE id IN (SELECT id FROM workqueues_file WHERE dataset_id = %s AND status = 'ready' AND held = ''
                             ORDER BY id LIMIT %s FOR UPDATE) RETURNING id
                """,
                [dataset_id, wanted],
            )
            ids = [row[0] for row in cursor.fetchall()]
        Dataset.objects.filter(id=dataset_id).update(n_files_used=F("n_files_used") + len(ids))
        return list(File.objects.filter(id__in=ids).order_by("id")) if ids else []


def give_back_picked(run_id: str, task_id: int) -> int:
    """Make every picked file of the task ready again: those of this run that no job took, and those of a run that died."""
    with transaction.atomic():
        hold_claim(task_id, run_id)
        datasets = list(Dataset.objects.select_for_update().filter(task_id=task_id, type__in=INPUT_TYPES).order_by("id"))
        total = 0
        for dataset in datasets:
            back = File.objects.filter(dataset_id=dataset.id, status="picked").update(status="ready")
            if back:
                Dataset.objects.filter(id=dataset.id).update(n_files_used=F("n_files_used") - back)
                total += back
        return total


def settle_files(outcomes: Sequence[JobOutcome]) -> None:
    """Apply the ends of jobs to their files and the counters of the datasets, in the caller's transaction."""
    by_input = {file_id: o for o in outcomes for file_id in o.inputs}
    by_output = {file_id: o for o in outcomes for file_id in o.outputs}
    ids = sorted({*by_input, *by_output})
    if not ids:
        return
    dataset_ids = sorted(set(File.objects.filter(id__in=ids).values_list("dataset_id", flat=True)))
    list(Dataset.objects.select_for_update().filter(id__in=dataset_ids).order_by("id").values_list("id"))
    files = list(File.objects.select_for_update().filter(id__in=ids).order_by("id"))
    deltas: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    notes: list[FileChange] = []
    for file in files:
        if file.id in by_input:
            _settle_input(file, by_input[file.id], deltas[file.dataset_id], notes)
        else:
            _settle_output(file, by_output[file.id], deltas[file.dataset_id])
    File.objects.bulk_update(
        files,
        ["status", "attempt_nr", "failed_attempt", "held", "fsize", "checksum", "n_events", "no_output"],
        batch_size=1000,
    )
    FileChange.objects.bulk_create(notes)
    for dataset_id, changes in sorted(deltas.items()):
        Dataset.objects.filter(id=dataset_id).update(
            modification_time=Now(), **{column: Coalesce(F(column), 0) + n for column, n in changes.items() if n}
        )


def _settle_input(file: File, job: JobOutcome, delta: dict[str, int], notes: list[FileChange]) -> None:
    if file.status != "running" or file.job_id != job.job_id:
        return  # another job has the file by now: this end says nothing about it
    tried = after_try(file.attempt_nr, file.max_attempt, file.failed_attempt, file.max_failure, job.outcome)
    file.attempt_nr, file.failed_attempt, file.status = tried.attempt_nr, tried.failed_attempt, tried.status
    if file.status == "finished":
        delta["n_files_finished"] += 1
        if file.n_events:
            delta["n_events_used"] += file.n_events
    elif file.status == "failed":
        delta["n_files_failed"] += 1
    else:
        delta["n_files_used"] -= 1
        if reason := job.suspects.get(file.id):
            file.held = reason[:255]
            notes.append(
                FileChange(
                    file_id=file.id, task_id=file.task_id, old="ready", new="held", who=f"job:{job.job_id}", why=reason[:510]
                )
            )


def _settle_output(file: File, job: JobOutcome, delta: dict[str, int]) -> None:
    if file.status != "running" or file.out_job_id != job.job_id:
        return
    made = job.made.get(file.id)
    if made is not None:
        file.status, file.fsize, file.checksum, file.n_events = "finished", made.size, made.checksum, made.n_events
        delta["n_files_finished"] += 1
        if made.n_events:
            delta["n_events_used"] += made.n_events
    elif job.outcome == "finished" and file.id in job.not_needed:
        file.status, file.no_output = "finished", True
        delta["n_files_finished"] += 1
    else:
        file.status = "failed"
        delta["n_files_failed"] += 1
