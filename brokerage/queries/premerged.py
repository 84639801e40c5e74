"""Jobs whose outputs wait to be merged, and what they wait for: other jobs of their task at their site, or of their block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, connections

from broker_site.foundation import gdpconfig
from brokerage.queries.movable_jobs import KEPT_TASKS
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.dispatch.stranding import HANDS_OUT
from brokerage.rules.explain.task_status_text import SiteMerge
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.placement.merge_groups import PremergedFile
from workqueues.models import File, OutputTemplate, Task
from workqueues.rules.jobs.job_parameters import compiled_name
from workqueues.rules.jobs.premerged import STREAM_PREFIX
from workqueues.states import PREMERGED_TYPES

BLOCK = "block"
MERGE = JobKind.MERGE.value

_TASKS = f"""
SELECT DISTINCT task_id FROM workqueues_file
WHERE status = 'prepared' AND type IN ({PREMERGED_TYPES.sql}) AND (retry_due IS NULL OR retry_due <= now())
"""
_WAITING = """
SELECT DISTINCT j.id, j.task_id, j.epoch, q.site_id, q.id, q.name, q.maxrss, q.maxwdir, coalesce(s.decision_id, 0), j.storage,
    CASE WHEN q.status <> ALL(%(hands_out)s) THEN q.status_since
        WHEN e.root_state = 'down' THEN coalesce(e.root_since, now()) END
FROM workqueues_file f JOIN brokerage_job j ON j.id = f.out_job_id AND j.status = 'merging'
    JOIN brokerage_jobspec s ON s.job_id = j.id JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
    LEFT JOIN brokerage_storageendpoint e ON e.name = j.storage
WHERE f.task_id = ANY(%(tasks)s) AND f.status = 'prepared' AND (%(early)s OR f.retry_due IS NULL OR f.retry_due <= now())
ORDER BY j.id
"""
_OTHERS = f"""
SELECT j.task_id, q.site_id, q.id, coalesce(s.decision_id, 0), count(*)
FROM brokerage_computingqueue q JOIN brokerage_job j ON j.computing_queue_id = q.id AND j.ended_at IS NULL
    JOIN brokerage_jobspec s ON s.job_id = j.id
WHERE q.site_id = ANY(%(sites)s) AND j.task_id = ANY(%(tasks)s) AND j.status <> 'merging' AND j.kind <> {MERGE}
GROUP BY 1, 2, 3, 4
UNION ALL
SELECT j.task_id, q.site_id, q.id, coalesce(s.decision_id, 0), count(*)
FROM brokerage_job j JOIN brokerage_jobspec s ON s.job_id = j.id JOIN brokerage_taskqueue t ON t.id = j.task_queue_id
    JOIN brokerage_requirementplace p ON p.requirement_set_id = t.requirement_set_id
    JOIN brokerage_computingqueue q ON q.id = p.computing_queue_id
WHERE j.computing_queue_id IS NULL AND j.ended_at IS NULL AND j.task_id = ANY(%(tasks)s) AND q.site_id = ANY(%(sites)s)
GROUP BY 1, 2, 3, 4
"""
"""At their site, with those that are open and may still come there (decision H7)."""


_STRANDED = f"""
SELECT j.id, j.epoch, j.status, j.task_id
FROM brokerage_computingqueue q JOIN brokerage_job j ON j.computing_queue_id = q.id AND j.ended_at IS NULL
WHERE q.status <> ALL(%(hands_out)s) AND q.status_since < now() - make_interval(secs => %(unserved_s)s)
    AND j.kind = {MERGE} AND j.status = 'activated' AND j.task_id NOT IN ({KEPT_TASKS})
ORDER BY j.id
"""
_SITES = f"""
SELECT site_id, count(*) FILTER (WHERE waits), count(*) FILTER (WHERE status = 'merging' AND NOT waits),
    count(*) FILTER (WHERE kind = {MERGE}), count(*) FILTER (WHERE status <> 'merging' AND kind <> {MERGE}), bool_and(served)
