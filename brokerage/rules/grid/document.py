"""Our own grid document (format gridbroker-grid/1).

From JSON to what the grid tables hold, or to everything that is wrong with it.

Pure. Here: the document as a whole, its sites, storages and queues and the references between them. Not here: attributes one by
one (`grid_attributes`), what it says of the moment (`grid_facts`), reading the file (`brokerage.feeds.grid_document`), writing
the tables (`brokerage.ledger.grid`). One fault refuses the whole document (decision B15).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from broker_site.foundation.kernel.registry import nearest
from brokerage.rules.grid.attributes import (
    ACCESS_STATES,
    ACCESSES,
    FURTHER,
    QUEUE,
    ROLE,
    SITE,
    STORAGE,
    name_fault,
)
from brokerage.rules.grid.reading import BadGrid, Reading, read_columns, unknown
from workqueues.rules.refine.characters import check_characters
from workqueues.rules.task_parameters import found, problem

__all__ = ["FORMAT", "BadGrid", "Entry", "Grid", "QueueEntry", "read_grid"]

FORMAT = "gridbroker-grid/1"

FROM_THE_DATABASE = ("jobs", "pilots", "workers", "replicas", "users", "work")
"""Parts that a single decision without a database needs; here the database knows them."""
STORED = ("links", "slots", "measured", "software")
"""Parts that are optional, and stored where they are there; what they say is read by `grid_facts`."""
PARTS = ("format", "now", "sites", "storages", "queues", *STORED, *FROM_THE_DATABASE)
NOT_OF_A_SITE = ("total_rw",)
"""Attributes of a site for a decision without a database."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One site, storage endpoint or queue: its name and its columns by name."""

    name: str
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueueEntry(Entry):
    """A queue; `storages` are (access, storage endpoint, position from 1)."""

    storages: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """A document as read. `notes` say what it has that is not used."""

    sites: tuple[Entry, ...]
    storages: tuple[Entry, ...]
    queues: tuple[QueueEntry, ...]
    notes: tuple[str, ...] = ()


def read_grid(document: object) -> Grid:
    """Read a document.

    Raises BadGrid; rules: format, required, type, range, choice, length, name, reference, unknown, characters.
    """
    if not isinstance(document, Mapping):
        raise BadGrid([problem("", "type", f"expected an object, found {found(document)}")])
    reading = Reading(problems=check_characters(document))
    reading.end()
    _head(document, reading)
    sites = [read_site(name, raw, reading) for name, raw in _part(document, "sites", reading)]
    storages = [read_storage(name, raw, reading) for name, raw in _part(document, "storages", reading)]
    queues = [read_queue(name, raw, reading) for name, raw in _part(document, "queues", reading)]
    _references(sites, storages, queues, reading)
    reading.end()
    return Grid(tuple(sites), tuple(storages), tuple(queues), tuple(reading.notes))


def _head(document: Mapping[str, Any], reading: Reading) -> None:
    if (given := document.get("format")) != FORMAT:
        reading.fault("format", "required" if given is None else "format", f"expected {FORMAT!r}, found {found(given)}")
    for name in document:
        if name not in PARTS:
            near = nearest(str(name), PARTS)
            reading.fault(str(name)[:100], "unknown", "unknown part" + (f"; the nearest known one is {near}" if near else ""))
    for name in ("sites", "queues"):
        if name not in document:
            reading.fault(name, "required", "the document must have this part, even if it is empty")
    reading.notes += [f"{name}: not used, the database knows them" for name in FROM_THE_DATABASE if document.get(name)]


