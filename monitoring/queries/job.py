"""One job with what its page shows beside its inputs (`brokerage.queries.jobs`): outputs with their copies, pilot, tries."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from broker_site.foundation.access.permissions import VoScope
from brokerage.models import Job, JobRetryHistory, Pilot
from monitoring.queries.database import alias
from workqueues.models import CatalogueFile, File, Replica

MOST_FILES = 500
"""Inputs, and outputs, that a page shows."""
MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One output of the job with the storage endpoints that have a copy."""

    file_id: int
    lfn: str
    dataset_name: str
    type: str
    status: str
    fsize: int | None
    checksum: str
    n_events: int | None
    storages: tuple[str, ...]
    no_output: bool
    lost_at: datetime | None


@dataclass(frozen=True, slots=True)
class Try:
    """One job in the chain of tries; `retry_of`: the jobs whose inputs it tries again."""

    id: int
    status: str
    attempt_nr: int
    computing_queue: str
    status_since: datetime
    retry_of: tuple[int, ...]


SAME = ("lfn", "type", "status", "fsize", "checksum", "n_events", "no_output", "lost_at")
"""Columns of a file that are shown as they are stored."""


def find_job(job_id: int, scope: VoScope) -> Job | None:
    """The job with its specification and result, if there is one in the scope."""
    related = ("spec", "result", "computing_queue", "task_queue")
    return Job.objects.using(alias()).select_related(*related).filter(scope.q("task_queue__vo"), id=job_id).first()


def job_outputs(job_id: int) -> list[OutputRow]:
    """Outputs of a job, at most MOST_FILES; two statements."""
    files = list(
        File.objects.using(alias()).filter(out_job_id=job_id).select_related("dataset").order_by("type", "id")[:MOST_FILES]
    )
    copies = _copies(files)
    return [
        OutputRow(
            **{name: getattr(f, name) for name in SAME},
            file_id=f.id,
            dataset_name=f.dataset.dataset_name,
            storages=tuple(copies[f.dataset.dataset_name, f.lfn]),
        )
        for f in sorted(files, key=lambda f: f.type != "output")
    ]


def _copies(files: list[File]) -> dict[tuple[str, str], list[str]]:
    """(dataset, LFN) -> storage endpoints with a copy, by name."""
    storages: dict[tuple[str, str], list[str]] = defaultdict(list)
    if not files:
        return storages
    known = CatalogueFile.objects.filter(
        lfn__in=[f.lfn for f in files],
        dataset__name__in={f.dataset.dataset_name for f in files},
        dataset__vo__in={f.dataset.vo for f in files},
    )
    copies = Replica.objects.using(alias()).filter(file__in=known)
    for dataset, lfn, storage in copies.order_by("storage").values_list("file__dataset__name", "file__lfn", "storage"):
        storages[dataset, lfn].append(storage)
    return storages


def pilot_of(job: Job) -> Pilot | None:
    """The pilot that holds the job, or that reported its end."""
    pilot_id = job.lease_holder or (job.result.pilot_id if hasattr(job, "result") else None)
    return None if pilot_id is None else Pilot.objects.using(alias()).select_related("queue").filter(id=pilot_id).first()


def tries_of(job_id: int) -> list[Try]:
    """The job with those that it took inputs over from and that took over from it, by id; empty when it is alone."""
    history = JobRetryHistory.objects.using(alias())
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
        Try(j.id, j.status, j.attempt_nr, j.computing_queue.name, j.status_since, tuple(sorted(retry_of[j.id])))
        for j in jobs.select_related("computing_queue")
    ]