FROM (
    SELECT q.site_id, j.status, j.kind, q.status = ANY(%(hands_out)s) AS served, j.status = 'merging' AND EXISTS (
        SELECT FROM workqueues_file f WHERE f.out_job_id = j.id AND f.status = 'prepared') AS waits
    FROM brokerage_job j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
    WHERE j.task_id = %(task)s AND j.ended_at IS NULL
    UNION ALL
    SELECT q.site_id, j.status, j.kind, q.served, false
    FROM brokerage_job j JOIN brokerage_taskqueue t ON t.id = j.task_queue_id
        JOIN LATERAL (
            SELECT c.site_id, bool_or(c.status = ANY(%(hands_out)s)) AS served FROM brokerage_requirementplace p
                JOIN brokerage_computingqueue c ON c.id = p.computing_queue_id
            WHERE p.requirement_set_id = t.requirement_set_id GROUP BY 1) AS q ON true
    WHERE j.task_id = %(task)s AND j.ended_at IS NULL AND j.computing_queue_id IS NULL
) AS live GROUP BY site_id HAVING count(*) FILTER (WHERE status = 'merging') > 0 ORDER BY 2 DESC, 1 LIMIT %(most)s
"""
MOST_SITES = 20


class WaitingJob(NamedTuple):
    """A job whose outputs wait to be merged at its queue; `decision_id`: that of its block.

    `unserved_since`: since when no job can run there, or the storage endpoint that has them is not there; None: one can.
    """

    id: int
    task_id: int
    epoch: int
    site: str
    queue_id: int
    queue: str
    maxrss: float
    maxwdir: float
    decision_id: int
    storage: str
    unserved_since: datetime | None


class WaitedFor(NamedTuple):
    """Jobs of a task at a queue that have not ended."""

    task_id: int
    site: str
    queue_id: int
    decision_id: int
    n: int


def tasks_to_merge() -> list[int]:
    """Tasks with outputs that wait to be merged."""
    with connection.cursor() as cursor:
        cursor.execute(_TASKS)
        return [task_id for (task_id,) in cursor.fetchall()]


def waiting_to_merge(
    task_ids: Collection[int], *, early: bool = False, using: str = DEFAULT_DB_ALIAS
) -> tuple[list[WaitingJob], list[WaitedFor]]:
    """The jobs of these tasks that wait for a merge job, by id, and what else of the tasks lives at their sites.

    `early`: also those that rest after a try to merge them.
    """
    if not task_ids:
        return [], []
    with connections[using].cursor() as cursor:
        cursor.execute(_WAITING, {"tasks": list(task_ids), "early": early, "hands_out": sorted(HANDS_OUT)})
        waiting = [WaitingJob(*row) for row in cursor.fetchall()]
        sites = sorted({job.site for job in waiting})
        if not sites:
            return [], []
        cursor.execute(_OTHERS, {"tasks": list(task_ids), "sites": sites})
        return waiting, [WaitedFor(*row) for row in cursor.fetchall()]


def ready_to_merge(waiting: Iterable[WaitingJob], others: Sequence[WaitedFor], scopes: Mapping[int, str]) -> list[WaitingJob]:
    """Those that wait for no other job of their task at their site, or of their block; `scopes` by task (decision D8)."""
    sites = {(other.task_id, other.site) for other in others}
    blocks = {(other.task_id, other.queue_id, other.decision_id) for other in others}
    return [
        job
        for job in waiting
        if (
            (job.task_id, job.queue_id, job.decision_id) not in blocks
            if scopes.get(job.task_id) == BLOCK
            else (job.task_id, job.site) not in sites
        )
    ]


def stranded_merges(unserved_s: float) -> list[JobVersion]:
    """Merge jobs that wait for a pilot where for so many seconds none has got a job, but for those of tasks with
    disableReassign.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STRANDED, {"hands_out": sorted(HANDS_OUT), "unserved_s": unserved_s})
        return [JobVersion(*row) for row in cursor.fetchall()]


def site_merges(task: Task, using: str = DEFAULT_DB_ALIAS) -> list[SiteMerge]:
    """What of a task waits to be merged or is just being merged, by site; one statement."""
    block = gdpconfig.value("jobbroker", "MERGE_SCOPE", vo=task.vo) == BLOCK
    with connections[using].cursor() as cursor:
        cursor.execute(_SITES, {"task": task.id, "most": MOST_SITES, "hands_out": sorted(HANDS_OUT)})
        rows = cursor.fetchall()
    return [
        SiteMerge(site, waiting, merging, merges, others, block, served)
        for site, waiting, merging, merges, others, served in rows
    ]


def premerged_files(task_id: int, job_ids: Sequence[int]) -> dict[int, list[PremergedFile]]:
    """The files of these jobs that wait to be merged, by job, with their streams."""
    templates: dict[int, list[tuple[str, str]]] = defaultdict(list)
    rows = OutputTemplate.objects.filter(task_id=task_id, out_type__in=PREMERGED_TYPES).order_by("id")
    for dataset_id, pattern, stream in rows.values_list("dataset_id", "filename_template", "stream_name"):
        templates[dataset_id].append((pattern, stream.removeprefix(STREAM_PREFIX)))
    files: dict[int, list[PremergedFile]] = defaultdict(list)
    prepared = File.objects.filter(out_job_id__in=list(job_ids), status="prepared", type__in=PREMERGED_TYPES).order_by("id")
    columns = prepared.values_list("out_job_id", "id", "dataset_id", "lfn", "fsize", "n_events", "attempt_nr", "ram_count")
    for job_id, file_id, dataset_id, lfn, size, events, tries, ram in columns:
        stream = next(stream for pattern, stream in templates[dataset_id] if compiled_name(pattern).may_be(lfn))
        files[job_id or 0].append(PremergedFile(file_id, dataset_id, stream, lfn, size or 0, events or 0, tries, ram))
    return files
