"""Commands on tasks.

Accepted at once in the states that allow them (first half), carried out by the agent command (second half).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.kernel.machine import NotAllowed
from workqueues.ledger.changes import looked_at, may_change, store_changes
from workqueues.ledger.children import retry_children
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.finish import close_datasets, progress_of
from workqueues.ledger.holds import WITHOUT_FAULTS
from workqueues.ledger.job_retry import retry_jobs
from workqueues.ledger.moves import move_task
from workqueues.ledger.outputs import DatasetOfAnother, register_datasets
from workqueues.ledger.picked_files import return_picked
from workqueues.ledger.reopened_inputs import changed, reopen
from workqueues.ledger.staging import stage_no_more
from workqueues.ledger.throttles import forget_causes
from workqueues.models import Dataset, Task, TaskChange, TaskParams
from workqueues.queries.datasets import written_names
from workqueues.queries.lost_outputs import taken_over
from workqueues.queries.retry_limits import most_tries_reached, over_at_parent
from workqueues.queries.shares import share_anew
from workqueues.queries.writers import writer_of
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.split_rule import FAIL_BELOW_GOAL, parse, without
from workqueues.rules.refine.changes import NOTHING, Changed
from workqueues.rules.task.commands import COMMANDS, Command, Right
from workqueues.rules.task.retry import Step, first_open_step
from workqueues.states import INPUT_FILE, INPUT_TYPES, MASTER_TYPES, TASK


class Commanded(NamedTuple):
    """The task once it was given a command, and what happens, in a sentence."""

    task: Task
    told: str
    alive: bool
    """Whether it goes on as it is."""


def command_task(
    principal: Principal,
    task: Task,
    row: Command,
    comment: str = "",
    options: Mapping[str, bool] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Commanded:
    """Give a command in somebody's name, with an audit row: the task as it is then, and what happens. REST, pages and admin come
    here.

    Refused: 403 without the command's right to this task or for changes that need a role, 409 in a state that does not take the
    command, beyond the limit of tries of a file, or where the parent broker hears nothing of it, 422 for changes that may not be.
    """
    for right in row.rights_for(options or {}):
        check_right(principal, task, right)
    if changes:
        may_change(principal, task, changes)
    kept = row.kept(comment, options or {})
    tried = task.status in row.states or row.for_jobs(task.status, task.prod_source_label)
    limited = row.tries_again and tried and not _goes_on(task) and not row.has("transcend", kept)
    if limited and (why := most_tries_reached(task)):
        raise Refused(409, "The limit of tries is reached", f"Task {task.id} is not retried: {why}.")
    if row.tries_again and tried and (why := over_at_parent(task)):
        raise Refused(409, "It is over at the parent", f"Task {task.id} is not retried: {why}.")
    before = {"status": task.status, **_parameters(task, changes or {})}
    try:
        with transaction.atomic():
            who, told = f"user:{principal.name}", f"Task {task.id} is {row.during}."
            more: Mapping[str, Any] = {}
            if (jobs := retry_jobs(task.id, row, changes or {}, who, staged=row.has("staged", kept))) is not None:
                task, told, more = jobs.task, jobs.told, jobs.given
            else:
                task = command(task.id, row.name, who, kept, changes)
            after = {"status": task.status, "comment": kept, "user_name": task.user_name, **_parameters(task, changes or {})}
            audit(f"task.{row.name}", principal, f"task {task.id}", vo=task.vo, before=before, after={**after, **more})
    except NotAllowed as refused:
        detail = f"Task {task.id} is {refused.old}; {row.name} is accepted in {row.taken_in}."
        raise Refused(409, "The state forbids it", detail) from None
    return Commanded(task, told, alive=jobs is not None)


def _parameters(task: Task, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a task says now of the parameters that are to change."""
    said = TaskParams.objects.get(task_id=task.id).task_params if changes else {}
    return {"parameters": {name: said.get(name) for name in changes}} if changes else {}


def check_right(principal: Principal, task: Task, right: Right) -> None:
    """Refused(403) unless the principal has the right to command this task."""
    if not may(principal, right.permission, task.vo, task.user_name, task.submitted_by):
        raise Refused(403, "Not permitted", f"{principal.name} is {right.refusal.format(id=task.id, vo=task.vo)}.")


def command(task_id: int, name: str, who: str, comment: str = "", changes: Mapping[str, Any] | None = None) -> Task:
    """Accept a command, with changed parameters where it may have some: the task as it is then. Raises NotAllowed in a state
    that does not take it, Refused for changes that may not be.

    A command that is already being carried out is accepted again and changes nothing. It ends the claim on the task.
    """
    with transaction.atomic():
        task = Task.objects.select_for_update(no_key=True).get(id=task_id)
        row = COMMANDS[name]
        asked = looked_at(task, changes) if changes else NOTHING
        if not asked.differences and (task.status == row.target or (changes and task.status == COMMANDS["incexec"].target)):
            return task
        if not row.suits(task.status, label="", quarantined=task.quarantined_at is not None):
            raise NotAllowed("task", task.status, row.target)
        if row.target == "paused" and task.command == "reassign":
            detail = f"Task {task.id} waits for its jobs to go, as it is reassigned; pause it after that, or kill it."
            raise Refused(409, "Another command is carried out", detail)
        if task.status not in row.states:
            if asked.differences:
                raise NotAllowed("task", task.status, row.target)
            return _free(task, who)
        if asked == NOTHING and row.name == "retry" and _goes_on(task):
            return _carry_on(task, who, comment)
        return _accept(task, row, who, comment, asked)


