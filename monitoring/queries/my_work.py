"""The tasks of one user as their own page shows them: what needs attention first, then what lives, then what ended lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from broker_site.foundation.access.permissions import VoScope
from monitoring.queries.tasks import TaskRow, task_rows, visible_tasks
from workqueues.rules.task.attention import Course, attention

MOST_LOOKED_AT = 200
"""Live tasks that are looked at, the newest."""
MOST = 50
"""Live ones that are shown, and ended ones."""
LATELY = timedelta(days=7)
"""So long an ended task is shown."""


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
    """The tasks of the user in these VOs; six statements at most."""
    own = visible_tasks(scope).filter(user_name=user_name)
    live = task_rows(own.filter(ended_at=None).order_by("-id")[:MOST_LOOKED_AT])
    ended = task_rows(own.filter(ended_at__gt=now - LATELY).order_by("-id")[:MOST])
    told = [MyTask(row, attention(_course(row, now))) for row in (*live, *ended)]
    return MyWork([task for task in told if task.attention], live[:MOST], ended, len(live) > MOST)


def _course(row: TaskRow, now: datetime) -> Course:
    return Course(row.status, (now - row.status_since).total_seconds(), row.files_finished, row.files_failed)
