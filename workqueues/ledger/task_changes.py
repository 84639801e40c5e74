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

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.duties import agent_of
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.kernel.verdict import Problem
from workqueues.ledger.moves import move_dataset
from workqueues.ledger.picked_files import return_picked
from workqueues.models import Dataset, Task
from workqueues.queries.ranges import GIVEN_BACK
from workqueues.rules.jobs.open_inputs import GROWING_BLOCK
from workqueues.rules.jobs.resource_type import resource_type
from workqueues.rules.jobs.split_rule import HELD_UP, without
from workqueues.rules.jobs.staging import STAGED_FIRST
from workqueues.rules.task.changes import AttributesAsked, Change, InputCompleteAsked, ReleaseAsked, SplitRuleAsked, TriesAsked
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
    rewritten(task, split_rule=after)
    return Changed({"split_rule": task.split_rule}, {"split_rule": after}, f"New jobs of task {task.id} are made by it.")


COLUMNS = {"ramCount": "ram_count", "walltime": "walltime", "cpuTime": "cpu_time", "coreCount": "core_count"}
"""Attribute -> column."""


def set_attributes(task: Task, asked: AttributesAsked, who: str) -> Changed:
    """What new jobs need; the class of resources follows."""
    columns = {column: getattr(asked, name) for name, column in COLUMNS.items() if name in asked.model_fields_set}
    if not columns:
        raise unusable([Problem("", "required", f"name at least one of {', '.join(COLUMNS)}")])
    columns["resource_type"] = resource_type(
        columns.get("core_count", task.core_count),
        columns.get("ram_count", task.ram_count),
        task.ram_unit or "MB",
        task.base_ram_count,
        compensation=gdpconfig.value("jobbroker", "MEMORY_COMPENSATION", vo=task.vo),
    )
    before = {name: getattr(task, name) for name in columns}
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
    files = f"{n} input file{'' if n == 1 else 's'}"
    return Changed({}, {"files": n}, f"{files} of task {task.id} {'waits' if n == 1 else 'wait'} no longer; it is looked at now.")


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


_TRIES = """
    max_attempt = CASE WHEN f.max_attempt IS NOT NULL THEN least(greatest(f.max_attempt, f.attempt_nr) + %(more)s, 30000) END,
    max_failure = CASE WHEN f.max_failure IS NOT NULL
        THEN least(greatest(f.max_failure, f.failed_attempt) + %(more)s, 30000) END"""
"""What has no limit (NULL) gets none; none is larger than its column holds."""

_MORE = f"""
UPDATE workqueues_file f SET retry_due = NULL, {_TRIES}
WHERE f.dataset_id = ANY(%(datasets)s) AND f.status IN ({INPUT_FILE.unused.sql}) AND f.max_attempt IS NOT NULL
"""
_REVIVED = f"""
WITH noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, %(task)s, 'failed', 'ready', %(who)s, 'more tries' FROM workqueues_file
    WHERE dataset_id = ANY(%(datasets)s) AND status = 'failed' AND (%(files)s::bigint[] IS NULL OR id = ANY(%(files)s))
), revived AS (
    UPDATE workqueues_file f SET status = 'ready', retry_due = NULL,
        {_TRIES}
    WHERE f.dataset_id = ANY(%(datasets)s) AND f.status = 'failed'
        AND (%(files)s::bigint[] IS NULL OR f.id = ANY(%(files)s)) RETURNING f.dataset_id
)
SELECT dataset_id, count(*) FROM revived GROUP BY dataset_id ORDER BY dataset_id
"""
_PARTIAL = f"""
UPDATE workqueues_file f SET status = 'partial'
WHERE f.dataset_id = ANY(%(datasets)s) AND f.status = 'ready' AND {GIVEN_BACK} = 'partial'
"""


def give_tries(task: Task, asked: TriesAsked, who: str) -> Changed:
    """More tries for all inputs that no job has: those that were given up are ready again (facts on commands 2.4)."""
    ready = _on_inputs(task, _MORE, who, more=asked.n)
    revived = revive_files(task, asked.n, who)
    said = f"{ready + revived} input files of task {task.id} have {asked.n} tries more; {revived} of them had been given up."
    return Changed({}, {"tries": asked.n, "files": ready, "given_up": revived}, said)


def revive_files(task: Task, more: int, who: str, files: Sequence[int] | None = None) -> int:
    """Inputs of a locked task that were given up, all or these, are ready with so many more tries: how many."""
    ids = _locked_inputs(task.id)
    values: dict[str, int | str | list[int] | None] = {
        "task": task.id, "who": who[:128], "datasets": ids, "more": more, "files": None if files is None else list(files)
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_REVIVED, values)
        revived = dict(cursor.fetchall())
        cursor.execute(_PARTIAL, values)
    for dataset in Dataset.objects.filter(id__in=revived).order_by("id"):
        n = revived[dataset.id]
        Dataset.objects.filter(id=dataset.id).update(n_files_used=F("n_files_used") - n, n_files_failed=F("n_files_failed") - n)
        if dataset.status == "done":
            dataset.refresh_from_db()
            move_dataset(dataset, "ready", who, f"{n} files to run again")
    rewritten(task)
    look_after_commit("generate", "wake")
    return sum(revived.values())


def _locked_inputs(task_id: int) -> list[int]:
    inputs = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=INPUT_TYPES, excluded=False)
    return list(inputs.order_by("id").values_list("id", flat=True))


def _on_inputs(task: Task, statement: str, who: str, **values: Any) -> int:
    """How many files of the input datasets, which are locked, a statement changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {"task": task.id, "who": who[:128], "datasets": _locked_inputs(task.id), **values})
        return int(cursor.rowcount)
