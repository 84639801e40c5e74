"""Running tasks of which so many jobs have finished that what the others need can be measured."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from workqueues.states import MASTER_TYPES

MOST_TASKS = 100
"""So many are measured in a run; those that are left are measured by the next one."""

_MEASURABLE = f"""
SELECT t.id, j.finished
FROM (
    SELECT id, split_rule, CASE WHEN n_measured < %(first)s THEN %(first)s ELSE %(again)s END AS wanted FROM workqueues_task
    WHERE status = 'running' AND n_measured < greatest(%(first)s, %(again)s) AND (locked_by = '' OR locked_time < now())
) t CROSS JOIN LATERAL (
    SELECT coalesce(sum(n_files_finished), 0) AS files, coalesce(bool_or(n_events > n_files), FALSE) AS events
    FROM workqueues_dataset WHERE task_id = t.id AND type IN ({MASTER_TYPES.sql}) AND master_id IS NULL AND NOT excluded
) d CROSS JOIN LATERAL (
    SELECT count(*) AS finished FROM (
        SELECT FROM brokerage_job WHERE task_id = t.id AND status IN ({JOB.succeeded.sql})
            AND kind IN ({JobKind.NORMAL.value}, {JobKind.SCOUT.value}) LIMIT t.wanted) one
) j
WHERE t.wanted > 0 AND (d.files >= t.wanted OR d.events AND t.split_rule ~ '\\m(NE|TE)=') AND j.finished >= t.wanted
ORDER BY t.id LIMIT %(limit)s
"""
"""A job takes a file at least, unless files are cut by their events: of most tasks no job is counted."""


class MeasurableTask(NamedTuple):
    """A task, and so many of its jobs have finished, at least."""

    task_id: int
    finished: int


def tasks_to_measure(first: int, again: int) -> list[MeasurableTask]:
    """Those with `first` finished jobs that were not measured by so many, and those with `again`; 0: none."""
    if not first and not again:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_MEASURABLE, {"first": first, "again": again, "limit": MOST_TASKS})
        return [MeasurableTask(*row) for row in cursor.fetchall()]
