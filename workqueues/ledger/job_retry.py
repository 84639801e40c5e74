"""A retry of a task of analysis that still runs: a retry of its jobs, in the caller's transaction; the task goes on as it is.

Source: facts on task commands 2.5, code 5 of retry and of a submission of the same name. A job that failed has freed its inputs
already; those that were given up are tried again, and changed parameters are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workqueues.ledger.changes import looked_at, store_changes
from workqueues.ledger.staging import stage_no_more
from workqueues.ledger.task_changes import give_tries, locked_inputs, rewritten
from workqueues.models import Task
from workqueues.rules.refine.changes import NOTHING, ParameterChange, for_the_next_reading
from workqueues.rules.task.changes import TriesAsked
from workqueues.rules.task.commands import Command


class JobRetry(NamedTuple):
    """The task, what happens, in sentences, and what was given, for the audit."""

    task: Task
    told: str
    given: Mapping[str, Any]


def retry_jobs(task_id: int, row: Command, changes: Mapping[str, Any], who: str, *, staged: bool) -> JobRetry | None:
    """Give the inputs of a live task that no job has more tries, and store what changes; None where the command is no such one.
    `staged`: what waits to be staged from tape waits no longer.

    Refused(422) for changes that may not be.
    """
    task = Task.objects.select_for_update(no_key=True).get(id=task_id)
    if not row.for_jobs(task.status, task.prod_source_label) or task.quarantined_at is not None:
        return None
    asked = looked_at(task, changes) if changes else NOTHING
    if asked.differences:
        rewritten(task, **store_changes(task, asked))
    given = give_tries(task, TriesAsked(), who).after
    if staged:
        given = {**given, "unstaged": stage_no_more(task.id, locked_inputs(task.id), who)}
    task.refresh_from_db()
    return JobRetry(task, " ".join([_of_files(task, given), *_of_changes(asked.differences)]), given)


def _of_files(task: Task, given: Mapping[str, Any]) -> str:
    revived, waiting, tries = given["given_up"], given["files"], given["tries"]
    goes_on, n = f"Task {task.id} goes on as it is ({task.status})", given.get("unstaged", 0)
    tape = f"; {n} wait{'s' * (n == 1)} no longer to be staged from tape" if n else ""
    if not revived:
        return f"{goes_on}: no input of it was given up; {waiting} that wait have {tries} tries more{tape}."
    again = f"{revived} input file{' that was' if revived == 1 else 's that were'} given up will have {tries} tries more"
    also = f", and {waiting} that wait as many{tape}" if waiting else tape
    return f"{goes_on}, and its failed jobs are made again: {again}{also}."


def _of_changes(differences: Sequence[ParameterChange]) -> list[str]:
    """What becomes of each change: most hold for the next job, those of what is read for the next reading."""
    later = [d for d in differences if for_the_next_reading(d.name)]
    now = [d for d in differences if d not in later]
    told = [f"For jobs that are made from now on: {', '.join(d.sentence() for d in now)}."] if now else []
    if later:
        told.append(f"Kept for when its inputs are read again, as by incexec: {', '.join(d.sentence() for d in later)}.")
    return told
