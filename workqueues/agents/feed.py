"""Agent feed. Takes tasks defined, and running ones with inputs that are still open, or with files that jobs could not read or
that are lost.

Leaves them ready or assigning, pending or tobroken. Next: assign or generate.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from workqueues.agents.each import each, rest_s
from workqueues.agents.input_loader import load_inputs, see_inputs
from workqueues.catalogue import CatalogueUnavailable, catalogue, storage_faults
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.define import break_task
from workqueues.ledger.feed import finish_empty, finish_feeding, open_outputs, put_off, resolve_held
from workqueues.ledger.holds import note_reason, retry_later, set_pending
from workqueues.ledger.open_inputs import go_on, kick_followers, put_off_reading
from workqueues.ledger.outputs import DatasetOfAnother
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.queries.datasets import files_to_look_for, next_reading, reporting_queues, through_since_read, written_names
from workqueues.queries.tasks import was_assigned
from workqueues.queries.writers import writer_of
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.feeding import LoadedInputs, after_feeding
from workqueues.rules.jobs.held_files import FileVerdict, Pauses, file_verdict, storage_verdict, unknown_dataset_verdict
from workqueues.rules.jobs.open_inputs import waiting
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import InputWriterFacts, TaskPlan, ended_writer
from workqueues.rules.refine.input_files import CannotFeed
from workqueues.states import TASK

BATCH = 20


@agent("feed")
def feed(run: Run) -> int:
    """Feed every defined task; read open inputs again; look for files that are held or lost, when their time has come."""
    fed_tasks = each(run, claim_tasks(run.id, run.claim_s, ["defined"], BATCH), feed_task)
    open_tasks = claim_tasks(run.id, run.claim_s, TASK.generating, BATCH, work="inputs to read again")
    fed_tasks += each(run, open_tasks, read_again)
    holding = claim_tasks(run.id, run.claim_s, TASK.working, BATCH, work="inputs to look for")
    return fed_tasks + each(run, holding, look_for_inputs)


def feed_task(run: Run, task: Task) -> bool:
    try:
        planned, writers, written = see_inputs(task)
        if not isinstance(planned, TaskPlan):
            set_pending(run.id, task.id, planned.reason, rest_s(task), run.who)
            return True
        catalogue().register(written_names(task.id), writer_of(task))
        open_outputs(run.id, task.id, run.who)
        kick_followers(task.id)
        _send_on(run, task, planned, load_inputs(run, task, planned, written), writers)
    except (CannotFeed, DatasetOfAnother) as error:
        _give_up(run, task, str(error))
    except CatalogueUnavailable as error:
        set_pending(run.id, task.id, f"the catalogue does not answer: {error}", rest_s(task), run.who)
    return True


def _send_on(run: Run, task: Task, planned: TaskPlan, inputs: LoadedInputs, writers: Sequence[InputWriterFacts]) -> None:
    read_before = through_since_read(task.id)
    if read_before and inputs.growing:
        next_at = next_reading(task.id) or run.now
        why = waiting(inputs.growing, held_up=parse(task.split_rule).held_up)
        retry_later(run.id, task.id, why, max((next_at - run.now).total_seconds(), 0.0))
        return
    still_open = any(p.state == "open" for p in planned.datasets if p.type == "input")
    after = after_feeding(inputs, parse(task.split_rule), still_open=still_open)
    match after.way:
        case "go":
            own = task.work_to != "children"  # a child chooses its own nucleus
            placed = not own or activity_of(task.prod_source_label) != "production" or was_assigned(task.id)
            target = "ready" if placed else "assigning"
            finish_feeding(run.id, task.id, target, run.who)
        case "wait":
            rest = min(rest_s(task), _check_interval_s(task)) if inputs.growing else rest_s(task)
            set_pending(run.id, task.id, after.lack, rest, run.who, clock=not inputs.growing)
        case "finish":
            finish_empty(run.id, task.id, f"{after.lack}, which the task allows", run.who)
        case "break":
            if gone := next((writer for writer in writers if writer.status in TASK.corrupted), None):
                set_pending(run.id, task.id, f"{after.lack}: {ended_writer(gone)}", rest_s(task), run.who)
            else:
                _give_up(run, task, after.lack)


def _give_up(run: Run, task: Task, why: str) -> None:
    """It cannot be fed: broken, unless it ran before; then somebody may mend its input, or finish it with what is done."""
    if task.attempt_nr:
        set_pending(run.id, task.id, why, rest_s(task), run.who)
    else:
        break_task(run.id, task.id, why, run.who)


def _check_interval_s(task: Task) -> float:
    return float(gdpconfig.value("feeder", "CHECK_INTERVAL", vo=task.vo))


def read_again(run: Run, task: Task) -> bool:
    """Add what has come to the open inputs of one claimed task since they were read: whether anything has."""
    give_back_picked(run.id, task.id)  # the claim may be that of a generator that died
    put_off_reading(run.id, task.id, _check_interval_s(task))  # one whose inputs cannot be read keeps no other from it
    new = 0
    try:
        planned, _, written = see_inputs(task)
        if not isinstance(planned, TaskPlan):
            raise CannotFeed(planned.reason)
        inputs = load_inputs(run, task, planned, written)
        new = inputs.new
        if new or not inputs.growing:
            go_on(run.id, task.id)
    except CannotFeed as error:
        release(task.id, run.id)
        note_reason(task.id, f"new files of its input cannot be used: {error}")
        return False
    except CatalogueUnavailable:
        new = 0
    release(task.id, run.id)
    return new > 0


def look_for_inputs(run: Run, task: Task) -> bool:
    """Look for the files of one claimed task that jobs could not read, and for lost ones (decisions D9, D16)."""
    give_back_picked(run.id, task.id)  # the claim may be that of a generator that died
    config = gdpconfig.component("storage", vo=task.vo)
    pauses = Pauses(config["LOST_CONFIRM"], config["LOOK_AGAIN"])
    sought, skips = files_to_look_for(task.id), parse(task.split_rule).ignore_missing
    put_off(run.id, task.id, pauses.again_s)  # one that cannot be looked for does not keep all others from it
    verdicts: dict[int, FileVerdict] = {}
    try:
        names_by_vo = {vo: [key.name for key in sought if key.vo == vo] for vo in {key.vo for key in sought}}
        known = {(vo, name) for vo, names in names_by_vo.items() for name in catalogue().owners(vo, names)}
        for dataset, files in sought.items():
            waiting, suspect = [f for f in files if f.storage], [f for f in files if not f.storage]
            faults = storage_faults({f.storage for f in waiting})
            verdicts |= {f.id: storage_verdict(f, faults[f.storage], run.now, pauses) for f in waiting}
            if dataset not in known and not skips:
                verdicts |= {f.id: unknown_dataset_verdict(f, *dataset, run.now, pauses) for f in suspect}
                continue
            looks = catalogue().check(dataset, [f.lfn for f in suspect])
            queues = reporting_queues([f.id for f in suspect])
            verdicts |= {f.id: file_verdict(f, looks[f.lfn], queues.get(f.id, ()), run.now, pauses) for f in suspect}
    except CatalogueUnavailable:
        release(task.id, run.id)
        return False
    changed = resolve_held(run.id, task.id, verdicts, run.who)
    release(task.id, run.id)
    return changed
