"""How the jobs of running production tasks ended since somebody last let them go on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from django.db import connection

from brokerage.rules.facts.job_kind import MERGING_KINDS
from workqueues.rules.jobs.split_rule import NO_AUTO_PAUSE
from workqueues.rules.task.failing import CAUSE, EndedFigures
from workqueues.states import MASTER_TYPES, TASK

FIGURES = len(EndedFigures._fields)
_ENDED = f"""
WITH asked AS (
    SELECT t.id, t.vo, t.prod_source_label, t.gshare, coalesce(w.queue_name, '') AS queue, greatest(t.start_time, c.at) AS since
    FROM workqueues_task t LEFT JOIN workqueues_workqueue w ON w.id = t.work_queue_id CROSS JOIN LATERAL (
        SELECT max(at) AS at FROM workqueues_taskchange
        WHERE task_id = t.id AND old IN ({TASK.resumable.sql}) AND who NOT LIKE 'agent:%%') c
    WHERE t.status = 'running' AND t.prod_source_label = ANY (%(labels)s) AND t.split_rule !~ %(never)s
        AND (t.locked_by = '' OR t.locked_time < now())
        AND NOT EXISTS (SELECT FROM workqueues_taskthrottle h WHERE h.task_id = t.id AND h.cause = %(cause)s)
), enough AS MATERIALIZED (
    SELECT a.* FROM asked a CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM (
            SELECT FROM brokerage_job WHERE task_id = a.id AND ended_at IS NOT NULL AND ended_at >= a.since LIMIT %(least)s) one
    ) e WHERE e.n >= %(least)s
)
SELECT a.id, a.vo, a.prod_source_label, a.gshare, a.queue, d.open_files::int, d.done_files::int,
    j.finished, j.failed, coalesce(w.finished, 0), coalesce(w.failed, 0)
FROM enough a CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE status = 'finished') AS finished, count(*) FILTER (WHERE status = 'failed') AS failed
    FROM brokerage_job WHERE task_id = a.id AND ended_at IS NOT NULL AND ended_at >= a.since AND kind <> ALL (%(merging)s)
) j LEFT JOIN LATERAL (
    SELECT sum(hours) FILTER (WHERE status = 'finished') AS finished, sum(hours) FILTER (WHERE status = 'failed') AS failed
    FROM (
        SELECT j.status, greatest(extract(epoch FROM r.end_time - r.start_time), 0)::float8 / 3600
            * greatest(j.core_count, 1) * coalesce(q.corepower, 0) AS hours
        FROM brokerage_job j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
            JOIN brokerage_jobresult r ON r.job_id = j.id
        WHERE j.task_id = a.id AND j.ended_at IS NOT NULL AND j.ended_at >= a.since AND j.kind <> ALL (%(merging)s)
    ) h
) w ON a.prod_source_label = ANY (%(by_work)s) CROSS JOIN LATERAL (
    SELECT coalesce(sum(n_files_to_be_used - n_files_finished - n_files_failed), 0) AS open_files,
        coalesce(sum(n_files_finished), 0) AS done_files
    FROM workqueues_dataset WHERE task_id = a.id AND type IN ({MASTER_TYPES.sql}) AND master_id IS NULL AND NOT excluded
) d ORDER BY a.id
"""
"""The first count is one of an index alone. Results are read only for the labels that have a limit by work."""


class EndedJobs(NamedTuple):
    """A task, with how its jobs ended, and what they used where that counts for its label: hours x cores x power of a core.
    `share`, `queue`: its leaf share and its work queue; files of its masters.
    """

    task_id: int
    vo: str
    label: str
    share: str
    queue: str
    open_files: int
    done_files: int
    ended: EndedFigures


def ended_jobs(labels: Collection[str], least: int, by_work: Collection[str] = ()) -> list[EndedJobs]:
    """Of tasks of these labels with at least so many ended jobs, that may rest for it and do not yet. `by_work`: those of the
    labels for which the work of the jobs counts too.
    """
    if not labels:
        return []
    values: dict[str, Any] = {
        "labels": list(labels),
        "never": NO_AUTO_PAUSE,
        "cause": CAUSE,
        "least": max(1, least),
        "by_work": list(by_work),
    }
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, {**values, "merging": [kind.value for kind in MERGING_KINDS]})
        return [EndedJobs._make((*row[:-FIGURES], EndedFigures(*row[-FIGURES:]))) for row in cursor.fetchall()]
