"""What was pulled from the parent: rows come with a pull, get their work, follow their tasks, and end when the parent says so.

Every statement says of which rows it holds, so that a run that was killed, or is doubled, changes nothing twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation.kernel.machine import Names
from workqueues.ledger.commands import command
from workqueues.models import PulledElement
from workqueues.queries.pulled_elements import LIVE_TASK
from workqueues.rules.elements.messages import ElementTry, PulledHead
from workqueues.states import MASTER_TYPES, TASK
from workqueues.states.elements import ELEMENT

LONGEST_REASON = 255
LONGEST_WORDS = 510

_WORK_LEFT = "p.work - 'parameters' - 'inputs'"
"""What is kept of one that is over: the task has its own parameters and files."""

_WORK = f"""
UPDATE workqueues_pulledelement p SET work = v.work::jsonb, status = 'Acquired'
FROM unnest(%(elements)s::bigint[], %(tries)s::bigint[], %(works)s::text[]) AS v(element, try_nr, work)
WHERE p.element_id = v.element AND p.try_nr = v.try_nr AND p.incarnation = %(incarnation)s AND p.ended_at IS NULL
    AND p.status IN ({ELEMENT.accepting("acquire").sql})
"""
_BEGUN = f"""
UPDATE workqueues_pulledelement p SET status = 'Running' FROM workqueues_task t
WHERE t.id = p.task_id AND p.ended_at IS NULL AND p.status IN ({ELEMENT.accepting("run").sql}) AND t.start_time IS NOT NULL
"""
_ENDED = f"""
UPDATE workqueues_pulledelement p SET status = e.status
FROM (
    SELECT o.id, CASE
            WHEN o.status = 'CancelRequested' OR o.given_back <> '' OR t.status = 'aborted' THEN 'Canceled'
            WHEN t.status IN ({TASK.completed.sql}) THEN 'Done' ELSE 'Failed' END AS status
    FROM workqueues_pulledelement o LEFT JOIN workqueues_task t ON t.id = o.task_id
    WHERE o.ended_at IS NULL AND o.refused = '' AND (t.id IS NULL OR t.ended_at IS NOT NULL)
        AND (o.status IN ({ELEMENT.begun.sql}) OR o.status = 'Acquired' AND t.id IS NOT NULL)
        AND NOT EXISTS (SELECT FROM workqueues_file f WHERE f.task_id = o.task_id AND f.report_due
            AND f.type IN ({MASTER_TYPES.sql}))
) e WHERE e.id = p.id AND p.ended_at IS NULL
"""
"""The task ended, or is gone, and every end of its files is told."""
_GONE = f"""
UPDATE workqueues_pulledelement p SET ended_at = now(), work = {_WORK_LEFT} WHERE p.ended_at IS NULL AND p.refused <> ''
    AND NOT EXISTS (SELECT FROM workqueues_task t WHERE t.id = p.task_id AND {LIVE_TASK})
"""
_TOLD = """
UPDATE workqueues_pulledelement p SET told = v.told, told_at = %(at)s, priority = v.priority,
    lease_until = %(at)s + make_interval(secs => v.lease_s)
FROM unnest(%(ids)s::bigint[], %(tolds)s::text[], %(priorities)s::int[], %(leases)s::float8[])
    AS v(id, told, priority, lease_s)
WHERE p.id = v.id AND p.ended_at IS NULL AND p.refused = ''
"""
_OVER = f"""
UPDATE workqueues_pulledelement p SET status = CASE WHEN p.status IN ({ELEMENT.returnable.sql}) THEN 'Canceled' ELSE p.status END,
    ended_at = now(), work = {_WORK_LEFT}
WHERE p.id = ANY (%(ids)s) AND p.ended_at IS NULL AND p.refused = '' AND (
    p.status = p.told AND p.status IN ({Names(sorted(ELEMENT.final)).sql})
    OR p.task_id IS NULL AND p.status IN ({ELEMENT.returnable.sql}))
"""
"""What ended at the parent before it was a task here, such as in a backup of before, becomes none any more."""
_TOLD_FILES = """
WITH mine AS (
    SELECT f.id FROM workqueues_file f JOIN unnest(%(ids)s::bigint[], %(states)s::text[]) AS v(id, status) USING (id)
    WHERE f.status = v.status AND f.report_due ORDER BY f.id FOR NO KEY UPDATE OF f SKIP LOCKED
)
UPDATE workqueues_file f SET report_due = false FROM mine WHERE f.id = mine.id
"""
"""A file that is another by now is told again; so is one that somebody works on."""
_TELL_AGAIN = """
UPDATE workqueues_pulledelement p SET told = '' FROM unnest(%(ids)s::bigint[], %(tries)s::bigint[]) AS v(element, try_nr)
WHERE p.element_id = v.element AND p.try_nr = v.try_nr AND p.incarnation = %(incarnation)s AND p.ended_at IS NULL
    AND p.refused = ''
