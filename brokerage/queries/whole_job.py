"""Everything that belongs to one job: seven queries at most, whatever it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brokerage.models import JobChange, JobInput, JobRetryHistory
from workqueues.models import EventRange, File


@dataclass(frozen=True, slots=True)
class InputOfJob:
    """One use of a file by the job, or of events of it: from `first_event` to `last_event`, counted from 0 in the file; None
    where it has the file whole.
    """

    file_id: int
    lfn: str
    dataset_id: int
    dataset_name: str
    type: str
    tracked: bool
    attempt_nr: int
    use: str
    event_range_id: int | None = None
    first_event: int | None = None
    last_event: int | None = None


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
    ranges = _ranges([u.event_range_id for u in uses if u.event_range_id is not None])
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
            use.event_range_id,
            *ranges.get(use.event_range_id or 0, (None, None)),
        )
        for use in uses
        if (file := files.get(use.file_id)) is not None
    ]


def _ranges(ids: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
    """First and last event of ranges."""
    if not ids:
        return {}
    spans = EventRange.objects.filter(id__in=ids).values_list("id", "def_min_event_id", "def_max_event_id")
    return {range_id: (first, last) for range_id, first, last in spans}


def _retries(told: str, **of: int) -> list[int]:
    """The other ends of the retries that begin or end at a job, each once."""
    found = JobRetryHistory.objects.filter(**of).order_by(told).values_list(told, flat=True)
    return list(found.distinct())
