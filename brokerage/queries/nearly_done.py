"""Tasks of which little is left to do, with what they had lately: candidates for a boost."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django.db import connection

from brokerage.rules.facts.job_kind import JobKind
from workqueues.states import MASTER_TYPES, TASK

LATEST = 100
"""The latest jobs of a task tell how many files of its masters a job takes; seeds and secondary files say nothing of that."""

_NEAR = f"""
WITH near AS MATERIALIZED (
    SELECT t.id, t.vo, t.user_name, t.working_group, t.current_priority, t.gshare,
        sum(d.n_files_to_be_used) AS wanted, sum(d.n_files_finished + d.n_files_failed) AS through, array_agg(d.id) AS masters
    FROM workqueues_task t JOIN workqueues_dataset d ON d.task_id = t.id
    WHERE t.status IN ({TASK.working.sql}) AND t.prod_source_label = ANY (%(labels)s)
        AND (t.current_priority < %(priority)s OR t.gshare <> %(share)s)
        AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL AND NOT d.excluded
        AND NOT EXISTS (
            SELECT FROM workqueues_task p
            WHERE p.id = t.parent_tid AND p.id <> t.id AND p.status NOT IN ({TASK.completed.sql}))
    GROUP BY t.id
    HAVING sum(d.n_files_finished + d.n_files_failed) < sum(d.n_files_to_be_used)
        AND 100.0 * sum(d.n_files_finished + d.n_files_failed) >= %(progress)s * sum(d.n_files_to_be_used)
)
SELECT near.id, vo, user_name, working_group, current_priority, gshare, wanted::int, through::int, lately.jobs, lately.files
FROM near CROSS JOIN LATERAL (
    SELECT count(DISTINCT j.id) AS jobs, count(DISTINCT i.file_id) AS files
    FROM (
        SELECT id FROM brokerage_job WHERE task_id = near.id AND kind IN ({JobKind.NORMAL.value}, {JobKind.SCOUT.value})
        ORDER BY id DESC LIMIT %(latest)s) j
        JOIN brokerage_jobinput i ON i.job_id = j.id AND i.tracked AND i.dataset_id = ANY (near.masters)) lately
ORDER BY near.id
"""


class NearlyDone(NamedTuple):
    """A working task with a complete parent, if any. `wanted`, `through`: files of its masters; its latest `jobs` had `files`."""

    id: int
    vo: str
    user: str
    group: str
    priority: int
    gshare: str
    wanted: int
    through: int
    jobs: int
    files: int


def nearly_done(labels: Collection[str], progress: float, priority: int, share: str) -> list[NearlyDone]:
    """Those of these source labels of which this percentage is through, and that have not this priority and share yet; one
    statement.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _NEAR, {"labels": list(labels), "progress": progress, "priority": priority, "share": share, "latest": LATEST}
        )
        return [NearlyDone(*row) for row in cursor.fetchall()]
