"""Own queues take back what waits for child brokers, of a task whose work goes to whoever is first (decision J7)."""

from __future__ import annotations

from django.db import connection, transaction

from broker_site.foundation.kernel.machine import NEW
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.elements.files import free_files
from workqueues.models import Element, ElementChange

MOST_ELEMENTS = 100

_LAST = """
SELECT id, n_files, dataset_id FROM workqueues_element WHERE task_id = %s AND status = 'Available'
ORDER BY id DESC LIMIT %s FOR UPDATE SKIP LOCKED
"""


def take_back(run_id: str, task_id: int, n_files: int, who: str) -> int:
    """Make the files of waiting elements of a claimed task ready again, so many if there are as many, those of the last elements:
    how many. Elements that a child is just pulling stay.
    """
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        with connection.cursor() as cursor:
            cursor.execute(_LAST, [task_id, MOST_ELEMENTS])
            rows = cursor.fetchall()
        chosen, files = [], 0
        for id_, n, _ in rows:
            if files >= n_files:
                break
            chosen.append(id_)
            files += n
        if not chosen:
            return 0
        free_files(chosen)
        ElementChange.objects.bulk_create(
            ElementChange(
                element_id=id_, task_id=task_id, epoch=0, old="Available", new=NEW, who=who, why="own queues had room first"
            )
            for id_ in chosen
        )
        Element.objects.filter(id__in=chosen).delete()
        return files
