"""Agent refine. Takes tasks registered, and those to be refined again. Leaves them defined, topreprocess (a job is to fill in
parameters first), pending (parent or input not there yet) or tobroken. Next: feed, or generate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from workqueues.agents.each import each, rest_s
from workqueues.agents.filled_parameters import faults_of_filled
from workqueues.agents.input_loader import look_up_inputs
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.define import break_task, define
from workqueues.ledger.holds import set_pending
from workqueues.ledger.incexec import refine_again
from workqueues.ledger.output_names import OutputConflict
from workqueues.ledger.outputs import DatasetOfAnother
from workqueues.ledger.preprocessing import begin_step
from workqueues.models import Task, WorkQueue
from workqueues.queries.shares import Tree, trees
from workqueues.queries.tasks import input_writers, parent_facts
from workqueues.queries.work_queues import WorkQueues
from workqueues.rules.jobs.resource_type import resource_type
from workqueues.rules.jobs.split_rule import PREPROCESSED, parse
from workqueues.rules.refine import TaskFaults, TaskPlan, TaskWait, bounded, plan, plan_step, read_task, read_unfilled, step_due
from workqueues.rules.refine.preprocessing import whole_task
from workqueues.states import TASK

BATCH = 50

Store = Callable[[str, int, TaskPlan, WorkQueue, str, str, str], None]
"""Stores a plan with its work queue, share and class of resources."""


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
    if step_due(task.params.task_params, task.split_rule):
        return _prepare(run, task, divisions)
    document = read_task(task.params.task_params)
    filled = parse(task.split_rule).preprocessing == PREPROCESSED
    wrong = faults_of_filled(run, task, document) if filled else []
    known, withheld = look_up_inputs(task, document)
    parent, writers = parent_facts(task), input_writers(task)
    if filled:
        withheld = ()  # nobody has seen yet that it may read them
    refined = plan(
        document, task_id=task.id, user_name=task.user_name, parent=parent, writers=writers, known=known, withheld=withheld
    )
    if wrong:
        refined = TaskFaults(bounded([*wrong, *(refined.problems if isinstance(refined, TaskFaults) else ())]))
    match refined:
        case TaskWait(reason, clock):
            set_pending(run.id, task.id, reason, rest_s(task), run.who, clock=clock)
        case TaskFaults() if task.status == "rerefine":  # it ran before: somebody may mend its input, or finish it
            set_pending(run.id, task.id, refined.reason, rest_s(task), run.who)
        case TaskFaults():
            break_task(run.id, task.id, refined.reason, run.who)
        case _ if filled:
            _place(run, task, whole_task(refined), divisions, define)
        case _ if task.datasets.exists():
            refine_again(run.id, task.id, refined, run.who)
        case _:
            _place(run, task, refined, divisions, define)
    return True


def _prepare(run: Run, task: Task, divisions: Divisions) -> bool:
    """One job fills in parameters of the task first; what they will be is not looked at yet."""
    step = plan_step(read_unfilled(task.params.task_params), task_id=task.id, attempt_nr=task.attempt_nr)
    if isinstance(step, TaskPlan):
        _place(run, task, step, divisions, begin_step)
    elif task.status == "rerefine":
        set_pending(run.id, task.id, step.reason, rest_s(task), run.who)
    else:
        break_task(run.id, task.id, step.reason, run.who)
    return True


def _place(run: Run, task: Task, refined: TaskPlan, divisions: Divisions, store: Store) -> None:
    """Find the share and the work queue of a task that can be defined, or whose step can, and store it."""
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
            store(run.id, task.id, refined, queue, columns["gshare"], columns["resource_type"], run.who)
        except (OutputConflict, DatasetOfAnother) as conflict:
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
