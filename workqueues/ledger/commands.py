"""Commands on tasks.

Accepted at once in the states that allow them (first half), carried out by the agent command (second half).
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.kernel.machine import NotAllowed
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.finish import close_datasets, progress_of
from workqueues.ledger.holds import WITHOUT_FAULTS
from workqueues.ledger.moves import move_dataset, move_task
from workqueues.ledger.open_inputs import follow_again
from workqueues.ledger.outputs import DatasetOfAnother, register_datasets
from workqueues.ledger.picked_files import return_picked
from workqueues.ledger.throttles import forget_causes
from workqueues.models import Dataset, Task, TaskChange
from workqueues.queries.datasets import written_names
from workqueues.queries.ranges import GIVEN_BACK
from workqueues.queries.shares import share_anew
from workqueues.queries.writers import writer_of
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.open_inputs import MUTABLE
from workqueues.rules.task.commands import COMMANDS, Command, Right
from workqueues.rules.task.retry import Step, first_open_step
from workqueues.states import INPUT_FILE, INPUT_TYPES, MASTER_TYPES, TASK


def command_task(
    principal: Principal, task: Task, row: Command, comment: str = "", options: Mapping[str, bool] | None = None
) -> Task:
    """Give a command in somebody's name, with an audit row: the task as it is then. REST, pages and admin come here.

    Refused: 403 without the command's right to this task, 409 in a state that does not take the command.
    """
    check_right(principal, task, row.right)
    kept = row.kept(comment, options or {})
    before = task.status
    try:
        with transaction.atomic():
            task = command(task.id, row.name, f"user:{principal.name}", kept)
            after = {"status": task.status, "comment": kept, "user_name": task.user_name}
            audit(f"task.{row.name}", principal, f"task {task.id}", vo=task.vo, before={"status": before}, after=after)
    except NotAllowed as refused:
        detail = f"Task {task.id} is {refused.old}; {row.name} is accepted in {', '.join(row.states)}."
        raise Refused(409, "The state forbids it", detail) from None
    return task


def check_right(principal: Principal, task: Task, right: Right) -> None:
    """Refused(403) unless the principal has the right to command this task."""
    if not may(principal, right.permission, task.vo, task.user_name, task.submitted_by):
        raise Refused(403, "Not permitted", f"{principal.name} is {right.refusal.format(id=task.id, vo=task.vo)}.")


def command(task_id: int, name: str, who: str, comment: str = "") -> Task:
    """Accept a command: the task as it is then. Raises NotAllowed in a state that does not take it.

    A command that is already being carried out is accepted again and changes nothing. It ends the claim on the task.
    """
    with transaction.atomic():
        task = Task.objects.select_for_update(no_key=True).get(id=task_id)
        row = COMMANDS[name]
        if task.status == row.target:
            return task
        if not row.suits(task.status, quarantined=task.quarantined_at is not None):
            raise NotAllowed("task", task.status, row.target)
        if task.status not in row.states:
            return _free(task, who)
        if row.name == "retry" and task.status == "exhausted" and task.old_status in TASK.outcomes("carry_on"):
            return _carry_on(task, who, comment)
        if task.status == "throttled":
            forget_causes(task_id)
        before = task.old_status if task.status in TASK.resting else task.status
        new, old_status = (row.target, before) if row.target else (task.old_status, "")
        move_task(
            task,
            new,
            who,
            comment or name,
            old_status=old_status,
            command=name,
            command_by=who[:128],
            command_comment=comment[:255],
            command_time=Now(),
            error_dialog=comment[:510],
            **WITHOUT_FAULTS,
        )
        look_after_commit("command")
        return task


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
    """No job of a claimed finishing task lives any more: inputs that were not used are given up, and the task is passed."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        return_picked(task_id)
        masters = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=MASTER_TYPES, master=None)
        for dataset in masters.order_by("id"):
            _give_up(dataset, who)
        move_task(task, "passed", who, "all jobs are gone", old_status="", **DONE)


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
    n = _changed(_UNUSED, dataset, who, n=max(dataset.n_files_to_be_used - dataset.n_files_used, 0))
    Dataset.objects.filter(id=dataset.id).update(n_files_used=F("n_files_used") + n, n_files_failed=F("n_files_failed") + n)


