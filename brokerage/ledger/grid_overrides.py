"""Overrides of operators as they are set, changed, ended and kept by imports.

The row that an override is about has its value; the override keeps what the document says beneath. So readers of the grid need
not know of overrides. Not here: which values are allowed (`brokerage.rules.grid.overrides`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Min, Model
from django.db.models.functions import Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import SYSTEM, Principal
from broker_site.foundation.agency.look import look_after_commit
from brokerage.ledger.waits import grid_changed
from brokerage.models import ComputingQueue, LocalOverride, Site, StorageEndpoint
from brokerage.rules.grid.attributes import BadGrid
from brokerage.rules.grid.overrides import Kind, in_column, laid_over, read_override, value_in

LOCK = 0x6772_6964
"""Key of the advisory lock."""
MODELS: Mapping[str, type[Model]] = {"site": Site, "storage": StorageEndpoint, "queue": ComputingQueue}


def take_turns() -> None:
    """Wait until no other writer of the grid is at work: an import, a feed and an override lock the same rows in other orders.

    Held to the end of the transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


@dataclass(slots=True)
class Overrides:
    """All overrides while a document is imported."""

    by_row: Mapping[tuple[str, str], list[LocalOverride]]
    moved: list[LocalOverride] = field(default_factory=list)

    @classmethod
    def load(cls) -> Overrides:
        """Read and lock them."""
        by_row: dict[tuple[str, str], list[LocalOverride]] = defaultdict(list)
        for override in LocalOverride.objects.select_for_update().order_by("id"):
            by_row[override.kind, override.name].append(override)
        return cls(by_row)

    def over(self, kind: Kind, name: str, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a document says of a row, under the overrides of that row; they note what it says of them."""
        mine = self.by_row.get((kind, name))
        if not mine:
            return columns
        for override in mine:
            value = value_in(kind, override.attribute, columns)
            spoken_of = override.attribute if in_column(kind, override.attribute) else "attributes"
            if spoken_of in columns and value != override.beneath:
                override.beneath = value
                self.moved.append(override)
        return laid_over(kind, columns, {o.attribute: _value(o) for o in mine})

    def save(self) -> None:
        """Keep what they noted."""
        LocalOverride.objects.bulk_update(self.moved, ["beneath"])


def _value(override: LocalOverride) -> Any:
    try:
        return read_override(override.kind, override.attribute, override.value)  # type: ignore[arg-type]
    except BadGrid:  # of an attribute that has other rules since
        return None


def set_override(override: LocalOverride) -> None:
    """Save a new or changed override that keeps the rules, and bring its row to it."""
    with transaction.atomic():
        take_turns()
        row: Any = MODELS[override.kind]._default_manager.select_for_update().get(name=override.name)
        old = LocalOverride.objects.select_for_update().filter(pk=override.pk).first()
        if old is None:
            override.beneath = value_in(override.kind, override.attribute, vars(row))  # type: ignore[arg-type]
        override.save()
        _write(override, row, _value(override))
        if override.until is not None:
            look_after_commit("refresh")  # it asks for its next run when the nearest end is


def change_overrides(
    caller: Principal, kind: Kind, name: str, values: Mapping[str, str | None], reason: str, until: datetime | None
) -> None:
    """Set the overrides with a text and end those with None, of one row; what is so already is left alone. Audits each.

    The values must keep the rules. LookupError where there is no such row.
    """
    with transaction.atomic():
        take_turns()
        if not MODELS[kind]._default_manager.filter(name=name).exists():
            raise LookupError(f"there is no {kind} {name}")
        there = {override.attribute: override for override in LocalOverride.objects.filter(kind=kind, name=name)}
        for attribute, value in sorted(values.items()):
            override = there.get(attribute)
            before = None if override is None else _plain(override)
            if value is None:
                if override is not None:
                    _note("delete", caller, override, reason, before, None)
                    end_override(override)
                continue
            override = override or LocalOverride(kind=kind, name=name, attribute=attribute)
            override.value, override.reason, override.until = value, reason, until
            if before != _plain(override):
                override.who = caller.name[:150]
                set_override(override)
                _note("add" if before is None else "change", caller, override, reason, before, _plain(override))


def _plain(override: LocalOverride) -> dict[str, str]:
    """What somebody says of it, as JSON."""
    return {"value": override.value, "reason": override.reason, "until": str(override.until or "")}


def _note(verb: str, caller: Principal, override: LocalOverride, reason: str, before: Any, after: Any) -> None:
    what = f"localoverride {override.pk} {override}"
    audit(f"localoverride.{verb}", caller, what, reason=reason, before=before, after=after)


def end_override(override: LocalOverride) -> None:
    """Remove an override, unless somebody has: what the document says holds again."""
    with transaction.atomic():
        take_turns()
        if (locked := LocalOverride.objects.select_for_update().filter(pk=override.pk).first()) is not None:
            _end(locked)


def end_expired(now: datetime) -> int:
    """Remove the overrides whose time is over: how many."""
    ended = 0
    for pk in LocalOverride.objects.filter(until__lte=now).order_by("id").values_list("pk", flat=True):
        with transaction.atomic():
            take_turns()
            # Looked at again: another run may have ended it meanwhile, or an operator may have given it more time.
            override = LocalOverride.objects.select_for_update().filter(pk=pk, until__lte=now).first()
            if override is None:
                continue
            before = {"value": override.value, "until": str(override.until)}
            what = f"localoverride {override.pk} {override}"
            audit("localoverride.expire", SYSTEM, what, reason=override.reason, before=before)
            _end(override)
        ended += 1
    return ended


def nearest_end() -> datetime | None:
    """When the next override ends by itself."""
    return LocalOverride.objects.aggregate(nearest=Min("until"))["nearest"]


def _end(override: LocalOverride) -> None:
    row = MODELS[override.kind]._default_manager.select_for_update().filter(name=override.name).first()
    if row is not None:
        _write(override, row, override.beneath)
    override.delete()


def _write(override: LocalOverride, row: Any, value: Any) -> None:
    """Give the row one value: of its column, or among its attributes."""
    kind: Any = override.kind
    before = {name: getattr(row, name) for name in (override.attribute, "attributes") if hasattr(row, name)}
    for name, laid in laid_over(kind, before, {override.attribute: value}).items():
        setattr(row, name, laid)
    times: list[str] = []
    if override.kind == "queue":
        times = ["modified_at"]
        row.modified_at = Now()
        if override.attribute == "status" and row.status != before["status"]:
            times.append("status_since")
            row.status_since = Now()
    if override.kind == "site" and override.attribute == "state" and row.state != before["state"]:
        times.append("state_since")
        row.state_since = Now()
    row.save(update_fields=[*before, *times])
    grid_changed()
