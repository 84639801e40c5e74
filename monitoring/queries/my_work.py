"""The tasks of one user as their own page shows them: what needs attention first, then what lives, then what ended lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from broker_site.foundation.access.permissions import VoScope
from monitoring.queries.database import rows
from monitoring.queries.tasks import TaskRow, task_rows, visible_tasks
from workqueues.rules.task.attention import NEWEST_JOBS, Course, attention

MOST_LOOKED_AT = 200
"""Live tasks that are looked at, the newest."""
MOST = 50
"""Live ones that are shown, and ended ones."""
LATELY = timedelta(days=7)
"""So long an ended task is shown."""
# Of each task so many entries of one index are read, however many jobs it had.
_NEWEST_ENDS = """
SELECT t.id, count(*) FILTER (WHERE j.status = 'finished'), count(*) FILTER (WHERE j.status = 'failed')
FROM unnest(%(tasks)s::bigint[]) AS t(id) CROSS JOIN LATERAL (
    SELECT status FROM brokerage_job WHERE task_id = t.id AND ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT %(newest)s
) AS j GROUP BY t.id
"""


@dataclass(frozen=True, slots=True)
class MyTask:
    """A task, and why it needs attention; empty where it does not."""

    row: TaskRow
    attention: str


@dataclass(frozen=True, slots=True)
class MyWork:
    """The tasks of a user. `more`: whether there are more live ones than are shown."""

    needing: Sequence[MyTask]
    live: Sequence[TaskRow]
    ended: Sequence[TaskRow]
    more: bool


def my_work(user_name: str, scope: VoScope, now: datetime) -> MyWork:
    """The tasks of the user in these VOs; seven statements at most."""
    own = visible_tasks(scope).filter(user_name=user_name)
    live = task_rows(own.filter(ended_at=None).order_by("-id")[:MOST_LOOKED_AT])
    ended = task_rows(own.filter(ended_at__gt=now - LATELY).order_by("-id")[:MOST])
    ends = _newest_ends([row.id for row in live])
    told = [MyTask(row, attention(_course(row, now, *ends.get(row.id, (0, 0))))) for row in (*live, *ended)]
    return MyWork([task for task in told if task.attention], live[:MOST], ended, len(live) > MOST)


def _newest_ends(task_ids: Sequence[int]) -> Mapping[int, tuple[int, int]]:
    """Task -> how many of the newest of its jobs that ended finished, and how many failed; one statement, none without a task."""
    if not task_ids:
        return {}
    found = rows(_NEWEST_ENDS, {"tasks": list(task_ids), "newest": NEWEST_JOBS})
    return {task_id: (finished, failed) for task_id, finished, failed in found}


def _course(row: TaskRow, now: datetime, finished: int, failed: int) -> Course:
    """`finished`, `failed`: of the newest jobs that ended."""
    for_s = (now - row.status_since).total_seconds()
    return Course(row.status, for_s, row.files_finished, row.files_failed, finished, failed)
