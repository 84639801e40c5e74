"""How the elements of a task stand together (row W1): the inbox element follows them, and never goes back."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from workqueues.models import ElementInbox
from workqueues.rules.elements.course import inbox_state
from workqueues.states.elements import ELEMENT

MOST_TASKS = 200
"""Tasks whose elements are counted at once: those that were not for longest."""

_OPEN = """
INSERT INTO workqueues_elementinbox (task_id, status, counts) VALUES (%s, 'Available', '{}')
ON CONFLICT (task_id) DO UPDATE SET is_open = TRUE, counted_at = NULL
WHERE NOT workqueues_elementinbox.is_open OR workqueues_elementinbox.counted_at IS NOT NULL
"""
_COUNTS = """
SELECT e.task_id, e.status, count(*), sum(e.n_files), sum(e.n_files_finished + e.n_files_failed), sum(e.n_files_finished)
FROM workqueues_element e WHERE e.task_id = ANY(%s) GROUP BY 1, 2
"""


def open_inbox(task_id: int) -> None:
    """The inbox of a task for which elements were just cut, made where there is none: they are counted next."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, [task_id])


def refresh_inboxes() -> int:
    """Count the elements of tasks with some that have not ended, those first that were not counted for longest: how many inboxes
    changed.

    Two at once count different ones: who holds an inbox counts what is there then, so that no older count follows a newer one.
    """
    with transaction.atomic():
        oldest = ElementInbox.objects.filter(is_open=True).order_by(F("counted_at").asc(nulls_first=True), "task_id")
        inboxes = list(oldest.select_for_update(skip_locked=True, no_key=True)[:MOST_TASKS])
        counted = _counted([inbox.task_id for inbox in inboxes])
        changed = sum(_follow(inbox, counted.get(inbox.task_id, [])) for inbox in inboxes)
        fields = ("status", "status_since", "counts", "percent_complete", "percent_success", "is_open", "counted_at")
        ElementInbox.objects.bulk_update(inboxes, fields)
    return changed


def _counted(tasks: Sequence[int]) -> dict[int, list[tuple[str, int, int, int, int]]]:
    """By task: state, elements, their files, those that have ended, those that are finished."""
    counted: dict[int, list[tuple[str, int, int, int, int]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [list(tasks)])
        for task_id, status, *numbers in cursor.fetchall():
            n, n_files, ended, finished = map(int, numbers)
            counted.setdefault(task_id, []).append((status, n, n_files, ended, finished))
    return counted


def _follow(inbox: ElementInbox, rows: Sequence[tuple[str, int, int, int, int]]) -> bool:
    """Set what the inbox says by the elements of its task: whether that is something new."""
    was = (inbox.status, inbox.counts, inbox.percent_complete, inbox.percent_success)
    state = inbox_state([status for status, _, _, _, _ in rows], inbox.status) or inbox.status
    total = sum(n_files for _, _, n_files, _, _ in rows)
    ended = sum(n for _, _, _, n, _ in rows)
    finished = sum(n for _, _, _, _, n in rows)
    if state != inbox.status:
        inbox.status, inbox.status_since = state, Now()
    inbox.counts = {status: n for status, n, _, _, _ in rows}
    inbox.percent_complete = 100 * ended // total if total else 100
    inbox.percent_success = 100 * finished // total if total else 100
    inbox.is_open, inbox.counted_at = not set(inbox.counts) <= set(ELEMENT.final), Now()
    return was != (inbox.status, inbox.counts, inbox.percent_complete, inbox.percent_success)
