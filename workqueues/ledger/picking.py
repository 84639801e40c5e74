"""Input files picked for jobs, and given back: what a generator holds of a task between looking and making.

What becomes of them when their job ends is in `files`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Now

from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.picked_files import return_picked
from workqueues.models import Dataset, File
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.states import INPUT_FILE

# Read in the order of the index: a range of one status cannot be taken for a constant, by which the planner would rather read the
# whole table in the order of ids. The list of states is that of the index.
_FRESH = f"""dataset_id = %(dataset)s AND status BETWEEN %(status)s AND %(status)s AND status IN ({INPUT_FILE.unused.sql})
    AND held = '' AND retry_due IS NULL AND beside_file IS NULL"""
"""Files that wait for nothing, and stand beside no file of a master."""
_LAST = f"""
SELECT count(*), max(id) FROM (SELECT id FROM workqueues_file WHERE {_FRESH} ORDER BY status, id LIMIT %(n)s) AS chosen
"""
# The rows need no lock beforehand: whoever changes a file holds the lock of its dataset, as the caller does here.
_PICK = f"""
UPDATE workqueues_file SET status = 'picked', element_id = NULL WHERE {_FRESH} AND id <= %(last)s
RETURNING {", ".join(InputFile._fields)}
"""
_PICK_DUE = f"""
UPDATE workqueues_file SET status = 'picked', retry_due = NULL, element_id = NULL
WHERE id = ANY (ARRAY(
    SELECT id FROM workqueues_file WHERE dataset_id = %(dataset)s AND status BETWEEN %(status)s AND %(status)s
        AND status IN ({INPUT_FILE.unused.sql}) AND held = '' AND retry_due <= now() ORDER BY status, retry_due LIMIT %(n)s))
RETURNING {", ".join(InputFile._fields)}
"""
"""Files whose pause after a try that failed is over (decision D17)."""


def take_files(run_id: str, task_id: int, dataset_id: int, limit: int) -> list[InputFile]:
    """Pick up to `limit` files of a dataset for the holder of the claim, lowest ids first.

    Files of which only some events are done come before those that are untouched, files whose pause is over before fresh ones.
    Those that stand beside a file of a master are left out.
    """
    with transaction.atomic():
        dataset = _locked(run_id, task_id, dataset_id)
        wanted = min(limit, dataset.n_files_to_be_used - dataset.n_files_used)
        files = [*_picked(dataset_id, "partial", wanted)]
        files += _picked(dataset_id, "ready", wanted - len(files))
        _count_used(dataset_id, len(files))
        return files


def _locked(run_id: str, task_id: int, dataset_id: int) -> Dataset:
    lock_claimed(task_id, run_id)
    return Dataset.objects.select_for_update(no_key=True).get(id=dataset_id)


def _count_used(dataset_id: int, n: int) -> None:
    if n:
        Dataset.objects.filter(id=dataset_id).update(n_files_used=F("n_files_used") + n)


def _picked(dataset_id: int, status: str, n: int) -> list[InputFile]:
    """Files in this state, at most so many, picked, in order of id.

    Of the fresh ones the last is looked up, then all up to it are moved.
    """
    if n <= 0:
        return []
    values: dict[str, int | str] = {"dataset": dataset_id, "status": status, "n": n}
    with connection.cursor() as cursor:
        cursor.execute(_PICK_DUE, values)
        rows = cursor.fetchall()
        if len(rows) < n:
            cursor.execute(_LAST, {**values, "n": n - len(rows)})
            n_files, last = cursor.fetchone()
            if n_files:
                cursor.execute(_PICK, {**values, "last": last})
                rows += cursor.fetchall()
    return sorted(map(InputFile._make, rows))


class Partner(NamedTuple):
    """A file of a secondary dataset that stands beside a master file: picked with it, or its state where it cannot be."""

    file: InputFile
    beside_file: int
    beside_event: int
    status: str
    held: str


_BESIDE = f"""
SELECT {", ".join(InputFile._fields)}, beside_file, beside_event, status, held FROM workqueues_file
WHERE dataset_id = %(dataset)s AND beside_file = ANY (%(masters)s) ORDER BY id
"""


def take_partners(run_id: str, task_id: int, dataset_id: int, master_files: Sequence[int]) -> list[Partner]:
    """The files of a secondary dataset that stand beside these files of the master; those that are ready are picked."""
    with transaction.atomic():
        _locked(run_id, task_id, dataset_id)
        n = len(InputFile._fields)
        with connection.cursor() as cursor:
            cursor.execute(_BESIDE, {"dataset": dataset_id, "masters": list(master_files)})
            partners = [Partner(InputFile(*row[:n]), *row[n:]) for row in cursor.fetchall()]
            usable = [p.file.id for p in partners if p.status == "ready" and not p.held]
            if usable:
                cursor.execute("UPDATE workqueues_file SET status = 'picked' WHERE id = ANY (%s)", [usable])
        _count_used(dataset_id, len(usable))
        chosen = set(usable)
        return [p._replace(status="picked") if p.file.id in chosen else p for p in partners]


def pause_files(file_ids: Sequence[int], pause_s: float) -> None:
    """Picked files that cannot be used now are looked at again so much later; they stay picked until they are given back."""
    File.objects.filter(id__in=file_ids, status="picked").update(retry_due=Now() + Value(timedelta(seconds=pause_s)))


def give_back_picked(run_id: str, task_id: int) -> int:
    """Make every picked file of a claimed task ready again, or partial: those of this run that no job took, and those of a run
    that died.
    """
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        return return_picked(task_id)
