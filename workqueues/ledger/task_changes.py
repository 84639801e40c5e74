"""Changes of a task that lives on, in the caller's transaction: what concerns the task and its files alone.

Not here: who may and the audit, and what concerns jobs too (`brokerage.ledger.task_changes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib.postgres.functions import TransactionNow
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.duties import agent_of
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.kernel.verdict import Problem
from workqueues.ledger.more_tries import MORE, revive
from workqueues.ledger.moves import move_dataset
from workqueues.ledger.picked_files import return_picked
from workqueues.ledger.resource_types import resource_type_of
from workqueues.ledger.task_notes import note_needs
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.open_inputs import GROWING_BLOCK
from workqueues.rules.jobs.split_rule import HELD_UP, without
from workqueues.rules.jobs.staging import STAGED_FIRST
from workqueues.rules.task.changes import (
    COLUMNS,
    AttributesAsked,
    Change,
    InputCompleteAsked,
    ReleaseAsked,
    SplitRuleAsked,
    TriesAsked,
)
from workqueues.rules.task.split_changes import split_rule_after
from workqueues.states import INPUT_FILE, INPUT_TYPES, TASK


class Changed(NamedTuple):
    """What was and what is, for the audit, and what happens now, in a sentence."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    told: str


def unusable(problems: Sequence[Problem]) -> Refused:
    """The refusal of a wish that cannot be carried out."""
    said = "; ".join(": ".join(filter(None, [p.field, p.message])) for p in problems[:3])
    return Refused(422, "Not usable", said[:1000], problems)


def opened(task_id: int, row: Change) -> Task:
    """The task, locked. Refused(409) in a state that does not take the change."""
    task = Task.objects.select_for_update(no_key=True).get(id=task_id)
    if not row.suits(task.status, task.old_status):
        was = f", and was {task.old_status} before" if task.status in TASK.interrupted and task.old_status else ""
        detail = f"Task {task.id} is {task.status}{was}; {row.name} is accepted in {', '.join(row.states)}."
        raise Refused(409, "The state forbids it", detail)
    return task


def rewritten(task: Task, **columns: Any) -> None:
    """Write columns of a locked task, which is looked at now. The claim on it ends: whoever works on it by what it was before
    changes nothing more.
    """
    if task.locked_by:
        return_picked(task.id)
    columns.setdefault("next_look_at", _next_look(task))
    Task.objects.filter(id=task.id).update(locked_by="", locked_time=None, modification_time=Now(), **columns)
    if (duty := agent_of(task.status)) is not None:
        look_after_commit(duty.name)


def _next_look(task: Task) -> Any:
    """Now, unless it does nothing until it is resumed, or waits for its jobs as it is sent elsewhere."""
    if task.status in TASK.resumable or task.command == "reassign":
        return task.next_look_at
    return TransactionNow() if task.status == "pending" else None


def set_split_rule(task: Task, asked: SplitRuleAsked, who: str) -> Changed:
    """Another value of one rule, or none."""
    after, problems = split_rule_after(task.split_rule, asked.rule, asked.value)
    if problems:
        raise unusable(problems)
    note_needs(task, who, asked.comment, {"split_rule": task.split_rule}, {"split_rule": after})
    rewritten(task, split_rule=after)
    return Changed(
        {"split_rule": task.split_rule},
        {"split_rule": after},
        f"New jobs of task {task.id} are made by {after or 'no split rule'}.",
    )


def set_attributes(task: Task, asked: AttributesAsked, who: str) -> Changed:
    """What new jobs need; the class of resources follows."""
    columns = {column: getattr(asked, name) for name, column in COLUMNS.items() if name in asked.model_fields_set}
    if not columns:
        raise unusable([Problem("", "required", f"name at least one of {', '.join(COLUMNS)}")])
    columns["resource_type"] = resource_type_of(task, columns)
    before = {name: getattr(task, name) for name in columns}
    note_needs(task, who, asked.comment, before, columns)
    rewritten(task, **columns)
    kind = f" Their class of resources is {columns['resource_type']}."
    return Changed(before, columns, f"New jobs of task {task.id} ask for this; those that exist stay as they are.{kind}")