def _accept(task: Task, row: Command, who: str, comment: str, asked: Changed) -> Task:
    """A locked task takes a command; with other parameters it is an incremental execution, as its inputs are looked at anew.

    What the holder of its claim has picked is given back: where it was all that is left, no generator would look for it again.
    """
    if task.locked_by:
        return_picked(task.id)
    if task.status == "throttled":
        forget_causes(task.id)
    before = task.old_status if task.status in TASK.resting else task.status
    target = COMMANDS["incexec"].target if asked.differences else row.target
    new, old_status = (target, before) if target else (task.old_status, "")
    columns = store_changes(task, asked) if asked.differences else {}
    move_task(
        task,
        new,
        who,
        "; ".join(filter(None, [comment or row.name, asked.sentence()])),
        old_status=old_status,
        command=row.name,
        command_by=who[:128],
        command_comment=comment[:255],
        command_time=Now(),
        error_dialog=comment[:510],
        **columns,
        **WITHOUT_FAULTS,
    )
    look_after_commit("command")
    return task


def _goes_on(task: Task) -> bool:
    """Whether a retry of the task leads straight back to what it did."""
    return task.status == "exhausted" and task.old_status in TASK.outcomes("carry_on")


def _carry_on(task: Task, who: str, comment: str) -> Task:
    """An exhausted task that had not come to its end goes straight back to what it did; no file of it was given up for that."""
    why = comment or f"retried: it goes on {task.old_status}"
    move_task(task, task.old_status, who, why, old_status="", frozen_time=None, error_dialog="", **WITHOUT_FAULTS)
    look_after_commit("generate")
    return task


def _free(task: Task, who: str) -> Task:
    """Take a locked task out of quarantine: the agents look at it anew."""
    columns = {**WITHOUT_FAULTS, "next_look_at": Now(), "error_dialog": f"taken out of quarantine by {who}"[:510]}
    Task.objects.filter(id=task.id).update(**columns)
    look_after_commit("refine", "feed", "assign", "generate", "wake", "command", "finish")
    task.refresh_from_db()
    return task


DONE = {"command": "", "command_by": "", "command_comment": "", "command_time": None}
"""Columns of a task whose command has been carried out."""


def carry_out_kill(run_id: str, task_id: int, who: str, failure_rate: int | None) -> None:
    """No job of a claimed aborting task lives any more: aborted. `failure_rate`: percent of its jobs that failed."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        return_picked(task_id)
        close_datasets(task_id, who, "the task was aborted")
        last = {"failure_rate": failure_rate, "progress": progress_of(task_id)}
        move_task(task, "aborted", who, "all jobs are gone", old_status="", **last, **DONE)


def kill_children(parent_id: int, who: str) -> int:
    """Kill the children of a task that ended badly, and theirs in turn as they end: how many took it."""
    n_killed = 0
    for child_id in Task.objects.filter(parent_tid=parent_id).exclude(id=parent_id).order_by("id").values_list("id", flat=True):
        try:
            command(child_id, "kill", who, f"the parent task {parent_id} ended badly")
            n_killed += 1
        except NotAllowed:
            continue  # it has ended, or is about to
    return n_killed


def carry_out_finish(run_id: str, task_id: int, who: str) -> None:
    """No job of a claimed finishing task lives any more: inputs that were not used are given up, and the task is passed.

    A user who finishes a task takes what it has: it does not fail for its goal then (facts on commands 2.3). That nobody looked
    at an exhausted one for ten days says nothing of the kind.
    """
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        return_picked(task_id)
        masters = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=MASTER_TYPES, master=None)
        for dataset in masters.order_by("id"):
            _give_up(dataset, who)
        rule = without(task.split_rule, FAIL_BELOW_GOAL) if task.command_by.startswith("user:") else task.split_rule
        move_task(task, "passed", who, "all jobs are gone", old_status="", split_rule=rule, **DONE)


_UNUSED = f"""
WITH unused AS (
    SELECT id, status FROM workqueues_file WHERE dataset_id = %(dataset)s AND status IN ({INPUT_FILE.unused.sql})
    ORDER BY status, id LIMIT %(n)s
), noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, %(task)s, status, 'failed', %(who)s, 'the task was finished before it was used' FROM unused
)
UPDATE workqueues_file f SET status = 'failed', attempt_nr = coalesce(f.max_attempt, f.attempt_nr), held = '',
    held_storage = '', look_due = NULL, retry_due = NULL
