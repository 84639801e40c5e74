"""What the brokerage would be asked about a task if it looked at it now: only read, nothing picked, nothing written.

For whoever tries again without waiting, or changes the ask, the queues or the configuration to see what then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import brokerage.policies  # noqa: F401 - declares the policies
from broker_site import gdpconfig
from brokerage.queries.asks import task_ask
from brokerage.queries.world import load_world
from brokerage.rules.ask import Ask
from brokerage.rules.decision_record import config_of
from brokerage.rules.declare import Policy, policy_for
from brokerage.rules.policy_config import gathered
from brokerage.rules.world import World
from workqueues.models import Dataset, File, Task
from workqueues.rules.split_rule import parse
from workqueues.splitters.choice import splitter_for
from workqueues.splitters.protocol import Files, QueueLimits
from workqueues.states import TASK

MOST_FILES = 2000
"""Files that are looked at."""


class NothingToAsk(Exception):
    """The brokerage has nothing to decide about the task; the message says why."""


class Question(NamedTuple):
    """What is asked: the table is `brokerage.rules.dry_run.table_for(policy, ask, world, config_for)`."""

    policy: Policy
    ask: Ask
    world: World
    config: Mapping[str, Any]


def config_for(vo: str, policy: Policy) -> dict[str, Any]:
    """The keys that a policy reads, as they hold now for a VO."""
    return config_of(policy, gathered(policy, partial(gdpconfig.component, vo=vo)))


def current_question(task: Task) -> Question:
    """What the agents would ask now. Raises NothingToAsk."""
    if task.status in TASK.final:
        raise NothingToAsk(f"the task has ended: {task.status}")
    waiting_for_nucleus = "assigning" in (task.status, task.old_status if task.status == "pending" else "")
    policy = policy_for(task.vo, "nucleus" if waiting_for_nucleus else "generic")
    return Question(policy, _ask(task), load_world(), config_for(task.vo, policy))


def _ask(task: Task) -> Ask:
    dataset = (
        Dataset.objects.filter(task_id=task.id, type__in=["input", "pseudo_input"], master=None, excluded=False)
        .order_by("id")
        .first()
    )
    if dataset is None:
        raise NothingToAsk("the datasets of the task are not known yet")
    files = list(File.objects.filter(dataset_id=dataset.id, status__in=["ready", "picked"]).order_by("id")[:MOST_FILES])
    if not files:
        raise NothingToAsk("no file of its input waits to be used")
    limits = QueueLimits(max_files=gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB", vo=task.vo))
    columns = Files([f.id for f in files], [f.fsize or 0 for f in files], [f.n_events or 0 for f in files])
    jobs = list(splitter_for(dataset.type)(columns, parse(task.split_rule), limits))
    if not jobs:
        raise NothingToAsk("its files do not make a job yet")
    return task_ask(task, dataset, files, jobs)
