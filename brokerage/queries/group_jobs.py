"""What groups of owners have: waiting jobs by task queue, jobs that run now, and what they used in stretches of the past."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from django.db import connection

from brokerage.queries.share_use import HS06
from brokerage.queries.task_queue_facts import task_queue_facts
from brokerage.rules.dispatch.group_shares import QueueJobs
from brokerage.rules.dispatch.real_priority import real_priority
from brokerage.rules.dispatch.task_queue_key import key_but_for_places
from brokerage.states import JOB

_QUEUES = """
SELECT t.id, t.priority IS NULL FROM brokerage_taskqueue t
WHERE t.vo = ANY (%s) AND EXISTS (SELECT FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL)
"""
_WAITING = """
SELECT task_queue_id, -ready_priority, count(*) FROM brokerage_job
WHERE task_queue_id = ANY (%s) AND ready_priority IS NOT NULL GROUP BY 1, 2
"""
_RUNNING = f"""
SELECT t.vo, t.owner_group, t.owner, {HS06}
FROM brokerage_job j JOIN brokerage_taskqueue t ON t.id = j.task_queue_id
    JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
WHERE j.lease_holder IS NOT NULL AND j.status IN ({JOB.leased.sql}) AND t.vo = ANY (%s) GROUP BY 1, 2, 3
"""
_USED = """
SELECT owner_group, owner, sum(hs06_s) FROM brokerage_groupuse
WHERE vo = %s AND hour > now() - make_interval(secs => %s) GROUP BY 1, 2
"""


class OwnerKey(NamedTuple):
    """An owner in a group of a VO."""

    vo: str
    group: str
    owner: str


def uncounted(vos: Collection[str]) -> bool:
    """Whether a task queue of these VOs has jobs, and no priority yet."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT FROM ({_QUEUES}) AS q (id, is_new) WHERE is_new)", [list(vos)])
        return bool(cursor.fetchone()[0])


def waiting_by_group(vos: Collection[str]) -> Mapping[tuple[str, str], Mapping[int, QueueJobs]]:
    """(VO, group) -> task queue -> its waiting jobs."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES, [list(vos)])
        ids = [id_ for id_, _ in cursor.fetchall()]
        cursor.execute(_WAITING, [ids])
        jobs: dict[int, tuple[int, float]] = {}
        for id_, priority, n in cursor.fetchall():
            before = jobs.get(id_, (0, 0.0))
            jobs[id_] = before[0] + n, before[1] + n * real_priority(priority)
    groups: dict[tuple[str, str], dict[int, QueueJobs]] = defaultdict(dict)
    for id_, facts in task_queue_facts(list(jobs)).items():
        need = facts.requirement
        alike = (*key_but_for_places(need), *facts.unit, facts.label, facts.resource_type)
        groups[need.vo, need.owner_group][id_] = QueueJobs(need.owner, *jobs[id_], alike)
    return groups


def running_by_owner(vos: Collection[str]) -> dict[OwnerKey, float]:
    """What the jobs of each owner hold now, in HS06."""
    with connection.cursor() as cursor:
        cursor.execute(_RUNNING, [list(vos)])
        return {OwnerKey(*key): hs06 for *key, hs06 in cursor.fetchall()}


def used(vo: str, seconds: float) -> dict[tuple[str, str], float]:
    """(Group, owner) -> HS06 seconds that their jobs held in so many seconds up to now, by whole hours."""
    with connection.cursor() as cursor:
        cursor.execute(_USED, [vo, seconds])
        return {(group, owner): amount for group, owner, amount in cursor.fetchall()}