def _changed(statement: str, dataset: Dataset, who: str, **values: int) -> int:
    """How many files of a locked dataset a statement changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {"dataset": dataset.id, "task": dataset.task_id, "who": who[:128], **values})
        return int(cursor.rowcount)


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
        with transaction.atomic():
            task = lock_claimed(task_id, run_id)
            return_picked(task_id)
            _refuse_retry(task, str(error), who)


def _refuse_retry(task: Task, reason: str, who: str) -> None:
    """A claimed task is what it was before the command."""
    stay = f"not retried: {reason}"
    move_task(task, task.old_status, who, stay, old_status="", error_dialog=stay[:510], **DONE)


def _retry(run_id: str, task_id: int, more: int, who: str) -> None:
    task = lock_claimed(task_id, run_id)
    return_picked(task_id)
    inputs = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=INPUT_TYPES, excluded=False)
    datasets = list(inputs.order_by("id"))
    fed = bool(datasets) and all(d.state_check_time for d in datasets)
    assigned = bool(task.nucleus) or activity_of(task.prod_source_label) != "production"
    step = first_open_step(defined=bool(datasets), fed=fed, assigned=assigned)
    parent = Task.objects.filter(id=task.parent_tid or task_id, status__in=TASK.corrupted).exclude(id=task_id).first()
    if step == "registered" and parent is not None:
        _refuse_retry(task, f"its parent, task {parent.id}, is {parent.status}; retry that first", who)
        return
    again = sum(_reopen(d, more, who) for d in datasets if d.master_id is None and d.type in MASTER_TYPES)
    if again or not fed or task.old_status not in TASK.settled:
        for other in (d for d in datasets if d.master_id is not None or d.type not in MASTER_TYPES):
            _reopen(other, more, who)
        if fed:
            register_datasets(written_names(task_id), writer_of(task))
        move_task(
            task, step, who, _WHY[step].format(again), old_status="", start_time=None, frozen_time=None,
            attempt_nr=F("attempt_nr") + 1, current_priority=F("task_priority"), gshare=share_anew(task), **DONE,
        )  # fmt: skip
        look_after_commit("feed", "finish")  # lost files are to be looked for; nothing may be left to run
    else:
        before = TaskChange.objects.filter(task_id=task_id, new=task.old_status).latest("id").why
        why = _NOTHING + before.removeprefix(_NOTHING)
        move_task(task, task.old_status, who, why, old_status="", error_dialog=why[:510], **DONE)


_AGAIN = """
WITH noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, %(task)s, 'failed', 'ready', %(who)s, 'task retry' FROM workqueues_file
    WHERE dataset_id = %(dataset)s AND status = 'failed'
)
UPDATE workqueues_file f SET status = 'ready', retry_due = NULL,
    max_attempt = f.max_attempt + greatest(f.attempt_nr - f.max_attempt, 0) + %(more)s,
    max_failure = f.max_failure + greatest(f.failed_attempt - f.max_failure, 0) + %(more)s
WHERE f.dataset_id = %(dataset)s AND f.status = 'failed'
"""
"""What has no limit (NULL) gets none."""

_DUE = f"""
UPDATE workqueues_file SET retry_due = NULL
WHERE dataset_id = %(dataset)s AND status IN ({INPUT_FILE.unused.sql}) AND held = '' AND retry_due IS NOT NULL
"""
"""Who asks for a retry does not wait for pauses of files."""

_PARTIAL = f"""
UPDATE workqueues_file f SET status = 'partial'
WHERE f.dataset_id = %(dataset)s AND f.status = 'ready' AND {GIVEN_BACK} = 'partial'
"""


_GONE = f"""
WITH gone AS (
    SELECT id, status FROM workqueues_file WHERE dataset_id = %(dataset)s AND status IN ({INPUT_FILE.gone.sql})
), noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, %(task)s, status, 'ready', %(who)s, 'task retry: looked for again' FROM gone
)
UPDATE workqueues_file f SET status = 'ready', held = 'was ' || gone.status || ' before the retry', look_due = now()
FROM gone WHERE f.id = gone.id
"""
"""Held until somebody has looked for them; what is absent for as long as it takes is lost again at once."""


def _reopen(dataset: Dataset, more: int, who: str) -> int:
    n = _changed(_AGAIN, dataset, who, more=more)
    _changed(_DUE, dataset, who)
    found = _changed(_GONE, dataset, who)
    _changed(_PARTIAL, dataset, who)
    Dataset.objects.filter(id=dataset.id).update(
        n_files_used=F("n_files_used") - n,
        n_files_failed=F("n_files_failed") - n,
        n_files_to_be_used=F("n_files_to_be_used") + found,
        n_files_missing=F("n_files_missing") - found,
    )
    left = dataset.n_files_to_be_used - dataset.n_files_finished - dataset.n_files_failed + n + found
    if dataset.status == "done" and dataset.state == MUTABLE:
        follow_again(dataset)
    if dataset.status == "done" and (left or dataset.state == MUTABLE or not dataset.state_check_time):
        dataset.refresh_from_db()
        if dataset.state_check_time:
            move_dataset(dataset, "ready", who, f"{left} files to run again")
        else:
            move_dataset(dataset, "defined", who, "its files are not read from the catalogue yet")
    return left
