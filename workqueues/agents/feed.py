"""Agent feed. Takes tasks defined, and running ones with files that jobs could not read.

Leaves them ready or assigning, pending or tobroken. Next: assign or generate.
"""

from __future__ import annotations

from broker_site.foundation.agency.run import Run, agent
from workqueues.agents.each import each, rest_s
from workqueues.agents.input_loader import load_inputs
from workqueues.catalogue import CatalogueUnavailable, catalogue
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.define import break_task
from workqueues.ledger.feed import finish_empty, finish_feeding, open_outputs, resolve_held
from workqueues.ledger.holds import set_pending
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.queries.datasets import held_files, output_names, reporting_queues
from workqueues.queries.tasks import parent_facts
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.feeding import FileVerdict, LoadedInputs, after_feeding, file_verdict
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import TaskPlan, plan, read_task
from workqueues.rules.refine.input_files import CannotFeed
from workqueues.states import TASK

BATCH = 20


@agent("feed")
def feed(run: Run) -> int:
    """Feed every defined task; ask the catalogue about every held file."""
    fed_tasks = each(run, claim_tasks(run.id, run.claim_s, ["defined"], BATCH), feed_task)
    holding = claim_tasks(run.id, run.claim_s, TASK.generating, BATCH, work="held inputs")
    return fed_tasks + each(run, holding, ask_about_held)


def feed_task(run: Run, task: Task) -> bool:
    try:
        document = read_task(task.params.task_params)
        known = catalogue().look_up(document.input_names)
        planned = plan(document, task_id=task.id, user_name=task.user_name, parent=parent_facts(task), known=known)
        if not isinstance(planned, TaskPlan):
            set_pending(run.id, task.id, planned.reason, rest_s(task), run.who)
            return True
        catalogue().register(output_names(task.id))
        open_outputs(run.id, task.id, run.who)
        _send_on(run, task, planned, load_inputs(run, task, planned))
    except CannotFeed as error:
        break_task(run.id, task.id, str(error), run.who)
    except CatalogueUnavailable as error:
        set_pending(run.id, task.id, f"the catalogue does not answer: {error}", rest_s(task), run.who)
    return True


def _send_on(run: Run, task: Task, planned: TaskPlan, inputs: LoadedInputs) -> None:
    still_open = any(p.state == "open" for p in planned.datasets if p.type == "input")
    after = after_feeding(inputs, parse(task.split_rule), still_open=still_open)
    match after.way:
        case "go":
            target = "assigning" if activity_of(task.prod_source_label) == "production" else "ready"
            finish_feeding(run.id, task.id, target, run.who)
        case "wait":
            set_pending(run.id, task.id, after.lack, rest_s(task), run.who)
        case "finish":
            finish_empty(run.id, task.id, run.who)
        case "break":
            break_task(run.id, task.id, after.lack, run.who)


def ask_about_held(run: Run, task: Task) -> bool:
    """Ask the catalogue about the held files of one claimed task (decision D9)."""
    give_back_picked(run.id, task.id)  # the claim may be that of a generator that died
    verdicts: dict[int, FileVerdict] = {}
    try:
        for dataset, files in held_files(task.id).items():
            conditions = catalogue().check(dataset, [lfn for _, lfn in files])
            queues = reporting_queues([file_id for file_id, _ in files])
            verdicts |= {file_id: file_verdict(conditions[lfn], queues.get(file_id, ())) for file_id, lfn in files}
    except CatalogueUnavailable:
        release(task.id, run.id)
        return False
    resolve_held(run.id, task.id, verdicts, run.who)
    release(task.id, run.id)
    return True
