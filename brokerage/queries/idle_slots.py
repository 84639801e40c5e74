"""Idle slots, the work that waits beside them, and how long they idled by queue and hour."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, connections

from brokerage.models import ComputingQueue
from brokerage.queries.pilots import pilot_queues
from brokerage.queries.site_limits import advertised_sites, max_age_s
from brokerage.queries.waiting import WAITING
from brokerage.rules.decision.declare import POLICIES
from brokerage.rules.dispatch.idle_slots import LONG_S, Work
from brokerage.rules.dispatch.requirement import Resource, placed
from brokerage.rules.dispatch.resource import restored
from brokerage.rules.dispatch.stranding import HANDS_OUT
from workqueues.queries.agent_work import FREE, OF_OWN_QUEUES
from workqueues.rules.throttle.units import Group
from workqueues.rules.throttle.user_caps import CAUSE
from workqueues.states import TASK

MOST_TASKS = 500
"""Tasks with files due that are looked at, of the highest priority first."""
MOST_GROUPS = 20
"""Of tasks that stand equally in their last decisions one is decided upon; so many such groups."""
RECENT_S = 60.0
"""How old the last look may be that says how it stands now."""


class SlotAsk(NamedTuple):
    """An idle slot: its pilot, its queue, what it asked for, and for how long it has idled, s."""

    pilot_id: UUID
    queue_id: int
    offer: Resource
    idle_s: float


class WaitingTask(NamedTuple):
    """One of the tasks that stand equally in their last decisions, the one decided upon last, with how many files of all of them
    are due.

    `next_look_at`: until when it waits, if it does; `held`: why, where it is held to a cap of its owner.
    """

    task_id: int
    group: Group
    priority: int
    next_look_at: datetime | None
    decision_id: int
    files: int
    held: str


def idle_slots() -> list[SlotAsk]:
    """All slots that idle now, at whatever queue; the longest idle first."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT s.pilot_id, s.queue_id, q.name, s.core_count, s.memory_mb, s.disk_mb, s.walltime_s, s.vo,
                s.resource::text, extract(epoch FROM now() - s.since)::float8
            FROM brokerage_idleslot s JOIN brokerage_computingqueue q ON q.id = s.queue_id
            WHERE s.until > now() ORDER BY s.since, s.pilot_id
            """
        )
        return [
            SlotAsk(pilot, queue, restored(Resource(*offer), json.loads(said)), idle_s)
            for pilot, queue, *offer, said, idle_s in cursor.fetchall()
        ]


def idle_vos() -> frozenset[str]:
    """VOs for whose jobs slots have idled for so long that it needs a reason; "" if some take jobs of every VO."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT DISTINCT s.vo FROM brokerage_idleslot s JOIN brokerage_computingqueue q ON q.id = s.queue_id
            WHERE s.until > now() AND s.since < now() - make_interval(secs => %s) AND q.status = ANY (%s)
            """,
            [LONG_S, sorted(HANDS_OUT)],
        )
        return frozenset(vo for (vo,) in cursor.fetchall())


def open_queues(slots: Sequence[SlotAsk]) -> dict[int, str]:
    """Queues of these slots that hand jobs out now: id -> name."""
    ids = {slot.queue_id for slot in slots}
    return {queue.id: queue.name for queue in pilot_queues(id__in=ids) if queue.hands_out} if ids else {}


_WAITING = """
SELECT t.id, (
    SELECT count(*) FROM (
        SELECT FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL LIMIT %s) AS counted) AS n
FROM brokerage_taskqueue t WHERE t.id = ANY (%s)
"""


def waiting_jobs(queues: dict[int, str], most: int) -> list[Work]:
    """Jobs that wait for a pilot at these queues, by requirement, counted up to `most`. Held: all their queues are at sites that
    take no more by what they advertised; running limits and delays are not asked.
    """
    rows = {row.id: row for queue in queues for row in WAITING.of(queue, fresh=True).rows}
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [most, list(rows)])
        counted = [(rows[id_], n) for id_, n in cursor.fetchall() if n]
    full, work = _full_queues(queues), []
    for row, n in counted:
        needs = tuple(placed(row.requirement, queues.values()))
        free = tuple(need for need in needs if need.queue not in full)
        held = bool(needs) and not free
        why = full[needs[0].queue] if held else "jobs that fit wait here for the next ask of a pilot"
        work.append(Work(free or needs, n, why, held, task_queue_id=0 if row.is_open else row.id))
    return work


def _full_queues(queues: dict[int, str]) -> dict[str, str]:
    """Those at sites that take no more jobs by what they advertised last, with why; at most two statements."""
    at = dict(ComputingQueue.objects.filter(id__in=queues).values_list("name", "site_id"))
    sites, longest_s = advertised_sites(set(at.values())) if at else {}, max_age_s()
    whys = {name: ad.why_no_room(longest_s) for name, site in at.items() if (ad := sites.get(site)) is not None}
    return {name: f"the site takes no more: {why}" for name, why in whys.items() if why}


_TASKS = f"""
SELECT (array_agg(id ORDER BY decision_id DESC))[1], vo, prod_source_label, gshare, work_queue_id, resource_type,
    max(current_priority), min(next_look_at), max(decision_id), sum(files)::bigint, held
