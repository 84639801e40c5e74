"""Agent free. Takes groups of tasks that found no place, once something happened that they may wait for. Leaves as many of the
tasks as there is room for to be looked at now. Next: wake, assign, generate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import one_by_one
from broker_site.foundation.agency.look import look_later
from broker_site.foundation.agency.run import Run, agent
from broker_site.foundation.kernel import clock
from brokerage.ledger.waits import drop_waits, end_waits, note_causes, note_judged
from brokerage.models import WaitGroup
from brokerage.queries.asks import sites_with
from brokerage.queries.idle_slots import SlotAsk, idle_slots
from brokerage.queries.site_limits import station_sites
from brokerage.queries.wait_groups import (
    AskTogether,
    any_waits,
    ask_together,
    groups_beside,
    groups_to_judge,
    groups_touched,
    tasks_in,
)
from brokerage.queries.world import load_snapshot
from brokerage.queries.world_version import world_version
from brokerage.rules.decision.assembly import DecisionRequest, TaskDecision, decide_task, scoped_for
from brokerage.rules.decision.policy_choice import NUCLEUS
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.facts.ask import Usage
from brokerage.rules.placement.distribution import ChosenQueue
from brokerage.rules.placement.input_ways import NoPlace, Reachable, reachable
from brokerage.rules.placement.place_jobs import chosen_places
from brokerage.rules.placement.room import QueueLoad, fill, queue_loads, without_misfits
from brokerage.rules.placement.slots import JobGrants
from brokerage.rules.placement.wait_cause import WaitCause, cause_of
from brokerage.rules.world.grid_snapshot import GridSnapshot

MOST_GROUPS = 50
"""Groups that one run judges; those that are left are judged by the next one, at once."""
MOST_TASKS = 200
"""Tasks of one group that are let go at a time."""
MOST_DROPPED = 1000
SOON_S = 0.2
"""So long a group rests that was judged, though slots began to idle since: what it was let go for is on its way to them."""

_seen: dict[tuple[str, str], QueueLoad | float] = {}
"""What this process knew of queues, and of the work at nuclei, at its last look: those that are as they were free nobody."""
_moved: set[str] = set()
"""Queues and nuclei that are others since, and by which not all groups have been judged that they touch."""


@agent("free")
def free(run: Run) -> int:
    """End waits whose cause is over: how many tasks, or groups where more are left than one run judges."""
    again_s = gdpconfig.value("jobbroker", "LOOK_AGAIN")
    if not again_s or not any_waits():
        _seen.clear()
        _moved.clear()
        return 0
    drop_waits(MOST_DROPPED)
    world = world_version(run.now)
    snapshot = load_snapshot(run.now)
    loads = queue_loads(snapshot.facts, snapshot.now)
    _note_moves(loads, snapshot.facts.total_rw or {})
    idle_since = _idle_since(clock.now(), idle_slots())
    urgent = groups_to_judge(world, idle_since, again_s / 2, MOST_GROUPS)
    urgent += _rested(groups_beside(idle_since, MOST_GROUPS - len(urgent), urgent), run.now)
    touched, later = groups_touched(world, _moved, again_s / 2, MOST_GROUPS - len(urgent), urgent)
    groups = urgent + touched
    offered = station_sites({station for group in groups for station in group.ask.get("stations", ())})
    grants, config = JobGrants(without_misfits(loads)), BrokerConfig(gdpconfig.component)
    more_left: list[int] = []
    causes: dict[int, WaitCause] = {}

    def judge(group: WaitGroup) -> list[int]:
        together = ask_together(group)
        if together is None:
            return []
        decision = _decided(together, snapshot, config, offered)
        cause = cause_of(decision)
        if (list(cause.criteria), list(cause.queues)) != (group.criteria, group.queues):
            causes[group.id] = cause  # what is left of the group is touched by what moves there from now on
        tasks = _to_free(together, decision, snapshot, grants)
        if len(tasks) == MOST_TASKS:
            more_left.append(group.id)
        return tasks

    tasks = one_by_one(groups, judge, lambda group, error: run.leave(f"group {group.id}", error))
    freed = end_waits(list(chain.from_iterable(tasks)))
    note_causes(causes)
    note_judged(groups, more_left, world)
    if not later:
        _moved.clear()  # only now: a run that ends before has told nobody
    return max(freed, len(urgent) if len(urgent) == MOST_GROUPS else 0)


def _idle_since(now: datetime, slots: Sequence[SlotAsk]) -> Mapping[str, datetime]:
    """When the last slot of each queue began to idle, by our clock."""
    return {slot.offer.queue: now - timedelta(seconds=slot.idle_s) for slot in slots}  # the longest idle come first


def _rested(groups: Sequence[WaitGroup], now: datetime) -> list[WaitGroup]:
    """Those that were not judged a moment ago; where others are, the agent looks again when their moment is over."""
    rested = [group for group in groups if (now - group.judged_at).total_seconds() >= SOON_S]
    if len(rested) < len(groups):
        look_later("free", SOON_S)
    return rested


def _note_moves(loads: Mapping[str, QueueLoad], work: Mapping[str, float]) -> None:
    """Queues whose slots or jobs, and nuclei whose work, are others than at the last look."""
    known: dict[tuple[str, str], QueueLoad | float] = {("queue", name): load for name, load in loads.items()}
    known.update({("nucleus", name): amount for name, amount in work.items()})
    _moved.update(key[1] for key in {*known, *_seen} if known.get(key) != _seen.get(key))
    _seen.clear()
    _seen.update(known)


def _decided(
    together: AskTogether, snapshot: GridSnapshot, config: BrokerConfig, offered: Mapping[str, Collection[str]]
) -> TaskDecision[Any]:
    """The decision about a group on what is true now. `offered`: station -> sites."""
    asked, nuclei = together.ask, together.policy.activity == NUCLEUS
    ask = replace(asked, usage=Usage(), station_sites=sites_with(asked.stations, offered))
    facts = replace(together.task_facts, able_queues=None, added=()) if nuclei else together.task_facts
    policy = together.policy if nuclei else config.policy(ask.vo, together.policy.activity)
    return decide_task(DecisionRequest(snapshot, facts, ask, policy, config))


def _to_free(together: AskTogether, decision: TaskDecision[Any], snapshot: GridSnapshot, grants: JobGrants) -> list[int]:
    """The tasks of a group for which a place is found: of jobs for queues as many as fill them."""
    policy, ask, columns, _ = decision.inputs
    if decision.decision.outcome != "assign":
        return []
    tasks = tasks_in(together.group_id, MOST_TASKS)
    if policy.activity == NUCLEUS:
        return [task.task_id for task in tasks]

    def choose(chosen: Sequence[ChosenQueue]) -> Reachable:
        # How much each of their users has on the way is looked at when jobs are made.
        return reachable(chosen, decision, scoped_for(snapshot, policy, ask), unsure=False, over=str)

    try:
        places = chosen_places(decision, choose, grants, gdpconfig.component("jobbroker", vo=ask.vo)).queues
    except NoPlace:
        return []
    own_names = {choice.name: columns.own_names[choice.row] for choice in decision.decision.chosen}
    rooms = {own_names[place.name]: int(place.room) for place in places if place.room >= 1}
    freed = []
    for task in tasks:
        jobs = fill(rooms, max(1, task.files))
        if not jobs:
            break
        grants.add(ask.share or "", jobs)
        freed.append(task.task_id)
    return freed
