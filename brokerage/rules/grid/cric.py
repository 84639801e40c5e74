"""CRIC's own documents: the dictionaries of sites, storage endpoints and queues, turned into what the grid tables shall hold.

Pure. A faulty entry is told, the others are taken (decision B15): numbers may be texts, missing and empty mean the default, names
that we do not know are kept among the attributes. Not here: releases and network documents (`cric_metrics`). Source: facts on
queues 5.1 to 5.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from brokerage.rules.grid.attributes import ACCESSES, FURTHER, QUEUE, name_fault
from brokerage.rules.grid.document import FORMAT, Entry, QueueEntry, read_queue, read_site, read_storage
from brokerage.rules.grid.reading import BadGrid, Reading
from brokerage.rules.grid.update import Wanted
from workqueues.rules.refine.characters import check_characters
from workqueues.rules.task_parameters import found, problem

GB = 1024**3 / 1e9
"""CRIC's unit of space in ours."""

NUCLEUS = "Nucleus"
"""The data policy that makes a site a nucleus."""

INPUT_MARGIN_MB, LEAST_WORK_MB = 2000, 16336
"""Work area of a queue whose own is unreadable: its largest input and this much, or that much without one (facts 5.1)."""

OURS = ("local_pilots",)
"""Attributes that only our own document may set: a feed starts no process and names no directory here."""

SIGNS: Mapping[str, tuple[str, ...]] = {
    "cric-sites": ("datapolicies", "presources", "ddmendpoints", "tier_level"),
    "cric-queues": ("atlas_site", "panda_resource", "nickname"),
    "cric-storages": ("token", "is_tape", "detailed_status"),
    "software": ("cmtconfigs", "containers", "cvmfs", "tags", "architectures"),
    "network": ("files", "mbps"),
}
"""Members by which the entries of a document are recognised."""

E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, slots=True)
class Known:
    """Names that are there already, which entries may refer to."""

    sites: Collection[str] = ()
    storages: Collection[str] = ()
    queues: Collection[str] = ()


def recognised(document: object) -> str:
    """The kind of a document: one of `Feed`, `grid` for our own; empty when it is none."""
    if isinstance(document, list) and document and all(isinstance(e, Mapping) and {"src", "dst"} <= e.keys() for e in document):
        return "closeness"
    if not isinstance(document, Mapping):
        return ""
    if str(document.get("format", "")) == FORMAT or {"sites", "queues"} <= document.keys():
        return "grid"
    entries = [entry for entry in document.values() if isinstance(entry, Mapping)]
    counts = {kind: sum(any(sign in entry for sign in signs) for entry in entries) for kind, signs in SIGNS.items()}
    best = max(counts, key=lambda kind: counts[kind])
    return best if counts[best] else ""


