"""A snapshot as bytes: that of a cycle, what a decision knew beyond it, and the grid document of both.

The grid and its links change seldom and are kept apart from what is true of one moment, so that they need not be stored again.
Every part is columns of JSON; what is read is equal to what was written, so a decision on it gives the same bytes
(decision B16). Not here: storing them (`brokerage.ledger.decisions`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from brokerage.rules.grid.document import FORMAT, Entry, Grid, QueueEntry, without_ours
from brokerage.rules.grid.measurements import Facts
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.states import JOB

VERSION = 1
"""Of the form of the bytes; a reader refuses any other."""

TIMES = frozenset({"at", "last_start", "waiting_since", "expires"})
MOMENT = ("jobs", "pilots", "slots", "workers", "measured", "users", "work")
"""Parts that change from cycle to cycle."""

Entries = Sequence[Mapping[str, Any]]


class BadSnapshot(ValueError):
    """Bytes that are no snapshot of this form."""


@dataclass(frozen=True, slots=True)
class PackedSnapshot:
    """A snapshot in three parts, each JSON, not compressed yet."""

    grid: bytes
    links: bytes
    moment: bytes


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What a decision knew beyond the snapshot of its cycle.

    Where the input of its task is, how jobs of the task ended lately; for the choice of a nucleus the queues there that could run
    the jobs, and the work that tasks decided before it in the cycle brought to nuclei.
    """

    replicas: tuple[Mapping[str, Any], ...] = ()
    ended: tuple[Mapping[str, Any], ...] = ()
    able_queues: Mapping[str, int] | None = None
    added: tuple[Mapping[str, Any], ...] = ()

    def to_bytes(self) -> bytes:
        """Compressed; empty where there is nothing."""
        if self == TaskFacts():
            return b""
        parts = {"replicas": _columns(self.replicas), "ended": _columns(self.ended), "added": _columns(self.added)}
        return compressed(_json(parts | {"able_queues": self.able_queues}))

    @classmethod
    def from_bytes(cls, packed: bytes) -> TaskFacts:
        """Read it. Raises BadSnapshot."""
        if not packed:
            return cls()
        read = _read(packed)
        return cls(_entries(read["replicas"]), _entries(read["ended"]), read["able_queues"], _entries(read["added"]))


def packed(snapshot: GridSnapshot) -> PackedSnapshot:
    """The parts of a snapshot, without what belongs to single tasks."""
    grid, facts = snapshot.grid, snapshot.facts
    running = [job for job in facts.jobs if job["status"] in JOB.live]
    moment = {part: _columns(running if part == "jobs" else getattr(facts, part)) for part in MOMENT}
    return PackedSnapshot(
        _json(
            {
                "sites": [[site.name, site.columns] for site in grid.sites],
                "storages": [[storage.name, storage.columns] for storage in grid.storages],
                "queues": [[queue.name, queue.columns, queue.storages] for queue in grid.queues],
                "software": facts.software or {},
            }
        ),
        _json({"links": _columns(facts.links)}),
        _json({"version": VERSION, "now": snapshot.now.isoformat(), "total_rw": facts.total_rw or {}} | moment),
    )


def compressed(part: bytes) -> bytes:
    """As it is stored."""
    return zlib.compress(part, 6)


