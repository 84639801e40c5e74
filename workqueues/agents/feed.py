"""Agent feed. Takes tasks defined, and running ones with files that jobs could not read.

Leaves them ready or assigning, pending or tobroken. Next: assign or generate.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from broker_site.foundation.agency.run import Run, agent
from workqueues.agents.each import each
from workqueues.agents.input_loader import CannotFeed, Filled, fill_inputs
from workqueues.agents.waiting import rest_s
from workqueues.catalogue import CatalogueUnavailable, Condition, catalogue
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.define import break_task
from workqueues.ledger.feed import fed, finish_empty, outputs_registered, resolve_held
from workqueues.ledger.holds import hold
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.queries.endings import output_names
from workqueues.queries.held_files import held_files, reporting_queues
from workqueues.queries.parents import parent_facts
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.feeding import after_feeding
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.rules.refine import TaskPlan, plan, read_task
from workqueues.states import TASK

BATCH = 20


@agent("feed")
def feed(run: Run) -> int:
    """Feed every defined task; ask the catalogue about every held file."""
    fed_tasks = each(run, claim_tasks(run.id, run.claim_s, ["defined"], BATCH), feed_task)
    holding = claim_tasks(run.id, run.claim_s, TASK.generating, BATCH, work="held inputs")
    return fed_tasks + each(run, holding, ask_about_held)


def feed_task(run: Run, task: Task) -> bool:
    """Fill the datasets of one claimed task and send it on."""
    try:
        document = read_task(task.params.task_params)
        known = catalogue().look_up(document.input_names)
        planned = plan(document, task_id=task.id, user_name=task.user_name, parent=parent_facts(task), known=known)
        if not isinstance(planned, TaskPlan):
            hold(run.id, task.id, planned.reason, rest_s(task), run.who)
            return True
        _register_outputs(run, task)
        _send_on(run, task, planned, fill_inputs(run, task, planned))
    except CannotFeed as error:
        break_task(run.id, task.id, str(error), run.who)
    except CatalogueUnavailable as error:
        hold(run.id, task.id, f"the catalogue does not answer: {error}", rest_s(task), run.who)
    return True


def _send_on(run: Run, task: Task, planned: TaskPlan, filled: Filled) -> None:
    """On with a task whose inputs are filled; one that lacks files of a secondary dataset can make no job either."""
    rules = parse(task.split_rule)
    usable = 0 if filled.empty else filled.usable
    lack = _lack(filled, rules)
    match after_feeding(usable, allow_empty=rules.allow_empty_input, wait_input=rules.wait_input, still_open=_open(planned)):
        case "go":
            fed(run.id, task.id, "assigning" if activity_of(task.prod_source_label) == "production" else "ready", run.who)
        case "wait":
            hold(run.id, task.id, f"{lack} yet", rest_s(task), run.who)
        case "finish":
            finish_empty(run.id, task.id, run.who)
        case "break":
            break_task(run.id, task.id, lack, run.who)


def _lack(filled: Filled, rules: SplitRules) -> str:
    """What a task lacks that has nothing to use."""
    if filled.usable and filled.empty:
        return f"the secondary dataset {filled.empty[0]} has no files"
    if rules.skip_short_input:
        return f"the input has no files of {rules.events_per_job} events or more, and skipShortInput leaves the others out"
    return "the input has no files"


def _register_outputs(run: Run, task: Task) -> None:
    catalogue().register(output_names(task.id))
    outputs_registered(run.id, task.id, run.who)


def _open(planned: TaskPlan) -> bool:
    """Whether files may still come to an input."""
    return any(p.state == "open" for p in planned.datasets if p.type == "input")


def ask_about_held(run: Run, task: Task) -> bool:
    """Ask the catalogue about the held files of one claimed task (decision D9)."""
    give_back_picked(run.id, task.id)  # the claim may be that of a generator that died
    verdicts: dict[int, Literal["lost", "broken", "ready"]] = {}
    try:
        for dataset, files in held_files(task.id).items():
            conditions = catalogue().check(dataset, [lfn for _, lfn in files])
            said = reporting_queues([file_id for file_id, _ in files])
            verdicts |= {file_id: _verdict(conditions[lfn], said.get(file_id, ())) for file_id, lfn in files}
    except CatalogueUnavailable:
        release(task.id, run.id)
        return False
    resolve_held(run.id, task.id, verdicts, run.who)
    release(task.id, run.id)
    return True


def _verdict(condition: Condition, queues: Collection[str]) -> Literal["lost", "broken", "ready"]:
    """The catalogue's word; where it says the file is there, the word of two queues against it counts more."""
    if condition == "ok":
        return "lost" if len(queues) > 1 else "ready"
    return condition
