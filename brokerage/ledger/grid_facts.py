"""Links, declared slots, what is measured, and software brought to what a document or feed says; called by the import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db.models import Model

from brokerage.models import ComputingQueue, DeclaredSlots, Link, Measured, Software
from brokerage.rules.grid.measurements import WINDOWS
from brokerage.rules.grid.update import GridUpdate

What = Literal["added", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class Change:
    """One row. `kind`: site, storage, queue, link, slots, measured or software; `fields`: column to (before, after)."""

    kind: str
    name: str
    what: What
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


OLDEST = timedelta(days=7)
"""How long metrics of links are kept."""

Key = tuple[Any, ...]
Rows = Mapping[Key, Mapping[str, Any]]


def bring_facts(wanted: GridUpdate) -> list[Change]:
    """Write the parts that are wanted; what a part does not speak of is removed, unless it is `merged`."""
    changes: list[Change] = []
    if wanted.links is not None:
        rows: Rows = {(e["from"], e["to"], e["activity"]): _link(e) for e in wanted.links}
        keys = ("source_id", "destination_id", "activity")
        changes += _bring("link", Link, keys, rows, "{0} to {1}: {2}".format, keep=wanted.merged)
    if wanted.slots is not None or wanted.measured is not None:
        ids = dict(ComputingQueue.objects.values_list("name", "id"))
        names = {id_: name for name, id_ in ids.items()}
        if wanted.slots is not None:
            rows = {
                (ids[e["queue"]], e["share"] or "", e["resource_type"] or ""): {"n": e["n"], "expires": e["expires"]}
                for e in wanted.slots
            }
            keys = ("queue_id", "share", "resource_type")
            changes += _bring("slots", DeclaredSlots, keys, rows, lambda q, s, t: f"{names[q]} {s}/{t}", keep=wanted.merged)
        if wanted.measured is not None:
            rows = {
                (ids[e["queue"]],): {"disk_io_per_core": e["disk_io_per_core"], "starts_per_hour": e["starts_per_hour"] or None}
                for e in wanted.measured
            }
            changes += _bring("measured", Measured, ("queue_id",), rows, lambda q: names[q], keep=wanted.merged)
    if wanted.software is not None:
        rows = {(queue,): {"document": dict(published)} for queue, published in wanted.software.items()}
        changes += _bring("software", Software, ("queue",), rows, str, keep=wanted.merged)
    return changes


def _link(entry: Mapping[str, Any]) -> dict[str, Any]:
    mbps = entry["mbps"] or {}
    return {
        "files_queued": entry["files_queued"],
        **{f"mbps_{window}": mbps.get(window) for window in WINDOWS},
        "closeness": entry["closeness"],
        "measured_at": entry["at"],
    }


def _bring(kind: str, model: type[Model], keys: Key, wanted: Rows, named: Callable[..., str], *, keep: bool) -> list[Change]:
    """Insert, update and remove rows of one table; `keys` are the columns that name a row."""
    manager = model._default_manager
    rows = {tuple(getattr(row, key) for key in keys): row for row in manager.select_for_update().order_by(*keys)}
    changes, changed = [], []
    for key, columns in wanted.items():
        if (row := rows.get(key)) is None:
            changes.append(Change(kind, named(*key), "added"))
            continue
        if fields := set_columns(row, columns):
            changes.append(Change(kind, named(*key), "changed", fields))
            changed.append(row)
    new = [model(**dict(zip(keys, key, strict=True)), **columns) for key, columns in wanted.items() if key not in rows]
    manager.bulk_create(new, batch_size=1000)
    if changed:
        manager.bulk_update(changed, list(next(iter(wanted.values()))), batch_size=500)
    gone = [] if keep else [key for key in rows if key not in wanted]
    manager.filter(pk__in=[rows[key].pk for key in gone]).delete()
    return [*changes, *(Change(kind, named(*key), "gone") for key in gone)]


def set_columns(row: Model, columns: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Set what differs, without saving: column to (before, after)."""
    fields = {c: (getattr(row, c), value) for c, value in columns.items() if getattr(row, c) != value}
    for column, (_, value) in fields.items():
        setattr(row, column, value)
    return fields


def drop_old_links(now: datetime) -> int:
    """Remove metrics that no window reaches any more: how many."""
    gone, _ = Link.objects.filter(measured_at__lt=now - OLDEST).delete()
    return gone
