"""Files that a generator has picked and no job took: how they are ready again."""

from __future__ import annotations

from django.db import connection

from workqueues.models import Dataset
from workqueues.queries.ranges import GIVEN_BACK
from workqueues.states import INPUT_TYPES

_BACK = f"""
WITH back AS (
    UPDATE workqueues_file f SET status = {GIVEN_BACK}
    WHERE f.dataset_id = ANY(%(datasets)s) AND f.status = 'picked' AND f.element_id IS NULL RETURNING f.dataset_id
), counted AS (
    UPDATE workqueues_dataset d SET n_files_used = d.n_files_used - b.n
    FROM (SELECT dataset_id, count(*) AS n FROM back GROUP BY dataset_id) b WHERE d.id = b.dataset_id RETURNING b.n
)
SELECT coalesce(sum(n), 0)::bigint FROM counted
"""


def return_picked(*task_ids: int) -> int:
    """Make every picked file of these tasks ready again, or partial where some of its events are done: how many there were. Those
    that wait in elements stay.

    The caller holds the locks of the tasks, so that nobody picks meanwhile.
    """
    datasets = Dataset.objects.select_for_update(no_key=True).filter(task_id__in=task_ids, type__in=INPUT_TYPES).order_by("id")
    with connection.cursor() as cursor:
        cursor.execute(_BACK, {"datasets": list(datasets.values_list("id", flat=True))})
        return int(cursor.fetchone()[0])