FROM (
    SELECT t.id, t.vo, t.prod_source_label, t.gshare, coalesce(t.work_queue_id, 0) AS work_queue_id, t.resource_type,
        t.current_priority, t.next_look_at, last.id AS decision_id, last.sameness, due.files,
        CASE t.status WHEN 'throttled' THEN t.error_dialog ELSE '' END AS held
    FROM (
        SELECT t.* FROM unnest(%(states)s) AS s(status), LATERAL (
            SELECT t.* FROM workqueues_task t
            WHERE t.status = s.status AND (t.status <> 'pending' OR t.old_status = ANY (%(states)s))
                AND (t.status <> 'throttled' OR EXISTS (
                    SELECT FROM workqueues_taskthrottle h WHERE h.task_id = t.id AND h.cause = %(cause)s))
                AND {FREE} AND {OF_OWN_QUEUES}
            ORDER BY t.current_priority DESC LIMIT %(most)s
        ) AS t ORDER BY t.current_priority DESC LIMIT %(most)s
    ) AS t CROSS JOIN LATERAL (
        SELECT id, sameness FROM brokerage_decision
        WHERE task_id = t.id AND policy <> ALL (%(nuclei)s) ORDER BY id DESC LIMIT 1
    ) AS last CROSS JOIN LATERAL (
        SELECT sum(n_files_to_be_used - n_files_used) AS files FROM workqueues_dataset d
        WHERE d.task_id = t.id AND d.master_id IS NULL AND d.status = 'ready' AND d.n_files_to_be_used > d.n_files_used
    ) AS due
) AS task GROUP BY sameness, vo, prod_source_label, gshare, work_queue_id, resource_type, held ORDER BY 7 DESC LIMIT %(groups)s
"""


def waiting_tasks() -> list[WaitingTask]:
    """Tasks with files due and a decision about queues, one of each group that stands equally, by priority."""
    nuclei = [name for name, policy in POLICIES.items() if policy.activity == "nucleus"]
    states = [*TASK.generating, "pending", "throttled"]
    with connection.cursor() as cursor:
        cursor.execute(_TASKS, {"cause": CAUSE, "states": states, "most": MOST_TASKS, "groups": MOST_GROUPS, "nuclei": nuclei})
        return [WaitingTask(id_, Group(*columns[:5]), *columns[5:]) for id_, *columns in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class IdleInHour:
    """Seconds of idle slots in one hour: all, beside eligible work, beside held work."""

    hour: datetime
    idle_s: float
    beside_s: float
    held_s: float


@dataclass(frozen=True, slots=True)
class IdleAtQueue:
    """Idle slots of a queue now, and by hour of the last day, the last hour first.

    `longest_s`: how long one of them has stood beside eligible work; `why`: what that work waits for; `why_held`: what holds the
    other work. `task_id`: a task with such work.
    """

    idle: int = 0
    beside: int = 0
    held: int = 0
    longest_s: float = 0.0
    why: str = ""
    why_held: str = ""
    task_id: int | None = None
    hours: tuple[IdleInHour, ...] = ()

    @property
    def day_s(self) -> tuple[float, float, float]:
        """Seconds of the last day: idle, beside eligible work, beside held work."""
        return sum(h.idle_s for h in self.hours), sum(h.beside_s for h in self.hours), sum(h.held_s for h in self.hours)


_IDLE_OF_DAY = """
WITH sums AS (
    SELECT queue_id, max(hour) AS hour, sum(idle_s) AS idle_s, sum(beside_s) AS beside_s, sum(held_s) AS held_s
    FROM brokerage_idlehour WHERE hour > now() - interval '1 day' GROUP BY 1
)
SELECT q.name, n.looked_at > now() - make_interval(secs => %(recent)s), n.idle, n.beside, n.held, n.longest_s, n.why, n.why_held,
    n.task_id, s.hour, s.idle_s, s.beside_s, s.held_s
FROM sums s JOIN brokerage_idlehour n ON n.queue_id = s.queue_id AND n.hour = s.hour
    JOIN brokerage_computingqueue q ON q.id = s.queue_id
"""


def idle_in_a_day(using: str = "default") -> dict[str, IdleAtQueue]:
    """By name the queues at which slots idled in the last day, which is told as one hour; one statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(_IDLE_OF_DAY, {"recent": RECENT_S})
        return {
            name: replace(IdleAtQueue(*state[:7]) if recent else IdleAtQueue(), hours=(IdleInHour(*state[7:]),))
            for name, recent, *state in cursor.fetchall()
        }


def idle_at_queues(queue_id: int | None = None, using: str = "default") -> dict[int, IdleAtQueue]:
    """Queues at which slots idled in the last day, or only this one; one statement over a small table."""
    hours: dict[int, list[IdleInHour]] = defaultdict(list)
    now: dict[int, IdleAtQueue] = {}
    with connections[using].cursor() as cursor:
        cursor.execute(
            """
            SELECT queue_id, looked_at > now() - make_interval(secs => %(recent)s), idle, beside, held, longest_s, why, why_held,
                task_id, hour, idle_s, beside_s, held_s
            FROM brokerage_idlehour
            WHERE hour > now() - interval '1 day' AND (%(queue)s::bigint IS NULL OR queue_id = %(queue)s)
            ORDER BY queue_id, hour DESC
            """,
            {"queue": queue_id, "recent": RECENT_S},
        )
        for queue, recent, *state, hour, idle_s, beside_s, held_s in cursor.fetchall():
            if recent and queue not in now:
                now[queue] = IdleAtQueue(*state)
            hours[queue].append(IdleInHour(hour, idle_s, beside_s, held_s))
    return {queue: replace(now.get(queue, IdleAtQueue()), hours=tuple(of_queue)) for queue, of_queue in hours.items()}
