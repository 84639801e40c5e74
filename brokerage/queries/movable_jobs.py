"""Tasks whose waiting jobs may be brokered anew, by the queue at which they stand (decision D18)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection

from brokerage.rules.dispatch.stranding import QueueService, names_place
from brokerage.rules.facts.job_kind import MERGING_KINDS
from brokerage.states import JOB
from workqueues.rules.task_parameters.document import read_parameters


class TaskAtQueue(NamedTuple):
    """Jobs of a task that wait at one queue."""

    queue_id: int
    task_id: int


MOVABLE: Mapping[str, Any] = {"states": sorted(JOB.waiting), "merging": [kind.value for kind in MERGING_KINDS]}
"""Jobs that no pilot has had; not merge jobs, which run where their input is."""

_TASKS = """
SELECT j.computing_queue_id, j.task_id, t.site, p.task_params -> 'includedSite'
FROM (
    SELECT DISTINCT computing_queue_id, task_id FROM brokerage_job
    WHERE computing_queue_id = ANY (%(queues)s) AND ended_at IS NULL AND status = ANY (%(states)s) AND kind <> ALL (%(merging)s)
) AS j JOIN workqueues_task t ON t.id = j.task_id LEFT JOIN workqueues_taskparams p ON p.task_id = t.id
ORDER BY 1, 2
"""


def _included(text: str | None) -> tuple[str, ...]:
    """The names in includedSite, given as JSON, list or comma text."""
    task, _ = read_parameters({"includedSite": json.loads(text or "null")})
    return task.includedSite


def tasks_to_move(queues: Sequence[QueueService]) -> list[TaskAtQueue]:
    """Tasks with jobs that wait at these queues, but those that name the queue or its site: they would come back."""
    if not queues:
        return []
    by_id = {queue.id: queue for queue in queues}
    with connection.cursor() as cursor:
        cursor.execute(_TASKS, {**MOVABLE, "queues": list(by_id)})
        return [
            TaskAtQueue(queue_id, task_id)
            for queue_id, task_id, site, included in cursor.fetchall()
            if not names_place(by_id[queue_id], site, _included(included))
        ]
