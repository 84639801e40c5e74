"""Tasks and jobs by state, and what waits longest: the numbers of the home page. Every statement is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from broker_site.foundation.access.permissions import VoScope
from brokerage.states import JOB
from monitoring.queries.database import rows, seen_by
from workqueues.states import TASK

MOST_LIVE = 100_000
"""Live rows that are counted; beyond, numbers are lower bounds."""
RECENT = 50_000
"""How many of the newest ids are looked at for those that have ended."""


@dataclass(frozen=True, slots=True)
class StateCounts:
    """State -> number.

    `live`: not ended, all of them unless `capped`. `ended`: among the newest RECENT, which are all unless `partial`. `last_hour`:
    those of `ended` that ended within the last hour.
    """

    live: Mapping[str, int]
    ended: Mapping[str, int]
    last_hour: Mapping[str, int]
    capped: bool
    partial: bool

    @property
    def empty(self) -> bool:
        return not self.live and not self.ended


_TASKS_LIVE = """
SELECT status, count(*) FROM (
    SELECT status FROM workqueues_task WHERE status = ANY(%(live)s) AND (%(everything)s OR vo = ANY(%(vos)s)) LIMIT %(most)s
) AS bounded GROUP BY status
"""

_TASKS_ENDED = """
WITH newest AS (SELECT COALESCE(max(id), 0) AS id FROM workqueues_task)
SELECT t.status, count(*), count(*) FILTER (WHERE t.ended_at > now() - interval '1 hour'), (SELECT id FROM newest)
FROM workqueues_task t
WHERE t.id > (SELECT id FROM newest) - %(recent)s AND t.ended_at IS NOT NULL AND (%(everything)s OR t.vo = ANY(%(vos)s))
GROUP BY t.status
"""

_JOBS_LIVE = """
SELECT status, count(*) FROM (
    SELECT j.status FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id
    WHERE j.ended_at IS NULL AND (%(everything)s OR t.vo = ANY(%(vos)s)) LIMIT %(most)s
) AS bounded GROUP BY status
"""

_JOBS_ENDED = """
WITH newest AS (SELECT COALESCE(max(id), 0) AS id FROM brokerage_job)
SELECT j.status, count(*), count(*) FILTER (WHERE j.ended_at > now() - interval '1 hour'), (SELECT id FROM newest)
FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id
WHERE j.id > (SELECT id FROM newest) - %(recent)s AND j.ended_at IS NOT NULL AND (%(everything)s OR t.vo = ANY(%(vos)s))
GROUP BY j.status
"""


def task_counts(scope: VoScope) -> StateCounts:
    """Tasks by state; two statements."""
    return _counts(_TASKS_LIVE, _TASKS_ENDED, scope, TASK.states)


def job_counts(scope: VoScope) -> StateCounts:
    """Jobs by state; two statements."""
    return _counts(_JOBS_LIVE, _JOBS_ENDED, scope, JOB.states)


def _counts(live_sql: str, ended_sql: str, scope: VoScope, order: tuple[str, ...]) -> StateCounts:
    live = dict(rows(live_sql, {**seen_by(scope), "live": list(TASK.live), "most": MOST_LIVE + 1}))
    ended = rows(ended_sql, {**seen_by(scope), "recent": RECENT})
    return StateCounts(
        live={state: live[state] for state in order if state in live},
        ended={name: n for name in order for state, n, _, _ in ended if state == name},
        last_hour={state: n for state, _, n, _ in ended},
        capped=sum(live.values()) > MOST_LIVE,
        partial=any(newest > RECENT for *_, newest in ended),
    )


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that waits, since when and why, and when it is looked at again."""

    id: int
    task_name: str
    user_name: str
    status: str
    status_since: datetime
    error_dialog: str
    next_look_at: datetime | None


def longest_waiting(scope: VoScope, most: int = 5) -> list[WaitingTask]:
    """The tasks that have been stuck for longest, or that the brokerage could not serve."""
    table = rows(
        f"""
        SELECT id, task_name, user_name, status, status_since, error_dialog, next_look_at FROM workqueues_task
        WHERE (status IN ({TASK.stuck.sql}) OR (status IN ({TASK.brokered.sql}) AND error_dialog <> ''))
          AND (%(everything)s OR vo = ANY(%(vos)s))
        ORDER BY status_since LIMIT %(most)s
        """,
        {**seen_by(scope), "most": most},
    )
    return [WaitingTask(*row) for row in table]
