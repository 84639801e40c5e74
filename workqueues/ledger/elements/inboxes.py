"""How the elements of a task stand together (row W1): the inbox element follows them, and never goes back."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from django.db import connection
from django.db.models.functions import Now

from workqueues.models import ElementChange, ElementInbox
from workqueues.rules.elements.course import inbox_state

LOOK_BACK_S = 120.0
"""Changes of so long ago are looked at again, since a transaction shows them only at its end."""
MOST_TASKS = 500

_COUNTS = """
SELECT e.task_id, e.status, count(*), sum(e.n_files), sum(e.n_files_finished + e.n_files_failed), sum(e.n_files_finished)
FROM workqueues_element e WHERE e.task_id = ANY(%s) GROUP BY 1, 2
"""


def refresh_inboxes() -> int:
    """Bring the inboxes of tasks up to date whose elements moved of late: how many changed."""
    recent = ElementChange.objects.filter(at__gt=Now() - timedelta(seconds=LOOK_BACK_S))
    tasks = list(recent.order_by().values_list("task_id", flat=True).distinct()[:MOST_TASKS])
    if not tasks:
        return 0
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    files: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [tasks])
        for task_id, status, n, n_files, ended, finished in cursor.fetchall():
            counts[task_id][status] = n
            for i, more in enumerate((n_files, ended, finished)):
                files[task_id][i] += int(more)
    known = {inbox.task_id: inbox for inbox in ElementInbox.objects.filter(task_id__in=tasks)}
    changed = 0
    for task_id, by_state in counts.items():
        inbox = known.get(task_id)
        state = inbox_state(list(by_state), inbox.status if inbox else None)
        total, ended, finished = files[task_id]
        values = {
            "status": state,
            "counts": by_state,
            "percent_complete": 100 * ended // total if total else 100,
            "percent_success": 100 * finished // total if total else 100,
        }
        if inbox is None or any(getattr(inbox, name) != value for name, value in values.items()):
            moved = {"status_since": Now()} if inbox is None or inbox.status != state else {}
            ElementInbox.objects.update_or_create(task_id=task_id, defaults={**values, **moved})
            changed += 1
    return changed
