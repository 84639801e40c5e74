"""Incremental execution: a task that has ended is run again on what is left of its inputs and what is new in them.

Its files and datasets are those that it had; only what its plan adds comes to them. Accepted by `commands`, whose agent carries
it out here; then the agents refine and feed go over the task as at first.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from workqueues.ledger.children import retry_children
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.commands import DONE, call_off_retry, refuse_retry, standing
from workqueues.ledger.define import insert_dataset
from workqueues.ledger.moves import datasets_born, move_dataset, move_task
from workqueues.ledger.outputs import DatasetOfAnother, register_datasets
from workqueues.ledger.picked_files import return_picked
from workqueues.ledger.reopened_inputs import reopen
from workqueues.ledger.staging import stage_no_more
from workqueues.models import Dataset, File, Task
from workqueues.queries.datasets import written_names
from workqueues.queries.lost_outputs import taken_over
from workqueues.queries.writers import writer_of
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import DatasetPlan, TaskPlan
from workqueues.rules.task.commands import COMMANDS
from workqueues.states import INPUT_DATASET, INPUT_FILE, INPUT_TYPES, TASK


def carry_out_incexec(run_id: str, task_id: int, more: int, who: str) -> None:
    """A claimed task is to be refined again: what was given up has `more` tries, what is gone is looked for, all inputs are read.

    It is what it was, with the reason, where its parent must be retried first, or it may not write to its datasets any more.
    """
    try:
        with transaction.atomic():
            _extend(run_id, task_id, more, who)
    except DatasetOfAnother as error:
        call_off_retry(run_id, task_id, str(error), who)


def _extend(run_id: str, task_id: int, more: int, who: str) -> None:
    task = lock_claimed(task_id, run_id)
    return_picked(task_id)
    if reason := taken_over(task):
        refuse_retry(task, reason, who)
        return
    parent = Task.objects.filter(id=task.parent_tid or task_id, status__in=TASK.corrupted).exclude(id=task_id).first()
    if parent is not None:
        refuse_retry(task, f"its parent, task {parent.id}, is {parent.status}; retry that first", who)
        return
    inputs = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=INPUT_TYPES, excluded=False)
    datasets = [] if parse(task.split_rule).in_step else list(inputs.order_by("id"))
    for dataset in datasets:
        reopen(dataset, more, who)
        File.objects.filter(dataset_id=dataset.id, status__in=INPUT_FILE.unused, ram_count__gt=0).update(ram_count=0)
        dataset.refresh_from_db()
        if dataset.status not in INPUT_DATASET.unread:
            move_dataset(dataset, "toupdate", who, "its files are to be read again")
    before, row = task.old_status, COMMANDS[task.command or "incexec"]
    if row.has("staged", task.command_comment):
        stage_no_more(task_id, [d.id for d in datasets], who)
    register_datasets(written_names(task_id), writer_of(task))
    sole, columns = row.has("sole", task.command_comment), standing(task)
    move_task(
        task, "rerefine", who, "its inputs are read again", old_status="", start_time=None, frozen_time=None, error_dialog="",
        attempt_nr=F("attempt_nr") + 1, **columns, **DONE,
    )  # fmt: skip
    if not sole and before != "exhausted":
        retry_children(task, who)


def refine_again(run_id: str, task_id: int, plan: TaskPlan, who: str) -> None:
    """Bring the input datasets of a claimed task up to its plan: defined, to be fed. What it reads no more is left out."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        rows = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id).order_by("id")
        known = {(row.dataset_name, row.type): row for row in rows}
        datasets: list[Dataset] = []
        for planned in plan.datasets:
            row = known.pop((planned.name, planned.type), None)
            if row is None:
                row = insert_dataset(task_id, task.vo, planned, datasets)
                datasets_born([row], who, "an input of the task now")
            elif planned.type in INPUT_TYPES:
                _follow(row, planned, who)
            datasets.append(row)
        for row in known.values():
            if row.type in INPUT_TYPES and not row.excluded:
                _leave_out(row, who)
        move_task(task, "defined", who, "refined again", error_dialog="")


def _follow(row: Dataset, planned: DatasetPlan, who: str) -> None:
    """An input is one of the plan: as much of it as that says; one that was left out comes back."""
    back = row.excluded
    if back or row.n_files_wanted != planned.n_files:
        Dataset.objects.filter(id=row.id).update(n_files_wanted=planned.n_files, excluded=False)
    if back:
        row.refresh_from_db()
        move_dataset(row, "toupdate", who, "an input of the task again")


def _leave_out(row: Dataset, who: str) -> None:
    """An input is none of the plan: what was not processed of it does not count any more."""
    if row.status in INPUT_DATASET.accepting("close"):
        move_dataset(row, "done", who, "no input of the task any more")
    if row.n_files_finished < row.n_files or not row.n_files:
        Dataset.objects.filter(id=row.id).update(excluded=True)
