"""What the brokerage would be asked about a task if it looked at it now: only read, nothing picked, nothing written.

For whoever tries again without waiting, or changes the ask, the queues or the configuration to see what then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import brokerage.policies  # noqa: F401 - declares the policies
from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel import clock
from brokerage.queries.asks import chunk_of, task_ask
from brokerage.queries.chunks import Batch, CannotAsk, load_batch
from brokerage.queries.feeds import stale_feeds
from brokerage.queries.usable_input import peek
from brokerage.queries.world import load_world
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.dry_run import activity_of, scope_of
from brokerage.rules.decision.policy_choice import NUCLEUS, policy_chosen
from brokerage.rules.decision.policy_config import gathered
from brokerage.rules.decision.record import config_of
from brokerage.rules.facts.ask import Ask
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts
from workqueues.models import Task
from workqueues.states import TASK

MOST_FILES = 2000
"""Files that are looked at."""


class NothingToAsk(Exception):
    """The brokerage has nothing to decide about the task; the message says why."""


class Question(NamedTuple):
    """What is asked: the table is `brokerage.rules.decision.dry_run.table_for(policy, ask, world, config_for)`."""

    policy: Policy
    ask: Ask
    world: GridSnapshot
    config: Mapping[str, Any]


def config_for(vo: str, policy: Policy) -> dict[str, Any]:
    """The keys that a policy reads, as they hold now for a VO."""
    return config_of(policy, gathered(policy, partial(gdpconfig.component, vo=vo)))


def current_question(task: Task) -> Question:
    """What the agents would ask now. Raises NothingToAsk, BadPlan, Unusable (the configuration names what is not there)."""
    if task.status in TASK.final:
        raise NothingToAsk(f"the task has ended: {task.status}")
    before = task.old_status if task.status == "pending" else task.status
    activity = NUCLEUS if before == "assigning" else activity_of(task.prod_source_label)
    if activity != NUCLEUS and (stale := stale_feeds(clock.now())):
        raise NothingToAsk(stale[0])
    policy = policy_chosen(task.vo, activity, gdpconfig.component("core", vo=task.vo))
    world = load_world(scope=scope_of(task.prod_source_label))
    batch = load_batch([task], whole=activity == NUCLEUS)
    try:
        ask, own = _asked(task, batch, world, whole=activity == NUCLEUS)
    except CannotAsk as error:
        raise NothingToAsk(str(error)) from error
    return Question(policy, ask, world.knowing(own.replicas, own.ended), config_for(task.vo, policy))


def _asked(task: Task, batch: Batch, world: GridSnapshot, *, whole: bool) -> tuple[Ask, TaskFacts]:
    masters = batch.masters(task)
    if not masters:
        raise NothingToAsk("the datasets of the task are not known yet")
    for dataset in masters:
        there = peek(task, dataset, MOST_FILES)
        if jobs := there.smallest():
            files = there.files
            inputs = batch.whole_input(task) if whole else batch.taken(dataset, files)
            own = batch.own(task, inputs, world.storages, () if whole else files)
            return world.completed(task_ask(task, chunk_of(inputs, jobs, files), world.now)), own
    raise NothingToAsk("no file of its input waits to be used")