"""
_PAUSE = """
UPDATE workqueues_pulledelement SET work = work || '{"paused": true}'
WHERE id = ANY (%(ids)s) AND task_id IS NULL AND work <> '{}' AND NOT work ? 'paused'
"""
_RESUME = """
UPDATE workqueues_pulledelement SET work = work - 'paused' WHERE id = ANY (%(ids)s) AND task_id IS NULL AND work ? 'paused'
"""


class ToldElement(NamedTuple):
    """What the parent took of an element: the state that it was told, and its answer. `ended`: nothing of it is open there."""

    id: int
    told: str
    priority: int
    lease_s: float
    ended: bool


def note_pulled(heads: Sequence[PulledHead], incarnation: UUID, at: datetime) -> int:
    """Elements that the parent gave us come here, each try once: how many are new. `at`: when they were asked for."""
    before = PulledElement.objects.filter(incarnation=incarnation, element_id__in=[head.id for head in heads])
    known = set(before.values_list("element_id", "try_nr"))
    rows = [_row(head, incarnation, at) for head in heads if (head.id, head.try_nr) not in known]
    PulledElement.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _row(head: PulledHead, incarnation: UUID, at: datetime) -> PulledElement:
    return PulledElement(
        element_id=head.id,
        try_nr=head.try_nr,
        incarnation=incarnation,
        parent_task_id=head.task_id,
        status="Negotiating",
        told="Negotiating",
        priority=head.priority,
        jobs=head.jobs,
        site=head.site[:128],
        vo=head.vo,
        lease_until=at + timedelta(seconds=head.lease_s),
    )


def store_work(incarnation: UUID, works: Iterable[tuple[int, int, str]]) -> int:
    """What is to be done for elements, as JSON by element and try: how many had none yet."""
    elements, tries, texts = zip(*works, strict=True)
    values = {"incarnation": incarnation, "elements": list(elements), "tries": list(tries), "works": list(texts)}
    return _run(_WORK, values)


def follow_tasks() -> int:
    """Elements follow their tasks, and those of the parent that are refused end with them: how many moved."""
    with transaction.atomic():
        return _run(_BEGUN, {}) + _run(_ENDED, {}) + _run(_GONE, {})


def note_told(told: Sequence[ToldElement], files: Mapping[int, str], at: datetime) -> None:
    """The parent took a report, sent `at` this time: these states, and the ends of these files, with the state that each had."""
    with transaction.atomic():
        if files:
            ids = sorted(files)
            _run(_TOLD_FILES, {"ids": ids, "states": [files[id_] for id_ in ids]})
        values = {
            "ids": [one.id for one in told],
            "tolds": [one.told for one in told],
            "priorities": [one.priority for one in told],
            "leases": [one.lease_s for one in told],
        }
        _run(_TOLD, {**values, "at": at})
        _run(_OVER, {"ids": [one.id for one in told if one.ended]})


def tell_again(elements: Iterable[ElementTry], incarnation: UUID) -> int:
    """These are told with the next report, though nothing happened to them here: how many."""
    tries = [(one.id, one.try_nr) for one in elements]
    ids, numbers = [id_ for id_, _ in tries], [try_nr for _, try_nr in tries]
    return _run(_TELL_AGAIN, {"ids": ids, "tries": numbers, "incarnation": incarnation}) if tries else 0


def note_refused(reasons: Mapping[int, str]) -> None:
    """The parent no longer gives us these elements: nothing more is told of them."""
    for id_, why in sorted(reasons.items()):
        PulledElement.objects.filter(id=id_, ended_at=None, refused="").update(
            refused=(why or "no reason was given")[:LONGEST_REASON]
        )


def want_cancelled(ids: Collection[int]) -> int:
    """The parent wants these cancelled."""
    waiting = PulledElement.objects.filter(id__in=ids, ended_at=None, status__in=ELEMENT.accepting("cancel"))
    return waiting.update(status="CancelRequested")


def note_paused(ids: Collection[int], *, paused: bool) -> None:
    """Elements that are no tasks yet become none while the parent's task is paused."""
    if paused:
        _run(_PAUSE, {"ids": sorted(ids)})
    else:
        _run(_RESUME, {"ids": sorted(ids)})


def lock_startable(id_: int) -> PulledElement | None:
    """An element that is to become a task, locked in the caller's transaction; None where it no longer is."""
    rows = PulledElement.objects.select_for_update(skip_locked=True).filter(
        Q(id=id_, status="Acquired", task=None, ended_at=None, refused="", lease_until__gt=Now())
    )
    return rows.first()


def begin(element: PulledElement, task_id: int) -> None:
    """A locked element is this task from now on."""
    element.task_id = task_id
    element.save(update_fields=["task"])


def fail(id_: int, why: str) -> None:
    """An element that breaks rules here cannot become a task: it is told as failed, with the sentence."""
    with transaction.atomic():
        if (element := lock_startable(id_)) is not None:
            element.work = {**element.work, "fault": why[:510]}
            element.status = "Failed"
            element.save(update_fields=["work", "status"])


def give_back(id_: int, why: str, who: str) -> bool:
    """This broker gives an element back to the parent by itself, and kills its task: whether it did. Its ends are told as those
    of any other that has ended, with the reason. Raises NotAllowed where its task ends already.
    """
    with transaction.atomic():
        rows = PulledElement.objects.select_for_update(skip_locked=True).filter(
            id=id_, ended_at=None, refused="", given_back="", status__in=ELEMENT.returnable
        )
        if (element := rows.first()) is None:
            return False
        element.given_back = why[:LONGEST_WORDS]
        if element.task_id is None:
            element.status = "Canceled"
        else:
            command(element.task_id, "kill", who, f"given back to the parent: {why}"[:LONGEST_REASON])
        element.save(update_fields=["given_back", "status"])
    return True


def note_given_back(id_: int, why: str) -> None:
    """What is left of an element whose task has ended goes back to the parent, which does not take what became of it."""
    PulledElement.objects.filter(id=id_, ended_at=None, refused="", given_back="").update(given_back=why[:LONGEST_WORDS])


def _run(sql: str, values: Mapping[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)
