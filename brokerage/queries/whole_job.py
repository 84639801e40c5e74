"""Everything that belongs to one job: six queries, whatever it has."""

from __future__ import annotations

from dataclasses import dataclass

from brokerage.models import JobChange, JobInput, JobRetryHistory
from workqueues.models import File


@dataclass(frozen=True, slots=True)
class InputOfJob:
    """One use of a file by the job."""

    file_id: int
    lfn: str
    dataset_id: int
    dataset_name: str
    type: str
    tracked: bool
    attempt_nr: int
    use: str


@dataclass(frozen=True, slots=True)
class PartsOfJob:
    """What belongs to a job beside its own rows."""

    job_inputs: list[InputOfJob]
    outputs: list[File]
    history: list[JobChange]
    retry_of: list[int]
    retried_by: list[int]


def parts_of_job(job_id: int) -> PartsOfJob:
    """Read what belongs to a job."""
    return PartsOfJob(
        job_inputs=_inputs(job_id),
        outputs=list(File.objects.filter(out_job_id=job_id).order_by("id")),
        history=list(JobChange.objects.filter(job_id=job_id).order_by("id")),
        retry_of=_retries(new_job_id=job_id, told="old_job_id"),
        retried_by=_retries(old_job_id=job_id, told="new_job_id"),
    )


def _inputs(job_id: int) -> list[InputOfJob]:
    uses = list(JobInput.objects.filter(job_id=job_id).order_by("id"))
    files = File.objects.select_related("dataset").in_bulk([u.file_id for u in uses])
    return [
        InputOfJob(
            use.file_id,
            file.lfn,
            file.dataset_id,
            file.dataset.dataset_name,
            file.type,
            use.tracked,
            use.attempt_nr,
            use.status,
        )
        for use in uses
        if (file := files.get(use.file_id)) is not None
    ]


def _retries(told: str, **of: int) -> list[int]:
    """The other ends of the retries that begin or end at a job, each once."""
    found = JobRetryHistory.objects.filter(**of).order_by(told).values_list(told, flat=True)
    return list(found.distinct())
