"""One job with what its page shows beside its inputs (`brokerage.queries.jobs`): outputs with their copies, pilot, tries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, Subquery

from broker_site.foundation.access.permissions import VoScope
from brokerage.models import Job, JobRetryHistory, Pilot
from brokerage.models.job import MERGE_RELATION, TO_REASSIGN
from brokerage.rules.dispatch.settlement import first_line
from monitoring.queries.copies import Copy, copies_of
from monitoring.queries.database import alias
from monitoring.queries.jobs import NO_QUEUE, OPEN, memory_of
from workqueues.models import File, Task
from workqueues.states import OUTPUT_FILE

MOST_FILES = 500
"""Inputs, and outputs, that a page shows."""
MOST_TRIES = 100
MOST_LINKS = 2 * MOST_TRIES


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
    anew, if it was. `start_time` of its payload, `run_s` that it took; `memory_mb` that it used, of those that it asked for,
    0: not said.
    """

    id: int
    status: str
    attempt_nr: int
    computing_queue: str
    status_since: datetime
    retry_of: tuple[int, ...]
    anew: str = ""
    start_time: datetime | None = None
    run_s: float | None = None
    memory_mb: float | None = None
    asked_mb: int = 0
    error_code: str = ""
    error_message: str = ""


@dataclass(frozen=True, slots=True)
class Used:
    """How much of something a job used, and may use, 0: any; in `unit`, s or MB."""

    what: str
    used: float
    most: float
    unit: str


WIDE = ("spec__job_parameters", "spec__job_values", "result__log_end", "result__metadata", "result__notes", "result__samples")
"""Columns of jobs that a list of tries does without."""
SAME = ("lfn", "type", "status", "fsize", "checksum", "n_events", "no_output", "lost_at")
"""Columns of a file that are shown as they are stored."""


def find_job(job_id: int, scope: VoScope) -> Job | None:
    """The job with its specification and result, and who submitted its task, if there is one in the scope; one statement."""
    related = ("spec", "result", "computing_queue")
    submitter = Task.objects.filter(id=OuterRef("task_id")).values("submitted_by")
    links = JobRetryHistory.objects.filter(Q(old_job_id=OuterRef("pk")) | Q(new_job_id=OuterRef("pk")))
    jobs = Job.objects.using(alias()).select_related(*related).annotate(submitted_by=Subquery(submitter), linked=Exists(links))
    return jobs.filter(scope.q("spec__vo"), id=job_id).first()


def job_outputs(job_id: int, **only: Any) -> list[OutputRow]:
    """Outputs of a job, at most MOST_FILES, or those of them that `only` says; two statements."""
    chosen = File.objects.using(alias()).filter(out_job_id=job_id, **only).select_related("dataset")
    files = list(chosen.order_by("type", "id")[:MOST_FILES])
    copies = copies_of([f for f in files if f.status not in OUTPUT_FILE.unmade])
    return [
        OutputRow(
            **{name: getattr(f, name) for name in SAME},
            file_id=f.id,
            dataset_name=f.dataset.dataset_name,
            copies=tuple(copies.get((f.dataset.dataset_name, f.lfn), ())),
        )
        for f in sorted(files, key=lambda f: f.type != "output")
    ]


def pilot_of(job: Job) -> Pilot | None:
    """The pilot that holds the job, or that reported its end."""
    pilot_id = job.lease_holder or (job.result.pilot_id if hasattr(job, "result") else None)
    return None if pilot_id is None else Pilot.objects.using(alias()).select_related("queue").filter(id=pilot_id).first()


def links_of(job: Job) -> list[JobRetryHistory]:
    """What ties a job that was found to others: tries before and after, and merging; one statement, none where nothing does."""
    if not vars(job)["linked"]:
        return []
    history = JobRetryHistory.objects.using(alias())
    return list(history.filter(Q(old_job_id=job.id) | Q(new_job_id=job.id)).order_by("id")[:MOST_LINKS])


def merges_of(job_id: int, links: Iterable[JobRetryHistory]) -> tuple[list[int], list[int]]:
    """Of the links of a job: jobs whose outputs this one merges, and those that were made to merge its own, by id."""
    pairs = sorted({(link.old_job_id, link.new_job_id) for link in links if link.relation_type == MERGE_RELATION})
    return [old for old, new in pairs if new == job_id], [new for old, new in pairs if old == job_id]


def tries_of(links: Iterable[JobRetryHistory]) -> list[Try]:
    """Of a job with these links: it and those that it took inputs over from and that took over from it, by id; empty when it is
    alone.
    """
    near = [link for link in links if link.relation_type != MERGE_RELATION][:MOST_TRIES]
    if not near:
        return []
    history = JobRetryHistory.objects.using(alias()).exclude(relation_type=MERGE_RELATION)
    chain = history.filter(origin_job_id__in={link.origin_job_id for link in near}).order_by("id")[:MOST_TRIES]
    retry_of: dict[int, list[int]] = defaultdict(list)
    for link in {(link.old_job_id, link.new_job_id) for link in [*near, *chain]}:
        retry_of[link[1]].append(link[0])
        retry_of.setdefault(link[0], [])
    jobs = Job.objects.using(alias()).filter(id__in=list(retry_of)).order_by("id").defer(*WIDE)
    return [_try(job, retry_of[job.id]) for job in jobs.select_related("computing_queue", "result", "spec")]


def _try(job: Job, retry_of: list[int]) -> Try:
    result, spec = getattr(job, "result", None), getattr(job, "spec", None)
    anew = result.error_message if result and job.sub_status == TO_REASSIGN else ""
    row = Try(job.id, job.status, job.attempt_nr, _queue_of(job), job.status_since, tuple(sorted(retry_of)), anew)
    if result is None:
        return row
    begin, end = result.start_time, result.end_time
    return replace(
        row,
        start_time=begin,
        run_s=max((end - begin).total_seconds(), 0.0) if begin and end else None,
        memory_mb=memory_of(result.metrics),
        asked_mb=spec.ram_mb if spec else 0,
        error_code=result.error_code,
        error_message=first_line(result.error_message),
    )


def used_of(job: Job) -> list[Used]:
    """What a job that ended used, as its pilot measured it, beside what it may have; empty where nothing is known."""
    result, spec = getattr(job, "result", None), getattr(job, "spec", None)
    if result is None or spec is None:
        return []
    begin, end, metrics = result.start_time, result.end_time, result.metrics or {}
    run_s = max((end - begin).total_seconds(), 0.0) if begin and end else None
    cpu_s = metrics.get("cpu_s")
    table = (
        ("Run time", run_s, spec.walltime_s, "s"),
        ("Memory", memory_of(metrics), spec.ram_mb, "MB"),
        ("Processor time, of the run time of its cores", cpu_s, (run_s or 0.0) * job.core_count, "s"),
    )
    return [Used(what, float(used), most, unit) for what, used, most, unit in table if isinstance(used, int | float)]


def _queue_of(job: Job) -> str:
    """The name of its queue, or what stands for it."""
    if job.computing_queue is not None:
        return job.computing_queue.name
    return OPEN if job.ended_at is None else NO_QUEUE
