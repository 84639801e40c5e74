"""What this broker knows of its parent: which it is, when it last answered, what is wrong; and the key of a pull in the air."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import Error, connection, transaction
from django.db.models.functions import Now

from workqueues.ledger.pulled_elements import note_pulled
from workqueues.models import ParentBroker
from workqueues.rules.elements.messages import PullAnswer, Reply
from workqueues.rules.elements.parent_news import ParentNews
from workqueues.states import INPUT_FILE, MASTER_TYPES

LONGEST_WORDS = 510
OPEN_KEY = "open_key"
"""Where the key of a pull stands in the last answer, until that pull is answered."""
ASKED = "asked"
"""Where the last element stands there whose work was asked for."""
LOST = "the parent was restored from a backup before it had given the work"

_ALONE = "SELECT pg_try_advisory_lock(hashtext('agent pull'))"
_NO_LONGER = "SELECT pg_advisory_unlock(hashtext('agent pull'))"

_DATASETS = f"""
SELECT FROM workqueues_dataset d JOIN workqueues_pulledelement p ON p.task_id = d.task_id
WHERE p.ended_at IS NULL AND p.refused = '' AND d.type IN ({MASTER_TYPES.sql}) ORDER BY d.id FOR NO KEY UPDATE OF d
"""
_TELL_FILES = f"""
UPDATE workqueues_file f SET report_due = true
FROM workqueues_pulledelement p JOIN workqueues_dataset d ON d.task_id = p.task_id
    AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL
WHERE p.ended_at IS NULL AND p.refused = '' AND f.dataset_id = d.id AND NOT f.report_due
    AND f.status = ANY (%(final)s)
"""
_LOSE = "UPDATE workqueues_pulledelement SET refused = %s WHERE ended_at IS NULL AND refused = '' AND status = 'Negotiating'"
_TELL_STATES = "UPDATE workqueues_pulledelement SET told = '' WHERE ended_at IS NULL AND refused = ''"


@contextmanager
def alone() -> Iterator[bool]:
    """Whether this run is the only one that speaks to the parent, as long as its connection to the database lives."""
    with connection.cursor() as cursor:
        cursor.execute(_ALONE)
        mine = bool(cursor.fetchone()[0])
    try:
        yield mine
    finally:
        if mine:
            with suppress(Error), connection.cursor() as cursor:  # a broken connection holds no lock
                cursor.execute(_NO_LONGER)


def parent_row(url: str) -> ParentBroker:
    """The one row of the parent, which has its address as it is now."""
    with transaction.atomic():
        row = ParentBroker.objects.select_for_update().order_by("id").first()
        if row is None:
            row, _ = ParentBroker.objects.get_or_create(url=url)
        elif row.url != url:
            row.url = url
            row.save(update_fields=["url"])
    return row


_NOTED = (
    "instance", "incarnation", "lineage", "version", "protocol", "clock_ahead_s", "last_contact", "last_error", "last_error_at",
)  # fmt: skip
"""Not the answer to a pull, which may have changed since the row was read."""


def note_answer(row: ParentBroker, reply: Reply, news: ParentNews) -> None:
    """The parent answered. One that was restored, or is another one, is told all again of what has not ended."""
    with transaction.atomic():
        ParentBroker.objects.select_for_update().get(id=row.id)
        if news.restored:
            _tell_all_again()
        row.instance, row.incarnation, row.lineage = news.instance, news.incarnation, list(news.lineage)
        row.version, row.protocol = reply.version[:40], reply.protocol
        row.clock_ahead_s = news.clock_ahead_s
        row.last_contact = Now()
        _say(row, news.oddity)
        row.save(update_fields=_NOTED)
        row.refresh_from_db()


def note_fault(row: ParentBroker, why: str) -> None:
    """The parent gave no answer that can be used."""
    _say(row, why)
    row.save(update_fields=["last_error", "last_error_at"])
    row.refresh_from_db()


def _say(row: ParentBroker, why: str) -> None:
    row.last_error = why[:LONGEST_WORDS].replace("\x00", "")
    if why:
        row.last_error_at = Now()


def _tell_all_again() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_DATASETS)  # whoever changes a file holds the lock of its dataset
        cursor.execute(_TELL_FILES, {"final": sorted(INPUT_FILE.final)})
        cursor.execute(_LOSE, [LOST])
        cursor.execute(_TELL_STATES)


def pull_key(row: ParentBroker) -> UUID:
    """The key of the next pull: that of the last one while it has no answer, else a new one, which is kept before it is used."""
    with transaction.atomic():
        locked = ParentBroker.objects.select_for_update().get(id=row.id)
        known = locked.answer.get(OPEN_KEY)
        key = UUID(known) if known else uuid4()
        if not known:
            locked.answer = {**locked.answer, OPEN_KEY: str(key)}
            locked.save(update_fields=["answer"])
    return key


def last_asked(row: ParentBroker) -> int:
    """The pulled element whose work was asked for last."""
    return int(row.answer.get(ASKED) or 0)


def note_asked(row: ParentBroker, id_: int) -> None:
    """The work of this element is asked for now: after a fault it is the turn of the next one."""
    with transaction.atomic():
        locked = ParentBroker.objects.select_for_update().get(id=row.id)
        locked.answer = {**locked.answer, ASKED: id_}
        locked.save(update_fields=["answer"])


def store_pull(row: ParentBroker, key: UUID, answer: PullAnswer, incarnation: UUID, at: datetime) -> int:
    """The answer to a pull, whose elements come here: how many are new. `at`: when it was asked for."""
    with transaction.atomic():
        locked = ParentBroker.objects.select_for_update().get(id=row.id)
        new = note_pulled(answer.elements, incarnation, at)
        if locked.answer.get(OPEN_KEY) == str(key):
            locked.answer = _kept(answer.elements, answer.why, at)
            locked.save(update_fields=["answer"])
    return new


def _kept(elements: Sequence[Any], why: Mapping[str, int], at: datetime) -> dict[str, Any]:
    """What is kept of an answer, to be shown."""
    return {"at": at.isoformat(), "elements": [[head.id, head.try_nr, head.site] for head in elements], "why": dict(why)}
