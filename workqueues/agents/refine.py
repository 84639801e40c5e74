"""Agent refine. Takes tasks registered. Leaves them defined, pending (parent or input not there yet) or tobroken. Next: feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site import gdpconfig
from broker_site.agency.run import Run, agent
from workqueues.agents.each import each
from workqueues.agents.waiting import rest_s
from workqueues.catalogue import catalogue
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.define import break_task, define
from workqueues.ledger.holds import hold
from workqueues.models import Task
from workqueues.queries.parents import parent_facts
from workqueues.queries.work_queues import WorkQueues
from workqueues.rules.refine import Broken, TaskPlan, Wait, input_names, plan
from workqueues.rules.resource_type import resource_type

BATCH = 50


@agent("refine")
def refine(run: Run) -> int:
    """Refine every registered task."""
    tasks = claim_tasks(run.id, run.claim_s, ["registered"], BATCH)
    if not tasks:
        return 0
    queues = WorkQueues.load()
    return each(run, tasks, lambda run, task: refine_task(run, task, queues))


def refine_task(run: Run, task: Task, queues: WorkQueues) -> bool:
    """Refine one claimed task."""
    params = task.params.task_params
    known = catalogue().look_up(input_names(params))
    refined = plan(params, task_id=task.id, user_name=task.user_name, parent=parent_facts(task), known=known)
    match refined:
        case Wait(reason, clock):
            hold(run.id, task.id, reason, rest_s(task), run.who, clock=clock)
        case Broken():
            break_task(run.id, task.id, refined.reason, run.who)
        case _:
            columns = _columns(task, refined)
            if (queue := queues.taking(columns)) is None:
                hold(run.id, task.id, "no work queue takes the task", rest_s(task), run.who)
            else:
                define(run.id, task.id, refined, queue, columns["resource_type"], run.who)
    return True


def _columns(task: Task, planned: TaskPlan) -> dict[str, Any]:
    """The columns of the task as they will be."""
    columns = {field.attname: getattr(task, field.attname) for field in Task._meta.concrete_fields} | dict(planned.columns)
    return columns | {"resource_type": _resource_type(columns, task.vo)}


def _resource_type(columns: Mapping[str, Any], vo: str) -> str:
    """The class of the task's resources, by which jobs are grouped and counted."""
    return resource_type(
        columns.get("core_count"),
        columns.get("ram_count"),
        columns.get("ram_unit") or "MB",
        columns.get("base_ram_count"),
        compensation=gdpconfig.value("jobbroker", "MEMORY_COMPENSATION", vo=vo),
    )
