"""Inputs of a task that is run again: what was given up of them, or is gone, is usable again, in the caller's transaction."""

from __future__ import annotations

from django.db import connection
from django.db.models import F

from workqueues.ledger.more_tries import go_on, revive
from workqueues.ledger.moves import move_dataset
from workqueues.ledger.open_inputs import follow_again
from workqueues.models import Dataset
from workqueues.states import INPUT_FILE, MUTABLE

_DUE = f"""
UPDATE workqueues_file SET retry_due = NULL
WHERE dataset_id = %(dataset)s AND status IN ({INPUT_FILE.unused.sql}) AND held = '' AND retry_due IS NOT NULL
"""
"""Who asks for a retry does not wait for pauses of files."""

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


def reopen(dataset: Dataset, more: int, who: str) -> int:
    """Make usable again what was given up of a locked dataset, or is gone: how many of its files are left to run."""
    n = revive(dataset.task_id, [dataset.id], more, who, "task retry").get(dataset.id, 0)
    changed(_DUE, dataset, who)
    found = changed(_GONE, dataset, who)
    if found:
        go_on([dataset.id])
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


def changed(statement: str, dataset: Dataset, who: str, **values: int) -> int:
    """How many files of a locked dataset a statement changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {"dataset": dataset.id, "task": dataset.task_id, "who": who[:128], **values})
        return int(cursor.rowcount)
