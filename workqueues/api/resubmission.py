"""A submission under a name that must be the only one: a task of that name that has ended is run again as the body says, and of
one of analysis that runs the jobs are retried.

Source: seed 001, "Task retry and resubmission"; facts on commands 2.5, 2.6. Not here: registering a new task (`submission`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker_site.foundation.access.principal import Principal
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.ledger.commands import Commanded, command_task
from workqueues.ledger.submit import note_key
from workqueues.models import Task
from workqueues.queries.tasks import newest_named
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.refine.changes import change, differing
from workqueues.rules.task.commands import COMMANDS

AGAIN, FOR_JOBS = COMMANDS["incexec"], COMMANDS["retry"]


@dataclass(frozen=True, slots=True)
class Namesake:
    """The newest task of the name, and with which changes it is run again; `problems`: why it cannot be."""

    task: Task
    changes: Mapping[str, Any]
    problems: tuple[Problem, ...] = ()


def namesake(params: Mapping[str, Any], owner: str) -> Namesake | None:
    """The task that a body with uniqueTaskName means, if there is one; a broken one is as none.

    Only one of analysis is run again, that has ended, is exhausted, or runs. Of its parameters those may differ that may change.
    """
    vo, label, name = (params.get(n) for n in ("vo", "prodSourceLabel", "taskName"))
    if params.get("uniqueTaskName") is not True or not all(isinstance(v, str) and v for v in (vo, label, name)):
        return None
    task = newest_named(str(vo), owner, str(name), prod_source_label=str(label))
    if task is None or task.status == "broken":
        return None
    taken = task.status in AGAIN.states or FOR_JOBS.for_jobs(task.status, task.prod_source_label)
    if not taken or activity_of(task.prod_source_label) != "analysis":
        return Namesake(task, {}, (problem("uniqueTaskName", "unique", f"task {task.id} of this name is {task.status}"),))
    changes = differing(task.params.task_params, params)
    return Namesake(task, changes, change(task.params.task_params, changes, task.split_rule).problems)


def run_again(twin: Namesake, principal: Principal, key: str, digest: str) -> Commanded:
    """Give the task the command, in the caller's transaction, and note the key, so that it is given once."""
    row = AGAIN if twin.task.status in AGAIN.states else FOR_JOBS
    done = command_task(principal, twin.task, row, "submitted again", {}, twin.changes)
    if key:
        note_key(principal.name, key, digest, done.task.id)
    return done
