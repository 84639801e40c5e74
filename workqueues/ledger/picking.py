"""Input files picked for jobs, and given back: what a generator holds of a task between looking and making.

What becomes of them when their job ends is in `files`.
"""

from __future__ import annotations

from django.db import connection, transaction
from django.db.models import F

from workqueues.ledger.claims import lock_claimed
from workqueues.models import Dataset
from workqueues.queries.ranges import GIVEN_BACK
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.states import INPUT_TYPES

# Read in the order of the index by state: a range of one status cannot be taken for a constant, by which the planner would rather
# read the whole table in the order of ids.
_LAST = """
SELECT count(*), max(id) FROM (
    SELECT id FROM workqueues_file WHERE dataset_id = %(dataset)s AND status BETWEEN %(status)s AND %(status)s AND held = ''
    ORDER BY status, id LIMIT %(n)s) AS chosen
"""
# The rows need no lock beforehand: whoever changes a file holds the lock of its dataset, as the caller does here.
_PICK = f"""
UPDATE workqueues_file SET status = 'picked'
WHERE dataset_id = %(dataset)s AND status = %(status)s AND held = '' AND id <= %(last)s
RETURNING {", ".join(InputFile._fields)}
"""


def take_files(run_id: str, task_id: int, dataset_id: int, limit: int) -> list[InputFile]:
    """Pick up to `limit` files of a dataset for the holder of the claim, lowest ids first.

    Files of which only some events are done come before those that are untouched.
    """
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        dataset = Dataset.objects.select_for_update(no_key=True).get(id=dataset_id)
        wanted = min(limit, dataset.n_files_to_be_used - dataset.n_files_used)
        if wanted <= 0:
            return []
        taken = [*_picked(dataset_id, "partial", wanted)]
        taken += _picked(dataset_id, "ready", wanted - len(taken))
        if taken:
            Dataset.objects.filter(id=dataset_id).update(n_files_used=F("n_files_used") + len(taken))
        return taken


def _picked(dataset_id: int, status: str, n: int) -> list[InputFile]:
    """The first files in this state, at most so many, picked: the last one is looked up, then all up to it are moved."""
    values: dict[str, int | str] = {"dataset": dataset_id, "status": status, "n": n}
    with connection.cursor() as cursor:
        cursor.execute(_LAST, values)
        n_files, last = cursor.fetchone()
        if not n_files:
            return []
        cursor.execute(_PICK, {**values, "last": last})
        return sorted(map(InputFile._make, cursor.fetchall()))


_BACK = f"""
WITH back AS (
    UPDATE workqueues_file f SET status = {GIVEN_BACK}
    WHERE f.dataset_id = ANY(%(datasets)s) AND f.status = 'picked' RETURNING f.dataset_id
), counted AS (
    UPDATE workqueues_dataset d SET n_files_used = d.n_files_used - b.n
    FROM (SELECT dataset_id, count(*) AS n FROM back GROUP BY dataset_id) b WHERE d.id = b.dataset_id RETURNING b.n
)
SELECT coalesce(sum(n), 0)::bigint FROM counted
"""


def give_back_picked(run_id: str, task_id: int) -> int:
    """Make every picked file of a claimed task ready again, or partial: those of this run that no job took, and those of a run
    that died.
    """
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        return return_picked(task_id)


def return_picked(task_id: int) -> int:
    """Make every picked file of the task ready again, or partial where some of its events are done: how many there were.

    The caller holds the lock of the task, so that nobody picks meanwhile.
    """
    datasets = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=INPUT_TYPES).order_by("id")
    with connection.cursor() as cursor:
        cursor.execute(_BACK, {"datasets": list(datasets.values_list("id", flat=True))})
        return int(cursor.fetchone()[0])