def unpacked(grid: bytes, links: bytes, moment: bytes) -> GridSnapshot:
    """The snapshot of three compressed parts. Raises BadSnapshot."""
    of_grid, of_links, of_moment = _read(grid), _read(links), _read(moment)
    try:
        if of_moment["version"] != VERSION:
            raise BadSnapshot("a snapshot of another form")
        facts = Facts(
            now=None,
            links=_entries(of_links["links"]),
            software=of_grid["software"],
            total_rw=of_moment["total_rw"],
            **{part: _entries(of_moment[part]) for part in MOMENT},
        )
        grid_read = Grid(
            tuple(Entry(*entry) for entry in of_grid["sites"]),
            tuple(Entry(*entry) for entry in of_grid["storages"]),
            tuple(QueueEntry(name, columns, tuple(map(tuple, roles))) for name, columns, roles in of_grid["queues"]),
        )
        return GridSnapshot(grid_read, facts, datetime.fromisoformat(of_moment["now"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadSnapshot(f"a damaged snapshot: {error}") from error


def document(snapshot: GridSnapshot) -> dict[str, Any]:
    """The grid document of a snapshot, as `manage.py decide` reads it."""
    grid, facts = snapshot.grid, snapshot.facts
    work = facts.total_rw or {}
    members = {
        "format": FORMAT,
        "now": snapshot.now.isoformat(),
        "sites": {site.name: _flat(site) | _total(work, site.name) for site in grid.sites},
        "storages": {storage.name: _flat(storage) for storage in grid.storages},
        "queues": {queue.name: _queue(queue) for queue in grid.queues},
        "software": facts.software or {},
    }
    parts = {part: [_plain(entry) for entry in getattr(facts, part)] for part in ("links", *MOMENT, "replicas")}
    return members | {part: entries for part, entries in parts.items() if entries}


def for_everybody(snapshot: GridSnapshot) -> GridSnapshot:
    """What anybody may see: without jobs, users and work, which belong to VOs, and without directories."""
    grid = snapshot.grid
    shown = replace(
        grid,
        storages=tuple(without_ours(storage) for storage in grid.storages),
        queues=tuple(without_ours(queue) for queue in grid.queues),
    )
    facts = replace(snapshot.facts, jobs=(), users=(), work=(), total_rw=None)
    return GridSnapshot(shown, facts, snapshot.now, snapshot.scope)


def with_task_facts(snapshot: GridSnapshot, task_facts: TaskFacts) -> GridSnapshot:
    """The snapshot as the decision knew it, for a document; what was added to a nucleus counts as its work."""
    whole = snapshot.knowing(task_facts.replicas, task_facts.ended)
    total = dict(whole.facts.total_rw or {})
    for entry in task_facts.added:
        total[entry["nucleus"]] = total.get(entry["nucleus"], 0.0) + entry["rw"]
    facts = replace(whole.facts, total_rw=total, work=(*whole.facts.work, *task_facts.added))
    return GridSnapshot(whole.grid, facts, whole.now, whole.scope)


def _flat(entry: Entry) -> dict[str, Any]:
    columns = {name: value for name, value in entry.columns.items() if name != "attributes"}
    return {**(entry.columns.get("attributes") or {}), **columns}


def _total(work: Mapping[str, float], site: str) -> dict[str, float]:
    return {"total_rw": work[site]} if site in work else {}


def _queue(queue: QueueEntry) -> dict[str, Any]:
    members = _flat(queue)
    roles: dict[str, Any] = dict(members.get("astorages") or {})
    for access, storage, _ in sorted(queue.storages, key=lambda role: (role[0], role[2])):
        roles.setdefault(access, []).append(storage)
    site = members.pop("site")
    return members | {"atlas_site": site, "astorages": roles}


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in entry.items() if value is not None}


def _value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _columns(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Entries of equal members as one list for each member; one value where all are equal."""
    rows = list(entries)
    part: dict[str, Any] = {"rows": len(rows), "columns": {}}
    for name in rows[0] if rows else ():
        values = [_value(row[name]) for row in rows]
        alike = all(value == values[0] and type(value) is type(values[0]) for value in values)
        part["columns"][name] = {"all": values[0]} if alike else values
    return part


def _entries(read: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    count, columns = read["rows"], read["columns"]
    values = [[column["all"]] * count if isinstance(column, dict) else column for column in columns.values()]
    times = [place for place, name in enumerate(columns) if name in TIMES]
    for place in times:
        values[place] = [value and datetime.fromisoformat(value) for value in values[place]]
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def _json(part: Mapping[str, Any]) -> bytes:
    return json.dumps(part, separators=(",", ":"), sort_keys=True).encode()


def _read(packed: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(packed))
    except (zlib.error, ValueError) as error:
        raise BadSnapshot(f"a damaged snapshot: {error}") from error
