"""Agent slots. Takes slots that idle and the work that waits. Leaves by queue and hour how long slots idled beside work, and why.
Next: people, who see it on the pages of the queues, by REST and in /metrics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import chain

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import one_by_one
from broker_site.foundation.agency.run import Run, agent
from brokerage.agents.throttling import counted_jobs, rules_of
from brokerage.ledger.idle_slots import SlotState, drop_slots, note_idle
from brokerage.ledger.misfits import MisfitsAt, note_misfits
from brokerage.models import Decision
from brokerage.queries.decisions import decision_facts
from brokerage.queries.idle_slots import SlotAsk, WaitingTask, idle_slots, open_queues, waiting_jobs, waiting_tasks
from brokerage.queries.task_requirements import requirements_of
from brokerage.queries.world import load_snapshot
from brokerage.rules.decision.assembly import DecisionRequest, decide_task
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.dispatch.idle_slots import Work, misfits, work_beside
from brokerage.rules.dispatch.requirement import Requirement
from brokerage.rules.dispatch.task_requirement import of_job
from brokerage.rules.placement.passed_queues import passed_queues
from workqueues.queries.units import Units
from workqueues.rules.throttle.unit_verdict import judge_units
from workqueues.rules.throttle.units import Group

IN_VAIN_S = 5.0
"""A slot that has asked for so long has seen every job that waited meanwhile."""
MAKING = "a task passes here now, and its jobs are not made yet"


@agent("slots")
def slots(run: Run) -> int:
    """Look which slots idle beside work. Always 0: an agent that handled rows is run again at once."""
    drop_slots()
    idle = idle_slots()
    queues = open_queues(idle)
    at_open = [slot for slot in idle if slot.queue_id in queues]
    offers = [slot.offer for slot in at_open]
    work = waiting_jobs(queues, len(offers)) if queues else []
    beside = work_beside(offers, work)
    note_misfits(_misfits(at_open, beside, work))
    if None in beside and (tasks := waiting_tasks()):
        beside = work_beside(offers, [*work, *_work_of(run, tasks, {slot.offer.queue for slot in at_open})])
    of_slot = dict(zip((slot.pilot_id for slot in at_open), beside, strict=True))
    every_s = gdpconfig.value("agents", "PERIOD_slots")
    note_idle([SlotState(slot.pilot_id, slot.queue_id, slot.idle_s, of_slot.get(slot.pilot_id)) for slot in idle], every_s)
    return 0


def _misfits(slots: Sequence[SlotAsk], beside: Sequence[Work | None], jobs: Sequence[Work]) -> list[MisfitsAt]:
    """What fits no idle slot, at queues where slots idle that have seen all that waits and that none of it fits."""
    alone: dict[str, list[SlotAsk]] = defaultdict(list)
    for slot, work in zip(slots, beside, strict=True):
        if work is None and slot.idle_s >= IN_VAIN_S:
            alone[slot.offer.queue].append(slot)
    found = misfits([slot.offer for slot in slots], jobs, alone)
    return [MisfitsAt(alone[queue][0].queue_id, [slot.pilot_id for slot in alone[queue]], ids) for queue, ids in found.items()]


def _work_of(run: Run, tasks: Sequence[WaitingTask], queues: Container[str]) -> Iterator[Work]:
    """What the tasks could do at these queues: their last decisions, taken again on what is true now."""
    snapshot, config = load_snapshot(run.now), BrokerConfig(gdpconfig.component)
    throttle = _throttle(tasks)
    decisions = Decision.objects.in_bulk([task.decision_id for task in tasks])
    requirements = requirements_of([task.task_id for task in tasks])

    def work_of(task: WaitingTask) -> list[Work]:
        facts = decision_facts(decisions[task.decision_id])
        if facts.policy is None or facts.ask is None or task.task_id not in requirements:
            return []
        policy = config.policy(facts.ask.vo, facts.policy.activity)
        passed = passed_queues(decide_task(DecisionRequest(snapshot, facts.task_facts, facts.ask, policy, config)), queues)
        held = f"cap: {task.held}" if task.held else throttle.get(task.group, "")
        why = f"a task that passes here now waits until {task.next_look_at:%H:%M:%S} UTC" if task.next_look_at else MAKING
        return [
            Work(
                tuple(of_job(requirements[task.task_id], Requirement(queue, *slot, task.group.vo)) for queue, slot in at),
                task.files,
                hold or held or why,
                bool(hold or held),
                task.task_id,
            )
            for hold, at in passed.items()
        ]

    return chain.from_iterable(one_by_one(tasks, work_of, lambda task, error: run.leave(f"task {task.task_id}", error)))


def _throttle(tasks: Sequence[WaitingTask]) -> dict[Group, str]:
    """Groups of these tasks whose unit gets no jobs now, with the reason of the throttler."""
    units = Units.load()
    priorities: dict[Group, int] = {}
    for task in tasks:
        priorities[task.group] = max(task.priority, priorities.get(task.group, task.priority))
    judged = judge_units(priorities, counted_jobs(), units.of, lambda unit: rules_of(unit, units))
    verdicts = {group: judged[units.of(group)].verdict for group in priorities}
    return {group: f"throttler: {v.reason}" for group, v in verdicts.items() if v.room(priorities[group], 0) == 0}