def _part(document: Mapping[str, Any], part: str, reading: Reading) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The entries of a part that can be looked into."""
    entries = document.get(part, {})
    if not isinstance(entries, Mapping):
        reading.fault(part, "type", f"expected an object with one member for each name, found {found(entries)}")
        return
    for name, raw in entries.items():
        if fault := name_fault(name):
            reading.fault(f"{part}.{name[:100]}", "name", fault)
        if isinstance(raw, Mapping):
            yield name, raw
        else:
            reading.fault(f"{part}.{name[:100]}", "type", f"expected an object, found {found(raw)}")


def read_site(name: str, raw: Mapping[str, Any], reading: Reading) -> Entry:
    """One site."""
    path = f"sites.{name}"
    columns = read_columns(SITE, raw, path, reading)
    columns["attributes"] = unknown(SITE, {k: v for k, v in raw.items() if k not in NOT_OF_A_SITE}, path, reading)
    return Entry(name, columns)


def read_storage(name: str, raw: Mapping[str, Any], reading: Reading) -> Entry:
    """One storage endpoint."""
    path = f"storages.{name}"
    columns = read_columns(STORAGE, raw, path, reading)
    for place, rule, message in status_faults(columns["status"] or {}):
        reading.fault(f"{path}.status.{place}", rule, message)
    if ".." in str(columns["path"]).split("/"):
        reading.fault(f"{path}.path", "format", "expected a directory without '..'")
    columns["attributes"] = unknown(STORAGE, raw, path, reading)
    return Entry(name, columns)


def status_faults(status: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    """What is wrong with the states of a storage endpoint: access, rule, message."""
    for access, state in status.items():
        if access not in ACCESSES:
            yield access, "unknown", f"expected one of {', '.join(ACCESSES)}"
        elif state not in ACCESS_STATES:
            yield access, "choice", f"expected {', '.join(ACCESS_STATES)}, found {found(state)}"


def read_queue(name: str, raw: Mapping[str, Any], reading: Reading) -> QueueEntry:
    """One queue."""
    path = f"queues.{name}"
    if raw.get("nickname") not in (None, "", name):
        reading.fault(f"{path}.nickname", "name", f"expected the name of the member, {name}, found {found(raw['nickname'])}")
    columns = read_columns(QUEUE, raw, path, reading)
    site = raw.get("atlas_site")
    if not isinstance(site, str) or not site:
        rule = "required" if site in (None, "") else "type"
        reading.fault(f"{path}.atlas_site", rule, "the site of the processors")
    columns["site"] = site
    further = read_columns(FURTHER, raw, path, reading)
    storages, other_roles = _roles(raw.get("astorages"), f"{path}.astorages", reading)
    kept = {k: v for k, v in raw.items() if k not in QUEUE and k not in ("nickname", "atlas_site", "astorages")}
    columns["attributes"] = kept | {k: v for k, v in further.items() if k in kept and v is not None}
    if other_roles:
        columns["attributes"]["astorages"] = other_roles
    return QueueEntry(name, columns, storages)


def _roles(raw: object, path: str, reading: Reading) -> tuple[tuple[tuple[str, str, int], ...], dict[str, Any]]:
    """The endpoints of each role that is used, and the other roles as they came."""
    if raw is None:
        return (), {}
    if not isinstance(raw, Mapping):
        reading.fault(path, "type", f"expected an object with one list for each role, found {found(raw)}")
        return (), {}
    links: list[tuple[str, str, int]] = []
    others: dict[str, Any] = {}
    for role, names in raw.items():
        if not re.fullmatch(ROLE, role) or len(role) > 32:
            reading.notes.append(f"{path}.{role}: a role that is not used; kept among the attributes")
            others[role] = names
        elif not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            reading.fault(f"{path}.{role}", "type", f"expected a list of storage endpoints, found {found(names)}")
        else:
            links += [(role, n, position) for position, n in enumerate(dict.fromkeys(names), 1)]
    return tuple(links), others


def _references(sites: list[Entry], storages: list[Entry], queues: list[QueueEntry], reading: Reading) -> None:
    known_sites, known_storages = {s.name for s in sites}, {s.name for s in storages}
    for storage in storages:
        site = storage.columns["site"]
        if site and site not in known_sites:
            reading.fault(f"storages.{storage.name}.site", "reference", f"the document has no site {found(site)}")
    for queue in queues:
        site = queue.columns["site"]
        if isinstance(site, str) and site and site not in known_sites:
            reading.fault(f"queues.{queue.name}.atlas_site", "reference", f"the document has no site {found(site)}")
        for access, name, position in queue.storages:
            if name not in known_storages:
                path = f"queues.{queue.name}.astorages.{access}[{position - 1}]"
                reading.fault(path, "reference", f"the document has no storage endpoint {found(name)}")
