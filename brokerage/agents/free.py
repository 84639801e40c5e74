"""Agent free. Takes groups of tasks that found no place, once something happened that they may wait for. Leaves as many of the
tasks as there is room for to be looked at now. Next: wake, assign, generate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import one_by_one
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.waits import drop_waits, end_waits, note_judged
from brokerage.models import WaitGroup
from brokerage.queries.idle_slots import idle_slots
from brokerage.queries.wait_groups import AskTogether, any_waits, ask_together, groups_to_judge, tasks_in
from brokerage.queries.world import load_snapshot
from brokerage.queries.world_version import world_version
from brokerage.rules.decision.assembly import DecisionRequest, decide_task
from brokerage.rules.decision.policy_choice import NUCLEUS
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.facts.ask import Usage
from brokerage.rules.placement.room import QueueLoad, fill, queue_loads
from brokerage.rules.placement.slots import JobGrants, chosen_queues, limit_of
from brokerage.rules.world.grid_snapshot import GridSnapshot

MOST_GROUPS = 50
"""Groups that one run judges; those that are left are judged by the next one, at once."""
MOST_TASKS = 200
"""Tasks of one group that are let go at a time."""
MOST_DROPPED = 1000

_seen: dict[str, QueueLoad] = {}
"""What this process knew of the queues at its last look: those that are as they were free nobody."""


@agent("free")
def free(run: Run) -> int:
    """End waits whose cause is over: how many tasks, or groups where more are left than one run judges."""
    again_s = gdpconfig.value("jobbroker", "LOOK_AGAIN")
    if not again_s or not any_waits():
        _seen.clear()
        return 0
    drop_waits(MOST_DROPPED)
    world = world_version(run.now)
    snapshot = load_snapshot(run.now)
    loads = queue_loads(snapshot.facts, snapshot.now)
    groups = groups_to_judge(world, _moved(loads), again_s / 2, MOST_GROUPS)
    grants, config = JobGrants(loads), BrokerConfig(gdpconfig.component)

    def judge(group: WaitGroup) -> list[int]:
        together = ask_together(group)
        return [] if together is None else _to_free(together, snapshot, config, grants)

    tasks = one_by_one(groups, judge, lambda group, error: run.leave(f"group {group.id}", error))
    freed = end_waits(list(chain.from_iterable(tasks)))
    note_judged([group.id for group in groups], world)
    return max(freed, len(groups) if len(groups) == MOST_GROUPS else 0)


def _moved(loads: Mapping[str, QueueLoad]) -> set[str]:
    """Queues with a slot that idles, and those whose slots or jobs are others than at the last look."""
    moved = {queue for queue in {*loads, *_seen} if loads.get(queue) != _seen.get(queue)}
    _seen.clear()
    _seen.update(loads)
    return moved | {slot.offer.queue for slot in idle_slots()}


def _to_free(together: AskTogether, snapshot: GridSnapshot, config: BrokerConfig, grants: JobGrants) -> list[int]:
    """The tasks of a group for which a place is found now: of jobs for queues as many as fill them."""
    ask, nuclei = replace(together.ask, usage=Usage()), together.policy.activity == NUCLEUS
    facts = replace(together.task_facts, able_queues=None, added=()) if nuclei else together.task_facts
    policy = together.policy if nuclei else config.policy(ask.vo, together.policy.activity)
    decision = decide_task(DecisionRequest(snapshot, facts, ask, policy, config))
    if decision.decision.outcome != "assign":
        return []
    tasks = tasks_in(together.group_id, MOST_TASKS)
    if nuclei:
        return [task.task_id for task in tasks]
    limit = limit_of(policy.activity, ask.share, gdpconfig.component("jobbroker", vo=ask.vo))
    chosen, columns = decision.decision.chosen, decision.inputs.columns
    own_names = {choice.name: columns.own_names[choice.row] for choice in chosen}
    rooms = {own_names[q.name]: int(q.room) for q in chosen_queues(chosen, columns, limit, grants, ask.share) if q.room >= 1}
    freed = []
    for task in tasks:
        jobs = fill(rooms, max(1, task.files))
        if not jobs:
            break
        grants.add(ask.share or "", jobs)
        freed.append(task.task_id)
    return freed
