"""The one way in which elements change their state: many at a time, each from a state that allows it, with its history row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from broker_site.foundation.kernel.machine import NEW
from workqueues.models import Element, ElementChange
from workqueues.states.elements import ELEMENT


class Moved(NamedTuple):
    """An element that was moved, with its task and the state that it had."""

    id: int
    task_id: int
    old: str


_MOVE = f"""
WITH seen AS MATERIALIZED (
    SELECT id, status FROM workqueues_element WHERE id = ANY(%(ids)s) AND status = ANY(%(sources)s)
    ORDER BY id FOR NO KEY UPDATE
), moved AS (
    UPDATE workqueues_element e SET status = %(new)s, status_since = now(), epoch = e.epoch + 1,
        lease_until = CASE WHEN %(new)s IN ({ELEMENT.taken.sql}) THEN e.lease_until END,
        child_id = CASE WHEN %(new)s = 'Available' THEN NULL ELSE e.child_id END,
        priority = CASE WHEN %(new)s = 'Available' THEN t.current_priority ELSE e.priority END,
        site = CASE WHEN %(new)s = 'Available' THEN '' ELSE e.site END
    FROM seen, workqueues_task t WHERE e.id = seen.id AND t.id = e.task_id
    RETURNING e.id, e.task_id, e.epoch, seen.status AS old
), noted AS (
    INSERT INTO workqueues_elementchange (element_id, task_id, epoch, old, new, who, why)
    SELECT id, task_id, epoch, old, %(new)s, %(who)s, %(why)s FROM moved
)
SELECT id, task_id, old FROM moved ORDER BY id
"""


def move_elements(ids: Sequence[int], new: str, who: str, why: str, sources: Sequence[str] = ()) -> list[Moved]:
    """Move those of the elements that are in one of `sources` (empty: any from which the machine lets them) in the caller's
    transaction: which were moved. One that is available again belongs to no child, and has the priority that its task has now.
    """
    if not ids:
        return []
    allowed = ELEMENT.sources(new)
    values: dict[str, str | list[int] | list[str]] = {
        "ids": sorted(ids),
        "sources": list(allowed & sources if sources else allowed),
        "new": new,
        "who": who[:128],
        "why": why[:510],
    }
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, values)
        return [Moved(*row) for row in cursor.fetchall()]


def elements_born(elements: Sequence[Element], who: str, why: str) -> None:
    """Insert new elements with the first rows of their histories."""
    Element.objects.bulk_create(elements, batch_size=1000)
    ElementChange.objects.bulk_create(
        (
            ElementChange(element_id=e.id, task_id=e.task_id, epoch=e.epoch, old=NEW, new=e.status, who=who, why=why[:510])
            for e in elements
        ),
        batch_size=1000,
    )
