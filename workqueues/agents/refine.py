"""Agent refine. Takes tasks registered, and those to be refined again. Leaves them defined, pending (parent or input not there
yet) or tobroken. Next: feed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from workqueues.agents.each import each, rest_s
from workqueues.agents.input_loader import look_up_inputs
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.define import break_task, define
from workqueues.ledger.holds import set_pending
from workqueues.ledger.incexec import refine_again
from workqueues.ledger.output_names import OutputConflict
from workqueues.models import Task
from workqueues.queries.shares import Tree, trees
from workqueues.queries.tasks import input_writers, parent_facts
from workqueues.queries.work_queues import WorkQueues
from workqueues.rules.jobs.resource_type import resource_type
from workqueues.rules.refine import TaskFaults, TaskPlan, TaskWait, plan, read_task
from workqueues.states import TASK

BATCH = 50


class Divisions(NamedTuple):
    """What the work is divided into: work queues, and the share tree of each VO that has one."""

    queues: WorkQueues
    trees: Mapping[str, Tree]


@agent("refine")
def refine(run: Run) -> int:
    tasks = claim_tasks(run.id, run.claim_s, TASK.unread, BATCH)
    if not tasks:
        return 0
    divisions = Divisions(WorkQueues.load(), trees())
    return each(run, tasks, lambda run, task: refine_task(run, task, divisions))


def refine_task(run: Run, task: Task, divisions: Divisions) -> bool:
    document = read_task(task.params.task_params)
    known, withheld = look_up_inputs(task, document)
    parent, writers = parent_facts(task), input_writers(task)
    refined = plan(
        document, task_id=task.id, user_name=task.user_name, parent=parent, writers=writers, known=known, withheld=withheld
    )
    match refined:
        case TaskWait(reason, clock):
            set_pending(run.id, task.id, reason, rest_s(task), run.who, clock=clock)
        case TaskFaults() if task.status == "rerefine":  # it ran before: somebody may mend its input, or finish it
            set_pending(run.id, task.id, refined.reason, rest_s(task), run.who)
        case TaskFaults():
            break_task(run.id, task.id, refined.reason, run.who)
        case _ if task.datasets.exists():
            refine_again(run.id, task.id, refined, run.who)
        case _:
            _place(run, task, refined, divisions)
    return True


def _place(run: Run, task: Task, refined: TaskPlan, divisions: Divisions) -> None:
    """Find the share and the work queue of a task that can be defined."""
    columns, name = _columns(task, refined, divisions), task.params.task_params.get("workQueueName")
    queue = divisions.queues.named(name, columns) if name else divisions.queues.taking(columns)
    if name and queue is None:
        break_task(run.id, task.id, f"workQueueName: no work queue {name} for this VO and prodSourceLabel", run.who)
    elif refined.columns.get("gshare") and not columns["gshare"]:
        break_task(run.id, task.id, f"gshare: the VO has no leaf share {refined.columns['gshare']}", run.who)
    elif queue is None:
        set_pending(run.id, task.id, "no work queue takes the task", rest_s(task), run.who)
    else:
        try:
            define(run.id, task.id, refined, queue, columns["gshare"], columns["resource_type"], run.who)
        except OutputConflict as conflict:
            break_task(run.id, task.id, str(conflict), run.who)


def _columns(task: Task, planned: TaskPlan, divisions: Divisions) -> dict[str, Any]:
    columns = {field.attname: getattr(task, field.attname) for field in Task._meta.concrete_fields} | dict(planned.columns)
    tree = divisions.trees.get(task.vo)
    resources = resource_type(
        columns["core_count"],
        columns["ram_count"],
        columns["ram_unit"] or "MB",
        columns["base_ram_count"],
        compensation=gdpconfig.value("jobbroker", "MEMORY_COMPENSATION", vo=task.vo),
    )
    return columns | {"resource_type": resources, "gshare": tree.share_of(columns) if tree else ""}
