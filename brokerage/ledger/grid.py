"""The grid brought to what a document or feed says, in one transaction: what is new, what changed, what is gone.

Queues that their document or feed no longer has become offline, sites and storage endpoints INACTIVE: nothing is deleted, since
jobs refer to them. Operators' overrides stay and win. Not here: links, slots and software (`grid_facts`), the overrides
(`grid_overrides`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import models, transaction
from django.db.models.functions import Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.kernel.verdict import Problem
from brokerage.ledger.grid_facts import Change, What, bring_facts, set_columns
from brokerage.ledger.grid_overrides import MODELS, Overrides, take_turns
from brokerage.ledger.waits import grid_changed
from brokerage.models import ComputingQueue, QueueStorage, Site
from brokerage.rules.grid.attributes import BadGrid
from brokerage.rules.grid.document import Entry, QueueEntry
from brokerage.rules.grid.overrides import Kind
from brokerage.rules.grid.update import GridUpdate

GONE: Mapping[Kind, Mapping[str, Any]] = {
    "site": {"state": "INACTIVE"},
    "storage": {"state": "INACTIVE"},
    "queue": {"status": "offline"},
}
"""What becomes of a row that its document or feed no longer has."""
MEASURED_ALWAYS = "link"
"""What a feed changes with every reading, which the audit need not tell."""


def import_grid(wanted: GridUpdate, *, source: str = "", max_loss: float | None = None) -> list[Change]:
    """Write what is wanted and tell what changed.

    source: the feed that says it, empty for a document; what the same source described before and does not now is gone.
    max_loss: the part of those rows that may be gone at once; raises BadGrid (rule loss) when there are more.
    Running it again changes nothing.
    """
    with transaction.atomic():
        take_turns()
        importing = _Import(source, max_loss, Overrides.load(), wanted)
        changes = [*importing.places(), *bring_facts(wanted)]
        counts = Counter(f"{c.kind} {c.what}" for c in changes if not (source and c.kind == MEASURED_ALWAYS))
        if counts:
            grid_changed()
            audit("grid.import", SYSTEM, f"grid {source}".strip(), after=dict(counts))
    return changes


class _Import:
    def __init__(self, source: str, max_loss: float | None, overrides: Overrides, wanted: GridUpdate) -> None:
        self.source, self.max_loss, self.overrides, self.wanted = source, max_loss, overrides, wanted

    def places(self) -> list[Change]:
        wanted, changes = self.wanted, []
        if wanted.sites is not None:
            changes += self._sites(wanted.sites)
        if wanted.storages is not None:
            changes += self._bring("storage", [_with_site(entry) for entry in wanted.storages])
        if wanted.queues is not None:
            changes += self._queues(wanted.queues)
        self.overrides.save()
        return changes

    def _sites(self, sites: Sequence[Entry]) -> list[Change]:
        changes = self._bring("site", sites)
        switched = [change.name for change in changes if "state" in change.fields]
        Site.objects.filter(name__in=switched).update(state_since=Now())
        return changes

    def _queues(self, queues: Sequence[QueueEntry]) -> list[Change]:
        changes = {c.name: c for c in self._bring("queue", [_with_site(queue) for queue in queues])}
        for name, fields in _links(queues).items():
            change = changes.get(name)
            if change is None:
                changes[name] = Change("queue", name, "changed", fields)
            elif change.what == "changed":
                changes[name] = Change("queue", name, "changed", {**change.fields, **fields})
        ComputingQueue.objects.filter(name__in=list(changes)).update(modified_at=Now())
        switched = [name for name, change in changes.items() if "status" in change.fields]
        ComputingQueue.objects.filter(name__in=switched).update(status_since=Now())
        return list(changes.values())

    def _bring(self, kind: Kind, wanted: Sequence[Entry]) -> list[Change]:
        """Insert, update, and mark the rows of this source that nobody wants any more."""
        manager = MODELS[kind]._default_manager
        rows: dict[str, Any] = {row.name: row for row in manager.select_for_update().order_by("name")}  # type: ignore[attr-defined]
        names, faulty = {entry.name for entry in wanted}, self.wanted.faulty.get(kind, {})
        mine = [name for name, row in rows.items() if row.source == self.source and row.gone_at is None]
        gone = [name for name in mine if name not in names and name not in faulty]
        if self.max_loss is not None and len(gone) > self.max_loss * len(mine):
            loss = f"{len(gone)} of {len(mine)} {kind} entries would be gone at once, more than {self.max_loss:.0%}"
            raise BadGrid([Problem("", "loss", f"{loss}: {', '.join(sorted(gone)[:5])}{', ...' if len(gone) > 5 else ''}")])
        laid = [Entry(entry.name, self.overrides.over(kind, entry.name, entry.columns)) for entry in wanted]
        new = [entry for entry in laid if entry.name not in rows]
        manager.bulk_create([MODELS[kind](name=entry.name, source=self.source, **entry.columns) for entry in new])
        changes = [Change(kind, entry.name, "added") for entry in new]
        changes += _changes(kind, rows, [(entry, "changed") for entry in laid if entry.name in rows])
        ended = [Entry(name, self.overrides.over(kind, name, GONE[kind])) for name in gone]
        changes += _changes(kind, rows, [(entry, "gone") for entry in ended])
        if columns := sorted({column for change in changes for column in change.fields}):
            manager.bulk_update([rows[c.name] for c in changes if c.fields], columns, batch_size=500)
        manager.filter(name__in=gone).update(gone_at=Now())
        self._note(manager, names, faulty)
        return changes

    def _note(self, manager: models.Manager[Any], names: set[str], faulty: Mapping[str, str]) -> None:
        """Whose the rows are now, and which of them are faulty; rows that nothing happened to are not written."""
        back = manager.filter(name__in=names)
        back.exclude(source=self.source, gone_at=None, fault="").update(
            source=self.source, gone_at=None, fault="", fault_since=None
        )
        if self.source:
            back.update(good_at=Now())
        rows = manager.filter(name__in=list(faulty)).only("name", "fault", "fault_since")
        worse = [row for row in rows if row.fault != faulty[row.name]]
        for row in worse:
            row.fault = faulty[row.name]
            row.fault_since = row.fault_since or Now()
        manager.bulk_update(worse, ["fault", "fault_since"], batch_size=500)


def _with_site(entry: Entry) -> Entry:
    """The reference to the site under the name of its column."""
    return Entry(entry.name, {"site_id": entry.columns["site"]} | {k: v for k, v in entry.columns.items() if k != "site"})


def _changes(kind: Kind, rows: Mapping[str, Any], wanted: Sequence[tuple[Entry, What]]) -> list[Change]:
    """Set what each row should be, and tell the rows that differed."""
    changes = []
    for entry, what in wanted:
        row = rows[entry.name]
        if fields := set_columns(row, entry.columns):
            changes.append(Change(kind, entry.name, what, fields))
    return changes


def _links(queues: Sequence[QueueEntry]) -> dict[str, dict[str, tuple[Any, Any]]]:
    """The storage endpoints of each queue replaced where they differ: queue to its changes by access."""
    ids = dict(ComputingQueue.objects.values_list("name", "id"))
    before: dict[str, list[tuple[str, str, int]]] = {}
    names = {id_: name for name, id_ in ids.items()}
    for queue, access, storage, position in QueueStorage.objects.order_by("access", "position", "id").values_list(
        "queue_id", "access", "storage_id", "position"
    ):
        before.setdefault(names[queue], []).append((access, storage, position))
    wanted = {queue.name: sorted(queue.storages, key=lambda s: (s[0], s[2])) for queue in queues}
    differing = {name: new for name, new in wanted.items() if before.get(name, []) != new}
    QueueStorage.objects.filter(queue__name__in=list(differing)).delete()
    QueueStorage.objects.bulk_create(
        QueueStorage(queue_id=ids[name], access=a, storage_id=s, position=p) for name, new in differing.items() for a, s, p in new
    )
    changes: dict[str, dict[str, tuple[Any, Any]]] = {name: {} for name in differing}
    for name, new in differing.items():
        old = before.get(name, [])
        for access in sorted({access for access, _, _ in (*old, *new)}):
            storages_before, storages_after = ([storage for a, storage, _ in links if a == access] for links in (old, new))
            if storages_before != storages_after:
                changes[name][access] = (storages_before, storages_after)
    return changes
