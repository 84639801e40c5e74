"""The grid brought to what a grid document says, in one transaction: what is new, what changed, what is gone.

Queues that the document no longer has become offline, sites and storage endpoints INACTIVE: nothing is deleted, jobs refer to
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db import connection, models, transaction
from django.db.models.functions import Now

from broker_site.access.auditing import audit
from broker_site.access.principal import SYSTEM, Principal
from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint
from brokerage.rules.grid_document import Entry, Grid

LOCK = 0x6772_6964
"""Key of the advisory lock under which one import at a time works."""

What = Literal["added", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class Change:
    """One row that the import adds or changes. `fields`: column to (before, after)."""

    kind: Literal["site", "storage", "queue"]
    name: str
    what: What
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def import_grid(grid: Grid, *, dry_run: bool = False, by: Principal = SYSTEM) -> list[Change]:
    """Write the grid and tell what changed; with `dry_run` everything is tried and rolled back.

    Running it again changes nothing.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        changes = [
            *_bring("site", Site, grid.sites, {"state": "INACTIVE"}),
            *_bring("storage", StorageEndpoint, [_with_site(s) for s in grid.storages], {"state": "INACTIVE"}),
            *_queues(grid),
        ]
        if changes:
            counts = {f"{c.kind} {c.what}": sum((x.kind, x.what) == (c.kind, c.what) for x in changes) for c in changes}
            audit("grid.import", by, "grid", after=counts)
        if dry_run:
            transaction.set_rollback(True)
    return changes


def _with_site(entry: Entry) -> Entry:
    """The reference to the site under the name of its column."""
    return Entry(entry.name, {"site_id": entry.columns["site"]} | {k: v for k, v in entry.columns.items() if k != "site"})


def _queues(grid: Grid) -> list[Change]:
    changes = {c.name: c for c in _bring("queue", ComputingQueue, [_with_site(q) for q in grid.queues], {"status": "offline"})}
    links = _links(grid)
    for name, fields in links.items():
        known = changes.get(name)
        if known is None:
            changes[name] = Change("queue", name, "changed", fields)
        elif known.what == "changed":
            changes[name] = Change("queue", name, "changed", {**known.fields, **fields})
    touched = [c.name for c in changes.values()]
    ComputingQueue.objects.filter(name__in=touched).update(modified_at=Now())
    return list(changes.values())


def _bring(
    kind: Literal["site", "storage", "queue"], model: type[models.Model], wanted: Sequence[Entry], gone: Mapping[str, Any]
) -> list[Change]:
    """Insert, update, and set `gone` on the rows that nobody wants any more."""
    manager = model._default_manager
    rows: dict[str, Any] = {row.name: row for row in manager.select_for_update().order_by("name")}  # type: ignore[attr-defined]
    new = [entry for entry in wanted if entry.name not in rows]
    manager.bulk_create([model(name=entry.name, **entry.columns) for entry in new])
    changes = [Change(kind, entry.name, "added") for entry in new]
    for entry, what in _compared(wanted, rows, gone):
        row = rows[entry.name]
        fields = {c: (getattr(row, c), value) for c, value in entry.columns.items() if getattr(row, c) != value}
        for column, (_, value) in fields.items():
            setattr(row, column, value)
        if fields:
            changes.append(Change(kind, entry.name, what, fields))
    if columns := sorted({column for change in changes for column in change.fields}):
        manager.bulk_update([rows[c.name] for c in changes if c.fields], columns, batch_size=500)
    return changes


def _compared(wanted: Sequence[Entry], rows: Collection[str], gone: Mapping[str, Any]) -> Iterator[tuple[Entry, What]]:
    """What each row that is there should be."""
    names = {entry.name for entry in wanted}
    yield from ((entry, "changed") for entry in wanted if entry.name in rows)
    yield from ((Entry(name, gone), "gone") for name in rows if name not in names)


def _links(grid: Grid) -> dict[str, dict[str, tuple[Any, Any]]]:
    """The storage endpoints of each queue replaced where they differ: queue to its changes by access."""
    ids = dict(ComputingQueue.objects.values_list("name", "id"))
    before: dict[str, list[tuple[str, str, int]]] = {}
    names = {id_: name for name, id_ in ids.items()}
    for queue, access, storage, position in QueueStorage.objects.order_by("access", "position", "id").values_list(
        "queue_id", "access", "storage_id", "position"
    ):
        before.setdefault(names[queue], []).append((access, storage, position))
    changes: dict[str, dict[str, tuple[Any, Any]]] = {}
    for queue_entry in grid.queues:
        old, new = before.get(queue_entry.name, []), sorted(queue_entry.storages, key=lambda s: (s[0], s[2]))
        if old == new:
            continue
        changes[queue_entry.name] = {
            access: (_of(old, access), _of(new, access)) for access in sorted({a for a, _, _ in old} | {a for a, _, _ in new})
            if _of(old, access) != _of(new, access)
        }  # fmt: skip
        QueueStorage.objects.filter(queue_id=ids[queue_entry.name]).delete()
        QueueStorage.objects.bulk_create(
            QueueStorage(queue_id=ids[queue_entry.name], access=a, storage_id=s, position=p) for a, s, p in new
        )
    return changes


def _of(links: Sequence[tuple[str, str, int]], access: str) -> list[str]:
    return [storage for a, storage, _ in links if a == access]