def storable(text: str) -> str:
    """A text from elsewhere as the store can keep it and a line can show it."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "?" for sign in text)


def check_shape(document: object) -> Mapping[str, Any]:
    """A dictionary that has something in it. Raises BadGrid; rules: type, empty, characters, depth."""
    if not isinstance(document, Mapping):
        raise BadGrid([problem("", "type", f"expected an object with one member for each name, found {found(document)}")])
    if not document:
        raise BadGrid([problem("", "empty", "the document has no entry")])
    return document


def read_sites(document: object) -> Wanted:
    """The dictionary of sites; data policy Nucleus makes a nucleus. Raises BadGrid."""
    entries, faulty = _each(document, "sites", lambda name, raw, reading: read_site(name, _site(raw), reading))
    return Wanted(sites=entries, faulty={"site": faulty})


def _site(raw: Mapping[str, Any]) -> dict[str, Any]:
    policies = raw.get("datapolicies") or ()
    policies = policies.split(",") if isinstance(policies, str) else policies
    return {**raw, "nucleus": NUCLEUS in [str(policy).strip() for policy in policies]}


def read_storages(document: object, known: Known) -> Wanted:
    """The dictionary of storage endpoints; space in GB of 1024^3 becomes GB. Raises BadGrid."""

    def read(name: str, raw: Mapping[str, Any], reading: Reading) -> Entry:
        entry = read_storage(name, _storage(raw, f"storages.{name}", reading), reading)
        site = entry.columns["site"]
        if site and site not in known.sites:
            reading.fault(f"storages.{name}.site", "reference", f"there is no site {found(site)}")
        return Entry(name, {column: value for column, value in entry.columns.items() if column != "path"})

    entries, faulty = _each(document, "storages", read)
    return Wanted(storages=entries, faulty={"storage": faulty})


def _storage(raw: Mapping[str, Any], path: str, reading: Reading) -> dict[str, Any]:
    made = {name: value for name, value in raw.items() if name not in ("status", "path", "detailed_status")}
    if isinstance(made.get("is_tape"), str):
        made["is_tape"] = made["is_tape"].strip().upper() in ("Y", "YES", "TRUE", "1")
    free, expired, used, total = (
        _number(raw.get(f"space_{what}"), f"{path}.space_{what}", reading) for what in ("free", "expired", "used", "total")
    )
    if free is None and total is not None and used is not None:
        free = max(total - used, 0.0)
    made["free_gb"] = None if free is None else free * GB
    made["expired_gb"] = None if expired is None else expired * GB
    status = raw.get("detailed_status") or {}
    made["status"] = (
        {k: str(v).upper() for k, v in status.items() if k in ACCESSES and v} if isinstance(status, Mapping) else status
    )
    return made


def _number(raw: object, path: str, reading: Reading) -> float | None:
    """A number that is not negative, also as text; None where there is none."""
    if raw in (None, ""):
        return None
    try:
        number = float(raw)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if isinstance(raw, bool) or not 0 <= number < 1e12:
        reading.fault(path, "type" if number != number else "range", f"expected a number from 0 on, found {found(raw)}")
        return None
    return number


def read_queues(document: object, known: Known) -> Wanted:
    """The dictionary of queues (schedconfig); the entry ALL is none. Raises BadGrid."""

    def read(name: str, raw: Mapping[str, Any], reading: Reading) -> QueueEntry:
        queue = read_queue(name, _queue(raw), reading)
        path = f"queues.{name}"
        site = queue.columns["site"]
        if isinstance(site, str) and site and site not in known.sites:
            reading.fault(f"{path}.atlas_site", "reference", f"there is no site {found(site)}")
        for access, storage, position in queue.storages:
            if storage not in known.storages:
                reading.fault(
                    f"{path}.astorages.{access}[{position - 1}]", "reference", f"there is no storage endpoint {found(storage)}"
                )
        return QueueEntry(name, {c: v for c, v in queue.columns.items() if c not in OURS}, queue.storages)

    entries, faulty = _each(document, "queues", read, skip=("ALL",))
    return Wanted(queues=entries, faulty={"queue": faulty})


def _queue(raw: Mapping[str, Any]) -> dict[str, Any]:
    """One queue with what CRIC writes in its own way: only JSON true switches on, an unreadable work area, lists as one text."""
    made = {name: value for name, value in raw.items() if name not in OURS}
    for name, parameter in FURTHER.items():
        if parameter.kind == "flag" and name in made:
            made[name] = made[name] is True
        elif parameter.kind == "texts" and isinstance(made.get(name), str):
            made[name] = [part for text in made[name].split(",") if (part := text.strip())]
        elif parameter.kind == "object" and made.get(name) in ("", []):
            made[name] = None
    for name, parameter in QUEUE.items():
        if parameter.kind == "int" and isinstance(made.get(name), float):
            made[name] = round(made[name])
    made["maxwdir"] = _work_area(made)
    return made


def _work_area(raw: Mapping[str, Any]) -> object:
    given = raw.get("maxwdir")
    if given in (None, "") or not isinstance(given, str) or re.fullmatch(r"\s*-?\d+(\.\d*)?\s*", given):
        return given
    try:
        largest = int(float(raw.get("maxinputsize") or 0))
    except (TypeError, ValueError, OverflowError):
        largest = 0
    return largest + INPUT_MARGIN_MB if largest > 0 else LEAST_WORK_MB


def _each(
    document: object,
    part: str,
    read: Callable[[str, Mapping[str, Any], Reading], E],
    skip: Collection[str] = (),
) -> tuple[list[E], dict[str, str]]:
    """The good entries of a dictionary, and the faults of the others."""
    good: list[E] = []
    faulty: dict[str, str] = {}
    for name, raw in check_shape(document).items():
        if name in skip:
            continue
        entry, faults = _one(part, str(name), raw, read)
        if entry is None or faults:
            faulty[storable(str(name))[:100]] = storable("; ".join(faults))[:500]
        else:
            good.append(entry)
    if not good:
        first = next(iter(faulty.items()), ("", "nothing"))
        raise BadGrid([problem("", "empty", f"no entry can be used; the first, {first[0]}: {first[1]}")])
    return good, faulty


def _one(part: str, name: str, raw: object, read: Callable[[str, Mapping[str, Any], Reading], E]) -> tuple[E | None, list[str]]:
    path = f"{part}.{name[:100]}"
    if fault := name_fault(name):
        return None, [f"{path}: name: {fault}"]
    if not isinstance(raw, Mapping):
        return None, [f"{path}: type: expected an object, found {found(raw)}"]
    reading = Reading(problems=check_characters(raw))
    entry = None if reading.problems else read(name, raw, reading)
    return entry, list(_told(reading, path))


def _told(reading: Reading, path: str) -> Iterator[str]:
    for fault in reading.problems:
        yield f"{fault.field if fault.field.startswith(path) else f'{path}.{fault.field}'}: {fault.rule}: {fault.message}"
