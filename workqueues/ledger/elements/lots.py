"""Lots of serial numbers for tries of elements: cut off those of the task, never given again (decision J4)."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection, transaction

from workqueues.models import Element
from workqueues.rules.jobs.lengths import LARGEST_NUMBERS

AFTER_RESTORE = 1_000_000
"""More serial numbers of an output than come between a backup and its restore."""


class Lot(NamedTuple):
    """Serial numbers from `first` on, `last` included, the same for all outputs of the task."""

    first: int
    last: int


class _Template(NamedTuple):
    """A template of file names: the last serial number that was dealt, and the largest that may be."""

    id: int
    task_id: int
    serial_nr: int
    max_serial_nr: int | None


_TEMPLATES = """
SELECT t.id, t.task_id, t.serial_nr, t.max_serial_nr
FROM workqueues_outputtemplate t JOIN workqueues_dataset e ON e.id = t.dataset_id
WHERE t.dataset_id IN (
    SELECT e.id FROM workqueues_outputtemplate m JOIN workqueues_dataset d ON d.id = m.dataset_id
        JOIN workqueues_dataset e ON e.dataset_name = d.dataset_name AND e.vo = d.vo
    WHERE m.task_id = %s)
ORDER BY t.id FOR NO KEY UPDATE OF t
"""
"""The templates of a task, and those of other tasks that write to the same datasets."""


def lot_of(element_id: int, n: int, least: int = 1) -> Lot:
    """The lot of the present try of an element; the first call cuts it, of `n` numbers.

    Where the numbers of its task are themselves a lot, that of a parent broker, it is cut off this one: half of what is left, or
    `least` if that is more, so that later tries have some too. Empty where none is left.
    """
    with transaction.atomic():
        element = Element.objects.select_for_update(no_key=True).get(id=element_id)
        if element.serial_first is not None and element.serial_last is not None:
            return Lot(element.serial_first, element.serial_last)
        with connection.cursor() as cursor:
            cursor.execute(_TEMPLATES, [element.task_id])
            rows = [_Template(*row) for row in cursor.fetchall()]
            mine = [row for row in rows if row.task_id == element.task_id]
            end = min((row.max_serial_nr or LARGEST_NUMBERS[0] for row in mine), default=LARGEST_NUMBERS[0])
            of_parent = end < LARGEST_NUMBERS[0]
            used = max((row.serial_nr for row in (mine if of_parent else rows)), default=0)
            left = end - used
            n = min(n, max(left // 2, min(left, least)) if of_parent else left)
            if n <= 0:
                return Lot(used + 1, used)
            ids = [row.id for row in (mine if of_parent else rows)]
            cursor.execute("UPDATE workqueues_outputtemplate SET serial_nr = %s WHERE id = ANY(%s)", [used + n, ids])
        Element.objects.filter(id=element_id).update(serial_first=used + 1, serial_last=used + n)
        return Lot(used + 1, used + n)


def skip_lots() -> None:
    """After a restore: numbers that were given since the backup are not given again, of tasks whose elements had some."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workqueues_outputtemplate SET serial_nr = serial_nr + %s"
            " WHERE task_id IN (SELECT task_id FROM workqueues_element)",
            [AFTER_RESTORE],
        )
