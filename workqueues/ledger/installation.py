"""Which broker this is, and whether an older state of its database has come back (decision J5).

Instance and incarnation stand in the database and in a file beside it. The mark grows in the database first, then in the file: a
database whose mark is behind that of the file was restored from a backup.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from workqueues.ledger.elements.lots import skip_lots
from workqueues.models import Installation

LONGEST_GAP_S, GAPS = 60.0, 4
"""After so long a silence of its agents, or this part of `elements.STANDSTILL`, a broker was down: nothing stood still then."""
FIRST, RESTORED, COPIED, NO_FILE = (
    "it began",
    "an older state of the database came back",
    "the database of another broker came here",
    "the file beside the database was lost",
)
"""Why an incarnation begins."""


@dataclass(frozen=True, slots=True)
class Identity:
    """`instance`: this broker, as long as it lives; `incarnation`: new whenever its database is not the one that it was."""

    instance: UUID
    incarnation: UUID


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the file says."""

    instance: UUID
    incarnation: UUID
    mark: int


class _Compared:
    """Whether this process has compared database and file: those of before a restore ended with it."""

    done = False


def identity() -> Identity:
    """Who this broker is: what its database says. The first call of a process looks at the file, which the agents do again."""
    row = Installation.objects.order_by("id").first() if _Compared.done else None
    if row is None:
        row, _Compared.done = renew_if_restored(), True
    return Identity(row.instance, row.incarnation)


def renew_if_restored() -> Installation:
    """Compare database and file, begin a new incarnation where they show that the database is not the one that it was, and move
    the mark on in both. Agents do so before they speak to other brokers.
    """
    kept = _read()
    with transaction.atomic():
        _one_at_a_time()
        row = Installation.objects.select_for_update().order_by("id").first()
        if row is None:
            row = Installation.objects.create(instance=uuid4(), incarnation=uuid4(), why=FIRST)
        elif why := _why_new(row, kept):
            _begin(row, why)
        row.mark = max(row.mark, kept.mark if kept else 0) + 1
        row.save(update_fields=["mark"])
        _note_work(row.id)
    _write(_Kept(row.instance, row.incarnation, row.mark))
    return row


def _note_work(id_: int) -> None:
    """Its agents are at work; they began anew where they were not for longer than a gap."""
    gap_s = min(LONGEST_GAP_S, gdpconfig.value("elements", "STANDSTILL") / GAPS)
    late = Q(worked_at__lt=Now() - timedelta(seconds=gap_s))
    since = Case(When(late, then=Now()), default=F("works_since"))
    Installation.objects.filter(id=id_).update(works_since=since, worked_at=Now())


def begin_anew(why: str) -> None:
    """A new incarnation by order of the operator who restored a backup."""
    with transaction.atomic():
        _one_at_a_time()
        if (row := Installation.objects.select_for_update().order_by("id").first()) is not None:
            _begin(row, why)


def _why_new(row: Installation, kept: _Kept | None) -> str:
    if kept is None:
        return NO_FILE
    if kept.instance != row.instance:
        return COPIED
    return RESTORED if row.mark < kept.mark else ""


def _begin(row: Installation, why: str) -> None:
    row.incarnation, row.why = uuid4(), why
    row.changed_at = Now()
    row.save(update_fields=["incarnation", "why", "changed_at"])
    skip_lots()


def _one_at_a_time() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('installation', 0))")


def _read() -> _Kept | None:
    try:
        said = json.loads(_file().read_text())
        return _Kept(UUID(said["instance"]), UUID(said["incarnation"]), int(said["mark"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _write(kept: _Kept) -> None:
    """Replace the file whole; one that is ahead of us already stays."""
    known = _read()
    if known is not None and known.instance == kept.instance and known.mark >= kept.mark:
        return
    path = _file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
        json.dump({"instance": str(kept.instance), "incarnation": str(kept.incarnation), "mark": kept.mark}, new)
        new.flush()
        os.fsync(new.fileno())
    Path(new.name).replace(path)


def _file() -> Path:
    return Path(settings.INSTALLATION_FILE)