_RELEASED = f"""
WITH waiting AS (
    SELECT id FROM workqueues_file WHERE dataset_id = ANY(%(datasets)s) AND status IN ({INPUT_FILE.unused.sql})
        AND (starts_with(held, %(staged)s) OR held = %(block)s OR held = '' AND retry_due > now()) ORDER BY id
), noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, %(task)s, 'held', 'ready', %(who)s, 'released' FROM waiting
)
UPDATE workqueues_file f SET held = '', retry_due = NULL FROM waiting WHERE f.id = waiting.id
"""


def release_inputs(task: Task, asked: ReleaseAsked, who: str) -> Changed:
    """Inputs that wait to be staged, for their lumi block or for another try are given to jobs as they are, and the task is
    looked at now.
    """
    n = _on_inputs(task, _RELEASED, who, staged=STAGED_FIRST, block=GROWING_BLOCK)
    rewritten(task)
    look_after_commit("wake", "generate")
    files = f"{n:,} input file{' waits' if n == 1 else 's wait'} no longer" if n else "no input file waited"
    return Changed({}, {"files": n}, f"Task {task.id} is looked at now; {files}.")


def complete_input(task: Task, asked: InputCompleteAsked, who: str) -> Changed:
    """No workflow feeds the input of the task any more: it is read once more, now."""
    params = task.params
    if not params.task_params.pop("workflowHoldup", False):
        return Changed({}, {}, f"Task {task.id} is as it was: no workflow feeds its input.")
    params.save(update_fields=["task_params"])
    Dataset.objects.filter(task_id=task.id, type="input", state_check_expiration__isnull=False).update(
        state_check_expiration=TransactionNow()
    )
    rewritten(task, split_rule=without(task.split_rule, HELD_UP))
    look_after_commit("feed")
    told = f"The input of task {task.id} is complete: it is read once more, and the task ends with what is in it."
    return Changed({"workflowHoldup": True}, {"workflowHoldup": False}, told)


_MORE = f"""
UPDATE workqueues_file f SET retry_due = NULL, {MORE}
WHERE f.dataset_id = ANY(%(datasets)s) AND f.status IN ({INPUT_FILE.unused.sql}) AND f.max_attempt IS NOT NULL
"""


def give_tries(task: Task, asked: TriesAsked, who: str) -> Changed:
    """More tries for all inputs that no job has: those that were given up are ready again (facts on commands 2.4)."""
    ready = _on_inputs(task, _MORE, who, more=asked.n)
    revived = revive_files(task, asked.n, who)
    tries, n = f"{asked.n} more {'try' if asked.n == 1 else 'tries'}", ready + revived
    files = "1 input file" if n == 1 else f"{n:,} input files" if n else "No input file"
    given_up = f", {revived:,} of which had been given up" if revived else ""
    said = f"{files} of task {task.id} {'have' if n > 1 else 'has'} {tries}{given_up}."
    return Changed({}, {"tries": asked.n, "files": ready, "given_up": revived}, said)


def revive_files(task: Task, more: int, who: str, files: Sequence[int] | None = None) -> int:
    """Inputs of a locked task that were given up, all or these, are ready with so many more tries: how many."""
    revived = revive(task.id, locked_inputs(task.id), more, who, "more tries", files)
    for dataset in Dataset.objects.filter(id__in=revived).order_by("id"):
        n = revived[dataset.id]
        Dataset.objects.filter(id=dataset.id).update(n_files_used=F("n_files_used") - n, n_files_failed=F("n_files_failed") - n)
        if dataset.status == "done":
            dataset.refresh_from_db()
            move_dataset(dataset, "ready", who, f"{n} files to run again")
    rewritten(task)
    look_after_commit("generate", "wake")
    return sum(revived.values())


def locked_inputs(task_id: int) -> list[int]:
    """The input datasets of a task, locked."""
    inputs = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=INPUT_TYPES, excluded=False)
    return list(inputs.order_by("id").values_list("id", flat=True))


def _on_inputs(task: Task, statement: str, who: str, **values: Any) -> int:
    """How many files of the input datasets, which are locked, a statement changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {"task": task.id, "who": who[:128], "datasets": locked_inputs(task.id), **values})
        return int(cursor.rowcount)
