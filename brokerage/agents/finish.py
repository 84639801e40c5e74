"""Agent finish. Takes tasks whose inputs are all settled, and those prepared, passed or to be broken.

Leaves them in a final state, or registered once their preprocessing step is over. Next: children and users, or refine.
"""

from __future__ import annotations

from django.db import transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.expiry import kill_jobs
from brokerage.ledger.transfers.destinations import send_datasets
from brokerage.ledger.transfers.pre_staging import drop_staged
from brokerage.queries.jobs import failure_rate, live_jobs, step_result
from workqueues.agents.each import each
from workqueues.catalogue.outputs import close_outputs
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.commands import kill_children
from workqueues.ledger.finish import end_task, note_progress, prepare_task
from workqueues.ledger.holds import kick_children
from workqueues.ledger.lifetimes import limit_lifetimes
from workqueues.ledger.open_inputs import read_again_now, wait_for_more
from workqueues.ledger.preprocessing import finish_step
from workqueues.ledger.validation import lose_absent_outputs
from workqueues.models import Task
from workqueues.queries.datasets import dataset_counts, output_names, written_names
from workqueues.queries.tasks import parent_facts
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.post_processors import POST_PROCESSORS, EndingTask
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine.filling import fill
from workqueues.rules.task.finish import Ending, final_status, ready_to_finish
from workqueues.states import TASK

BATCH = 50


@agent("finish")
def finish(run: Run) -> int:
    """Bring every task that is through to its end: how many moved."""
    through = claim_tasks(run.id, run.claim_s, TASK.judged, BATCH, work="all inputs settled")
    moved = each(run, through, prepare)
    moved += each(run, claim_tasks(run.id, run.claim_s, TASK.ending, BATCH), end)
    note_progress()
    return moved


def prepare(run: Run, task: Task) -> bool:
    """Close the inputs of one claimed task if it is through and no job of it lives: whether it was."""
    readiness = ready_to_finish(task.status, dataset_counts(task.id))
    if readiness.target == "registered" and not live_jobs(task.id):
        found = step_result(task.id)
        finish_step(run.id, task.id, found.job_id, fill(task.params.task_params, found.values))
        return True
    if readiness.target == "defined" and task.status != "throttled" and not live_jobs(task.id):
        wait_for_more(run.id, task.id, run.who)
        return True
    if readiness.target != "prepared" or live_jobs(task.id):
        release(task.id, run.id)
        return False
    prepare_task(run.id, task.id, run.who, readiness.reason)
    return True


def end(run: Run, task: Task) -> bool:
    """Bring one claimed task to its final state, once none of its jobs lives: whether it got there."""
    if live := live_jobs(task.id):
        kill_jobs(live, run.who, "the task ends")
        release(task.id, run.id)
        return False
    rules = parse(task.split_rule)
    parent = parent_facts(task)
    ending = final_status(
        task.status,
        dataset_counts(task.id),
        activity=activity_of(task.prod_source_label),
        parent=parent.status if parent else None,
        goal=task.goal,
        use_exhausted=rules.use_exhausted,
        fail_goal_unreached=rules.fail_goal_unreached,
        allow_empty_input=rules.allow_empty_input,
        in_step=rules.in_step,
    )
    if ending.status != "exhausted":
        close_outputs(task)
        if rules.drop_staged:
            drop_staged(task.id)
    about = post_process(run, task, ending) if ending.status in TASK.completed else ""
    with transaction.atomic():  # one that has ended is not looked at again: its children are killed with its end, or never
        end_task(run.id, task.id, ending, run.who, failure_rate(task.id), about)
        if ending.status in TASK.corrupted:
            kill_children(task.id, run.who)
    if ending.status in TASK.final:
        read_again_now(task.vo, written_names(task.id))
    if kick_children(task.id):
        look("wake")
    return True


def post_process(run: Run, task: Task, ending: Ending) -> str:
    """What becomes of the outputs of a task that ends well: what is to be told of it.

    Run again it does what is left; a post-processor that fails keeps the task from ending.
    """
    n_lost = lose_absent_outputs(task.id, run.who)
    about = f"{n_lost} of its outputs {'is' if n_lost == 1 else 'are'} gone, as their history tells" if n_lost else ""
    limit_lifetimes(task.id, gdpconfig.value("storage", "TRANSIENT_LIFETIME", vo=task.vo))
    send_datasets(task, run.who)
    wish = task.params.task_params.get("outputPostProcessing") or {}
    if not wish:
        return about
    settings = {key: value for key, value in wish.items() if key != "name"}
    names = tuple(output_names(task.id))
    said = POST_PROCESSORS[wish["name"]](EndingTask(task.id, task.vo, task.user_name, ending.status, names, settings))
    return "; ".join(filter(None, [about, said]))
