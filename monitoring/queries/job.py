"""One job with what its page shows beside its inputs (`brokerage.queries.jobs`): outputs with their copies, pilot, tries."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Q, Subquery

from broker_site.foundation.access.permissions import VoScope
from brokerage.models import Job, JobRetryHistory, Pilot
from brokerage.models.job import MERGE_RELATION, TO_REASSIGN
from monitoring.queries.copies import Copy, copies_of
from monitoring.queries.database import alias
from monitoring.queries.jobs import NO_QUEUE, OPEN
from workqueues.models import File, Task

MOST_FILES = 500
"""Inputs, and outputs, that a page shows."""
MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One output of the job with its copies."""

    file_id: int
    lfn: str
    dataset_name: str
    type: str
    status: str
    fsize: int | None
    checksum: str
    n_events: int | None
    copies: tuple[Copy, ...]
    no_output: bool
    lost_at: datetime | None


@dataclass(frozen=True, slots=True)
class Try:
    """One job in the chain of tries; `retry_of`: the jobs whose inputs it tries again. `anew`: why it was closed to be brokered
    anew, if it was.
    """

    id: int
    status: str
    attempt_nr: int
    computing_queue: str
    status_since: datetime
    retry_of: tuple[int, ...]
    anew: str = ""


SAME = ("lfn", "type", "status", "fsize", "checksum", "n_events", "no_output", "lost_at")
"""Columns of a file that are shown as they are stored."""


def find_job(job_id: int, scope: VoScope) -> Job | None:
    """The job with its specification and result, and who submitted its task, if there is one in the scope."""
    related = ("spec", "result", "computing_queue")
    submitter = Task.objects.filter(id=OuterRef("task_id")).values("submitted_by")
    jobs = Job.objects.using(alias()).select_related(*related).annotate(submitted_by=Subquery(submitter))
    return jobs.filter(scope.q("spec__vo"), id=job_id).first()


def job_outputs(job_id: int, **only: Any) -> list[OutputRow]:
    """Outputs of a job, at most MOST_FILES, or those of them that `only` says; two statements."""
    chosen = File.objects.using(alias()).filter(out_job_id=job_id, **only).select_related("dataset")
    files = list(chosen.order_by("type", "id")[:MOST_FILES])
    copies = copies_of(files)
    return [
        OutputRow(
            **{name: getattr(f, name) for name in SAME},
            file_id=f.id,
            dataset_name=f.dataset.dataset_name,
            copies=tuple(copies[f.dataset.dataset_name, f.lfn]),
        )
        for f in sorted(files, key=lambda f: f.type != "output")
    ]


def pilot_of(job: Job) -> Pilot | None:
    """The pilot that holds the job, or that reported its end."""
    pilot_id = job.lease_holder or (job.result.pilot_id if hasattr(job, "result") else None)
    return None if pilot_id is None else Pilot.objects.using(alias()).select_related("queue").filter(id=pilot_id).first()


def merges_of(job_id: int) -> tuple[list[int], list[int]]:
    """Jobs whose outputs this one merges, and those that were made to merge its own, by id."""
    links = JobRetryHistory.objects.using(alias()).filter(relation_type=MERGE_RELATION)
    near = links.filter(Q(old_job_id=job_id) | Q(new_job_id=job_id)).values_list("old_job_id", "new_job_id")[:MOST_TRIES]
    pairs = sorted(set(near))
    return [old for old, new in pairs if new == job_id], [new for old, new in pairs if old == job_id]


def tries_of(job_id: int) -> list[Try]:
    """The job with those that it took inputs over from and that took over from it, by id; empty when it is alone."""
    history = JobRetryHistory.objects.using(alias()).exclude(relation_type=MERGE_RELATION)
    near = list(history.filter(Q(old_job_id=job_id) | Q(new_job_id=job_id)).order_by("id")[:MOST_TRIES])
    if not near:
        return []
    chain = history.filter(origin_job_id__in={link.origin_job_id for link in near}).order_by("id")[:MOST_TRIES]
    retry_of: dict[int, list[int]] = defaultdict(list)
    for link in {(link.old_job_id, link.new_job_id) for link in [*near, *chain]}:
        retry_of[link[1]].append(link[0])
        retry_of.setdefault(link[0], [])
    jobs = Job.objects.using(alias()).filter(id__in=list(retry_of)).order_by("id")
    return [
        Try(
            j.id, j.status, j.attempt_nr, _queue_of(j), j.status_since,
            tuple(sorted(retry_of[j.id])),
            j.result.error_message if j.sub_status == TO_REASSIGN and hasattr(j, "result") else "",
        )
        for j in jobs.select_related("computing_queue", "result")
    ]  # fmt: skip


def _queue_of(job: Job) -> str:
    """The name of its queue, or what stands for it."""
    if job.computing_queue is not None:
        return job.computing_queue.name
    return OPEN if job.ended_at is None else NO_QUEUE
