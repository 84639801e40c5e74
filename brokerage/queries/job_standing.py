"""What is known of a job that waits: the jobs before it, the task queues beside its own, and the last asks where it may go.

Five statements, two more where its jobs are submitted, each bounded, whatever waits.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from brokerage.models import Job
from brokerage.queries.dispatch_policies import policy_fault, policy_of
from brokerage.queries.submission import why_not_submitted
from brokerage.queries.task_queue_facts import TaskQueueFacts, task_queue_facts
from brokerage.queries.waiting import FIRST_JOB_OF
from brokerage.rules.dispatch.job_standing import Ask, JobStanding, Place, SiteWait, WaitingTurn, lacked_by, passed_by, place_at
from brokerage.rules.dispatch.queue_asks import ask_visible, requirement_text, resource_of
from brokerage.rules.dispatch.waiting_list import Unit
from brokerage.rules.submission.submission_cycle import WAIT_TEXTS, CachedJob, kind_of
from brokerage.states import JOB
from workqueues.models import WorkQueue
from workqueues.queries.serving_order import serving_order

MOST_COUNTED = 10_000
"""Jobs of its task queue that are counted."""
MOST_QUEUES = 20
"""Computing queues of an open job that are looked at."""
MOST_PASSED = 30

_BEFORE = """
SELECT count(*) FILTER (WHERE (ready_priority, id) < (%(ready)s, %(job)s)), count(*) FROM (
    SELECT ready_priority, id FROM brokerage_job WHERE task_queue_id = %(task_queue)s AND ready_priority IS NOT NULL
    ORDER BY ready_priority, id LIMIT %(most)s) j
"""
_TURNS = f"""
SELECT t.queue, t.id, t.vo, t.gshare, t.work_queue_id, -best.ready_priority, best.id FROM (
    SELECT computing_queue_id AS queue, id, vo, gshare, work_queue_id FROM brokerage_taskqueue
    WHERE computing_queue_id = ANY (%(queues)s)
    UNION ALL
    SELECT p.computing_queue_id, q.id, q.vo, q.gshare, q.work_queue_id FROM brokerage_requirementplace p
        JOIN brokerage_taskqueue q ON q.requirement_set_id = p.requirement_set_id
    WHERE p.computing_queue_id = ANY (%(queues)s) AND q.computing_queue_id IS NULL
) t {FIRST_JOB_OF}
"""
_ASKS = """
SELECT a.at, a.queue_id, a.pilot_id, a.offer::text, a.outcome, a.told::text, a.vo, cardinality(a.jobs) > 0
FROM unnest(%(queues)s::bigint[]) AS of(queue)
    CROSS JOIN LATERAL (
        SELECT id, at, queue_id, pilot_id, offer, outcome, told, vo, jobs FROM brokerage_queueask k WHERE k.queue_id = of.queue
        ORDER BY k.id DESC LIMIT 100) AS a
WHERE a.at >= %(since)s ORDER BY a.at DESC
"""


def job_standing(job: Job, vos: Collection[str] | None = None, using: str = DEFAULT_DB_ALIAS) -> JobStanding | None:
    """Where the job stands, with what became of asks for jobs of these VOs (None = all); None where it does not wait."""
    facts = task_queue_facts([job.task_queue_id], using).get(job.task_queue_id) if job.status in JOB.waiting else None
    if facts is None:
        return None
    names = dict(sorted(facts.queue_names.items())[:MOST_QUEUES])
    ahead, waiting = _before(job, using) if job.ready_priority is not None else (0, 0)
    turns = _turns(names, using) if job.ready_priority is not None else {}
    known = {turn.task_queue: turn for of_queue in turns.values() for turn in of_queue}
    passed = [passed_by(facts.requirement, job.task_queue_id, ask, known) for ask in _asks(job, names, vos, using)]
    return JobStanding(
        ready=job.ready_priority is not None,
        task_queue=job.task_queue_id,
        requires=requirement_text(facts.requirement),
        ahead=ahead,
        waiting=waiting,
        more=waiting >= MOST_COUNTED,
        places=tuple(_places(job, facts, names, turns, using)) if turns else (),
        asks=len(passed),
        suited=sum(one.suited for one in passed),
        lacked=lacked_by(passed),
        passed=tuple(passed[:MOST_PASSED]),
        submission=_submission(job, facts, using),
    )


def _submission(job: Job, facts: TaskQueueFacts, using: str) -> tuple[SiteWait, ...] | None:
    """What keeps it from being submitted; None where it is not to be, or does not wait for that."""
    if job.ready_priority is None:
        return None
    waits = why_not_submitted(CachedJob(job.id, kind_of(job.kind), -job.ready_priority, job.task_queue_id, ()), facts, using)
    return None if waits is None else tuple(SiteWait(one.site, one.reason, WAIT_TEXTS[one.reason]) for one in waits)


def _before(job: Job, using: str) -> tuple[int, int]:
    values = {"ready": job.ready_priority, "job": job.id, "task_queue": job.task_queue_id, "most": MOST_COUNTED}
    with connections[using].cursor() as cursor:
        cursor.execute(_BEFORE, values)
        before, n = cursor.fetchone()
    return before, n


def _turns(names: Mapping[int, str], using: str) -> Mapping[int, Sequence[WaitingTurn]]:
    """The task queues with jobs at each of these computing queues."""
    order, turns = serving_order(using), defaultdict(list)
    for queue, task_queue, vo, gshare, work_queue, priority, first in _rows(_TURNS, {"queues": list(names)}, using):
        place = order.place(vo, gshare, work_queue)
        turns[queue].append(WaitingTurn(task_queue, Unit(vo, gshare, work_queue), place, priority, first))
    return turns


def _places(
    job: Job, facts: TaskQueueFacts, names: Mapping[int, str], turns: Mapping[int, Sequence[WaitingTurn]], using: str
) -> Iterator[Place]:
    work_queue = _work_queue(facts.unit.work_queue_id, using) if not facts.unit.gshare else ""
    for id_, name in sorted(names.items(), key=lambda item: item[1]):
        policy, fault = policy_of(name, facts.requirement.vo), policy_fault(name, facts.requirement.vo)
        by_chance = policy is not None and policy.by_group
        there = turns.get(id_, ())
        found = place_at(name, policy.name if policy else "", by_chance, there, job.task_queue_id, work_queue)
        if found is not None:
            yield replace(found, fault=fault)


def _work_queue(id_: int | None, using: str) -> str:
    return str(WorkQueue.objects.using(using).filter(id=id_).values_list("queue_name", flat=True).first() or "") if id_ else ""


def _asks(job: Job, names: Mapping[int, str], vos: Collection[str] | None, using: str) -> Iterator[Ask]:
    values = {"queues": list(names), "since": job.status_since}
    for at, queue, pilot, offer, outcome, told, vo, got in _rows(_ASKS, values, using):
        said = json.loads(told) if ask_visible(vo, bool(got), vos) else {}
        resource, limits = resource_of(names[queue], json.loads(offer)), said.get("limits", ())
        yield Ask(at, names[queue], pilot, resource, outcome, said.get("task_queue"), limits, vos is None)


def _rows(sql: str, values: Mapping[str, Any], using: str) -> Collection[tuple[Any, ...]]:
    with connections[using].cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()
