"""Agent refine. Takes tasks registered. Leaves them defined, pending (parent or input not there yet) or tobroken. Next: feed."""

from __future__ import annotations

from broker_site.agency.run import Run, agent
from workqueues.agents.each import each
from workqueues.agents.waiting import rest_s
from workqueues.catalogue import catalogue
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.define import break_task, define
from workqueues.ledger.holds import hold
from workqueues.models import Task, WorkQueue
from workqueues.queries.parents import parent_facts
from workqueues.rules.refine import Broken, Wait, input_names, plan

BATCH = 50


@agent("refine")
def refine(run: Run) -> int:
    """Refine every registered task."""
    return each(run, claim_tasks(run.id, run.claim_s, ["registered"], BATCH), refine_task)


def refine_task(run: Run, task: Task) -> bool:
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
            queue = WorkQueue.objects.filter(status="active", is_partition=False, criteria="").order_by("queue_order").first()
            if queue is None:
                hold(run.id, task.id, "no work queue takes the task", rest_s(task), run.who)
            else:
                define(run.id, task.id, refined, queue, run.who)
    return True
