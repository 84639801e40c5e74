"""Tasks that may end before all is done: those whose goal may be reached, in two statements for all, and exhausted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db import connection
from django.db.models import Q, Value
from django.db.models.functions import Now

from workqueues.models import Task
from workqueues.queries.datasets import counts_by_task
from workqueues.rules.jobs.split_rule import NO_AUTO_FINISH
from workqueues.rules.task.finish import DatasetCounts
from workqueues.states import INPUT_DATASET, INPUT_FILE, MASTER_TYPES, TASK

MOST = 1000
"""Exhausted tasks that are ended at once."""

_CANDIDATES = f"""
SELECT t.id, t.goal, coalesce((
    SELECT o.n_events FROM workqueues_dataset o WHERE o.task_id = t.id AND o.type = 'output' ORDER BY o.id LIMIT 1), 0)
FROM workqueues_task t
WHERE t.status IN ({TASK.achieving.sql}) AND t.goal IS NOT NULL AND t.quarantined_at IS NULL
    AND t.split_rule !~ '{NO_AUTO_FINISH}'
    AND NOT EXISTS (
        SELECT FROM workqueues_task p WHERE p.id = t.parent_tid AND p.id <> t.id AND p.status IN ({TASK.live.sql}))
    AND NOT EXISTS (
        SELECT FROM workqueues_dataset d
        WHERE d.task_id = t.id AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL AND NOT d.excluded
            AND (d.status IN ({INPUT_DATASET.unread.sql}) OR EXISTS (
                SELECT FROM workqueues_file f
                WHERE f.dataset_id = d.id AND f.status IN ({INPUT_FILE.unused.sql}) AND f.failed_attempt = 0)))
ORDER BY t.id
"""
"""Not while its parent runs, while input is to be read, or while a file is left that was not tried."""


class Achievement(NamedTuple):
    """How far a task with a goal (per mille) is. `output_events`: those of its first output."""

    task_id: int
    goal: int
    output_events: int
    datasets: Sequence[DatasetCounts]


def achievements() -> list[Achievement]:
    """Those of all working tasks with a goal, all files of which were tried."""
    with connection.cursor() as cursor:
        cursor.execute(_CANDIDATES)
        rows = cursor.fetchall()
    counts = counts_by_task([row[0] for row in rows])
    return [Achievement(id_, goal, events, counts.get(id_, ())) for id_, goal, events in rows]


def exhausted_for_long(wait_s: Mapping[str, float]) -> list[tuple[int, str, str]]:
    """Tasks that are exhausted for so long, by VO, s, with that VO, and why they are; not those with disableAutoFinish. The
    longest first.
    """
    late = Q(pk__in=[])
    for vo, seconds in wait_s.items():
        late |= Q(vo=vo, status_since__lte=Now() - Value(timedelta(seconds=seconds)))
    due = Task.objects.filter(late, status="exhausted", quarantined_at=None).exclude(split_rule__regex=NO_AUTO_FINISH)
    return list(due.order_by("status_since", "id").values_list("id", "vo", "error_dialog")[:MOST])
