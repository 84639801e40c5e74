"""What users and groups have at once: live jobs of analysis tasks by owner, and the tasks that the caps of owners concern."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db import connection

from brokerage.rules.facts.job_kind import MERGING_KINDS
from brokerage.states import JOB
from workqueues.rules.jobs.activity import ANALYSIS_LABELS
from workqueues.rules.throttle.user_caps import CAUSE, GROUP, Used
from workqueues.states import TASK

Owner = tuple[str, str]
"""A VO, and a user or `group:` and the working group."""

OWNER = f"CASE t.working_group WHEN '' THEN t.user_name ELSE '{GROUP}' || t.working_group END"

_JOBS = f"""
WITH counted AS MATERIALIZED (
    SELECT task_id, status, sub_status = %(cause)s AS held, count(*) AS n, sum(core_count) AS cores FROM brokerage_job
    WHERE ended_at IS NULL AND kind <> ALL (%(merging)s) AND status NOT IN ({JOB.delivering.sql}) GROUP BY 1, 2, 3
)
SELECT t.vo, {OWNER}, c.task_id, t.status = 'paused', c.status, c.held, c.n::int, c.cores::int
FROM counted c JOIN workqueues_task t ON t.id = c.task_id
WHERE t.id = ANY (ARRAY(SELECT task_id FROM counted)) AND t.prod_source_label = ANY (%(labels)s)
"""
"""Live jobs only, so it does not grow with history; jobs that merge are bound by no cap. The tasks are named once more, else the
planner may leaf through all that there ever were.
"""

_TASKS = f"""
SELECT t.vo, {OWNER}, t.id
FROM unnest(%(vos)s::text[], %(owners)s::text[]) AS o(vo, owner) JOIN workqueues_task t ON t.vo = o.vo AND {OWNER} = o.owner
WHERE t.prod_source_label = ANY (%(labels)s) AND t.status IN ({TASK.throttling.sql})
    AND (t.locked_by = '' OR t.locked_time < now())
    AND (t.status <> 'pending' OR t.old_status IN ({TASK.throttling.sql}))
    AND NOT EXISTS (SELECT FROM workqueues_taskthrottle h WHERE h.task_id = t.id AND h.cause = %(cause)s)
ORDER BY t.id LIMIT %(limit)s
"""

_THROTTLED = f"""
SELECT t.vo, {OWNER}, t.id, t.status = 'throttled' FROM workqueues_taskthrottle h JOIN workqueues_task t ON t.id = h.task_id
WHERE h.cause = %(cause)s AND (t.locked_by = '' OR t.locked_time < now()) ORDER BY t.id
"""


NOTHING = Used()


@dataclass(slots=True)
class OwnerJobs:
    """What an owner has at once; tasks with jobs that wait for a pilot, and those with jobs that are held back for the cap."""

    used: Used = NOTHING
    waiting: set[int] = field(default_factory=set)
    held: set[int] = field(default_factory=set)

    def add(self, status: str, n: int, cores: int) -> None:
        """Count jobs of this status."""
        used = self.used
        if status == "running":
            self.used = used._replace(running_jobs=used.running_jobs + n, running_cores=used.running_cores + cores)
        else:
            self.used = used._replace(queued_jobs=used.queued_jobs + n, queued_cores=used.queued_cores + cores)


class OwnedTask(NamedTuple):
    """A task, with whose it is; `rests`: it is throttled."""

    owner: Owner
    task_id: int
    rests: bool = False


def jobs_of_owners() -> dict[Owner, OwnerJobs]:
    """All that have any; one statement."""
    found: dict[Owner, OwnerJobs] = defaultdict(OwnerJobs)
    with connection.cursor() as cursor:
        merging, labels = [kind.value for kind in MERGING_KINDS], list(ANALYSIS_LABELS)
        cursor.execute(_JOBS, {"cause": CAUSE, "merging": merging, "labels": labels})
        for vo, owner, task_id, paused, status, held, n, cores in cursor:
            jobs = found[vo, owner]
            jobs.add(status, n, cores)
            if status == "activated":
                jobs.waiting.add(task_id)
            elif held and status == "throttled" and not paused:
                jobs.held.add(task_id)
    return found


def tasks_to_throttle(owners: Collection[Owner], limit: int) -> list[OwnedTask]:
    """Tasks of these owners that make jobs and that no cap holds yet."""
    if not owners:
        return []
    values = {"vos": [vo for vo, _ in owners], "owners": [owner for _, owner in owners], "labels": list(ANALYSIS_LABELS)}
    with connection.cursor() as cursor:
        cursor.execute(_TASKS, {**values, "cause": CAUSE, "limit": limit})
        return [OwnedTask((vo, owner), task_id) for vo, owner, task_id in cursor.fetchall()]


def throttled_tasks() -> list[OwnedTask]:
    """Those that a cap holds, or held when they ended."""
    with connection.cursor() as cursor:
        cursor.execute(_THROTTLED, {"cause": CAUSE})
        return [OwnedTask((vo, owner), task_id, rests) for vo, owner, task_id, rests in cursor.fetchall()]