FROM unused WHERE f.id = unused.id
"""
"""Whoever changes a file holds the lock of its dataset, as the caller does. A statement for all: there may be a million.

In the order of the index by state: by ids alone the planner may leaf through all files for the few that are left.
"""


def _give_up(dataset: Dataset, who: str) -> None:
    n = changed(_UNUSED, dataset, who, n=max(dataset.n_files_to_be_used - dataset.n_files_used, 0))
    Dataset.objects.filter(id=dataset.id).update(n_files_used=F("n_files_used") + n, n_files_failed=F("n_files_failed") + n)


def standing(task: Task) -> dict[str, Any]:
    """Priority and share of a task that is run again by a command: those that its parameters ask for, unless it keeps its own."""
    if COMMANDS[task.command or "retry"].has("keep", task.command_comment):
        return {}
    asked = task.params.task_params.get("currentPriority")
    return {"current_priority": F("task_priority") if asked is None else asked, "gshare": share_anew(task)}


_WHY: Mapping[Step, str] = {
    "registered": "its parameters were not read yet",
    "defined": "its inputs were not read yet",
    "assigning": "it had no nucleus yet",
    "ready": "{} files to run",
}
"""Where a retry leads, and why."""

_NOTHING = "nothing is left to run; "


def carry_out_retry(run_id: str, task_id: int, more: int, who: str) -> None:
    """Carry out a retry: the task goes back to the first step that it had not passed (decision D19).

    Given-up inputs get `more` tries (decision D2) and are ready again, or partial; the datasets that it wrote are open again. A
    task that ended with nothing left to run of its masters, whose parent must be retried first, or which may not write to its
    datasets any more, is what it was, with the reason.
    """
    try:
        with transaction.atomic():
            _retry(run_id, task_id, more, who)
    except DatasetOfAnother as error:
        call_off_retry(run_id, task_id, str(error), who)


def exhaust_retry(run_id: str, task_id: int, reason: str, who: str) -> None:
    """A retry beyond a limit ends here: a claimed task is exhausted, with the reason."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        return_picked(task_id)
        why = f"not retried: {reason}"
        move_task(task, "exhausted", who, why, old_status="", frozen_time=None, error_dialog=why[:510], **DONE)


def call_off_retry(run_id: str, task_id: int, reason: str, who: str) -> None:
    """A claimed task is what it was before it was to be retried."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        return_picked(task_id)
        refuse_retry(task, reason, who)


def refuse_retry(task: Task, reason: str, who: str) -> None:
    """A claimed task is what it was before the command."""
    stay = f"not retried: {reason}"
    move_task(task, task.old_status, who, stay, old_status="", error_dialog=stay[:510], **DONE)


def _retry(run_id: str, task_id: int, more: int, who: str) -> None:
    task = lock_claimed(task_id, run_id)
    return_picked(task_id)
    if reason := taken_over(task):
        refuse_retry(task, reason, who)
        return
    inputs = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=INPUT_TYPES, excluded=False)
    datasets = [] if parse(task.split_rule).in_step else list(inputs.order_by("id"))  # the step begins anew
    fed = bool(datasets) and all(d.state_check_time for d in datasets)
    assigned = bool(task.nucleus) or activity_of(task.prod_source_label) != "production"
    step = first_open_step(defined=bool(datasets), fed=fed, assigned=assigned)
    parent = Task.objects.filter(id=task.parent_tid or task_id, status__in=TASK.corrupted).exclude(id=task_id).first()
    if step == "registered" and parent is not None:
        refuse_retry(task, f"its parent, task {parent.id}, is {parent.status}; retry that first", who)
        return
    before, sole = task.old_status, COMMANDS["retry"].has("sole", task.command_comment)
    again = sum(reopen(d, more, who) for d in datasets if d.master_id is None and d.type in MASTER_TYPES)
    if again or not fed or task.old_status not in TASK.settled:
        for other in (d for d in datasets if d.master_id is not None or d.type not in MASTER_TYPES):
            reopen(other, more, who)
        if COMMANDS["retry"].has("staged", task.command_comment):
            stage_no_more(task_id, [d.id for d in datasets], who)
        if fed:
            register_datasets(written_names(task_id), writer_of(task))
        move_task(
            task, step, who, _WHY[step].format(again), old_status="", start_time=None, frozen_time=None,
            attempt_nr=F("attempt_nr") + 1, **standing(task), **DONE,
        )  # fmt: skip
        if not sole and before != "exhausted":
            retry_children(task, who)
        look_after_commit("feed", "finish")  # lost files are to be looked for; nothing may be left to run
    else:
        last = TaskChange.objects.filter(task_id=task_id, new=task.old_status).latest("id").why
        why = _NOTHING + last.removeprefix(_NOTHING)
        move_task(task, task.old_status, who, why, old_status="", error_dialog=why[:510], **DONE)
