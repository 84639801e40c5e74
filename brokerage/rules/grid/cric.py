"""CRIC's own documents: the dictionaries of sites, storage endpoints and queues, turned into what the grid tables shall hold.

Pure. A faulty entry is told, the others are taken (decision B15): numbers may be texts, missing and empty mean the default, names
that we do not know are kept among the attributes. Not here: releases and network documents (`cric_metrics`). Source: facts on
queues 5.1 to 5.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, ValidationError, model_validator

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import found, problem, problems
from brokerage.rules.grid.attributes import (
    ACCESSES,
    FURTHER,
    QUEUE,
    Attributes,
    BadGrid,
    Gigabytes,
    GridNames,
    QueueAttributes,
    SiteAttributes,
    StorageAttributes,
    Texts,
    name_fault,
)
from brokerage.rules.grid.document import (
    FORMAT,
    OURS,
    Entry,
    nickname_problem,
    queue_entry,
    site_entry,
    storage_entry,
    without_ours,
)
from brokerage.rules.grid.update import GridUpdate
from workqueues.rules.refine.characters import check_characters

GB = 1024**3 / 1e9
"""CRIC's unit of space in ours."""

NUCLEUS = "Nucleus"
"""The data policy that makes a site a nucleus."""

INPUT_MARGIN_MB, LEAST_WORK_MB = 2000, 16336
"""Work area of a queue whose own is unreadable: its largest input and this much, or that much without one (facts 5.1)."""

KINDS = {
    "grid": "our own grid document",
    "cric-sites": "CRIC: dictionary of sites",
    "cric-storages": "CRIC: dictionary of storage endpoints",
    "cric-queues": "CRIC: dictionary of queues (schedconfig)",
    "software": "releases document: software and hardware of queues",
    "network": "network metrics of links",
    "closeness": "closeness of sites",
}
"""Every kind of document, and what it is, in the order in which later ones refer to earlier ones."""

SIGNS: Mapping[str, tuple[str, ...]] = {
    "cric-sites": ("datapolicies", "presources", "ddmendpoints", "tier_level"),
    "cric-queues": ("atlas_site", "panda_resource", "nickname"),
    "cric-storages": ("token", "is_tape", "detailed_status"),
    "software": ("cmtconfigs", "containers", "cvmfs", "tags", "architectures"),
    "network": ("files", "mbps"),
}
"""Members by which the entries of a document are recognised."""

A = TypeVar("A", bound=Attributes)
E = TypeVar("E", bound=Entry)


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


def read_sites(document: object) -> GridUpdate:
    """The dictionary of sites; data policy Nucleus makes a nucleus. Raises BadGrid."""
    entries, faulty = _each(document, "sites", _site, CricSite, site_entry, GridNames())
    return GridUpdate(sites=entries, faulty={"site": faulty})


def _policies(raw: object) -> object:
    return raw.split(",") if isinstance(raw, str) else raw or []


class CricSite(SiteAttributes):
    """A site as CRIC gives it: with a list of data policies, also as one text."""

    datapolicies: Annotated[Texts, BeforeValidator(_policies)] = []

    @model_validator(mode="after")
    def _with_role(self) -> Self:
        self.nucleus = NUCLEUS in self.datapolicies
        return self


def _site(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if name != "nucleus"}


class CricStorage(StorageAttributes):
    """A storage endpoint as CRIC gives it: space in GB of 1024^3."""

    space_free: Gigabytes | None = None
    space_expired: Gigabytes | None = None
    space_used: Gigabytes | None = None
    space_total: Gigabytes | None = None

    @model_validator(mode="after")
    def _in_our_unit(self) -> Self:
        free = self.space_free
        if free is None and self.space_total is not None and self.space_used is not None:
            free = max(self.space_total - self.space_used, 0.0)
        self.free_gb = None if free is None else free * GB
        self.expired_gb = None if self.space_expired is None else self.space_expired * GB
        return self


def read_storages(document: object, known: GridNames) -> GridUpdate:
    """The dictionary of storage endpoints. Raises BadGrid."""
    entries, faulty = _each(document, "storages", _storage, CricStorage, storage_entry, known)
    return GridUpdate(storages=entries, faulty={"storage": faulty})


def _storage(raw: Mapping[str, Any]) -> dict[str, Any]:
    described = {
        name: value for name, value in raw.items() if name not in ("status", "path", "detailed_status", "free_gb", "expired_gb")
    }
    if isinstance(described.get("is_tape"), str):
        described["is_tape"] = described["is_tape"].strip().upper() in ("Y", "YES", "TRUE", "1")
    status = raw.get("detailed_status") or {}
    readable = isinstance(status, Mapping)
    return described | {"status": {k: str(v).upper() for k, v in status.items() if k in ACCESSES and v} if readable else status}


def read_queues(document: object, known: GridNames) -> GridUpdate:
    """The dictionary of queues (schedconfig); the entry ALL is none. Raises BadGrid."""
    entries, faulty = _each(document, "queues", _queue, QueueAttributes, queue_entry, known, skip=("ALL",))
    return GridUpdate(queues=entries, faulty={"queue": faulty})


def _queue(raw: Mapping[str, Any]) -> dict[str, Any]:
    """One queue with what CRIC writes in its own way: only JSON true switches on, an unreadable work area."""
    described = {name: value for name, value in raw.items() if name not in OURS}
    for name, attribute in FURTHER.items():
        if attribute.kind == "flag" and name in described:
            described[name] = described[name] is True
        elif attribute.kind == "object" and described.get(name) in ("", []):
            described[name] = None
    for name, attribute in QUEUE.items():
        if attribute.kind == "int" and isinstance(described.get(name), float):
            described[name] = round(described[name])
    described["maxwdir"] = _work_area(described)
    return described


def _work_area(raw: Mapping[str, Any]) -> object:
    area = raw.get("maxwdir")
    if area in (None, "") or not isinstance(area, str) or re.fullmatch(r"\s*-?\d+(\.\d*)?\s*", area):
        return area
    try:
        largest = int(float(raw.get("maxinputsize") or 0))
    except (TypeError, ValueError, OverflowError):
        largest = 0
    return largest + INPUT_MARGIN_MB if largest > 0 else LEAST_WORK_MB


def _each(
    document: object,
    part: str,
    made: Callable[[Mapping[str, Any]], dict[str, Any]],
    model: type[A],
    entry: Callable[[str, Mapping[str, Any], A], E],
    known: GridNames,
    skip: Collection[str] = (),
) -> tuple[list[E], dict[str, str]]:
    """The good entries of a dictionary, and the faults of the others."""
    good: list[E] = []
    faulty: dict[str, str] = {}
    for name, raw in check_shape(document).items():
        if name in skip:
            continue
        path = f"{part}.{str(name)[:100]}"
        faults = [*_faults(path, str(name), raw)]
        if not faults:
            described = made(raw)
            try:
                good.append(
                    without_ours(entry(name, described, model.model_validate(described, context=replace(known, faults=[]))))
                )
                continue
            except ValidationError as error:
                faults = [*problems(error, model, path)]
        faulty[storable(str(name))[:100]] = storable("; ".join(f"{p.field}: {p.rule}: {p.message}" for p in faults))[:500]
    if not good:
        first = next(iter(faulty.items()), ("", "nothing"))
        raise BadGrid([problem("", "empty", f"no entry can be used; the first, {first[0]}: {first[1]}")])
    return good, faulty


def _faults(path: str, name: str, raw: object) -> Iterator[Problem]:
    """What is wrong with an entry before its attributes are looked at."""
    if wrong := name_fault(name):
        yield Problem(path, "name", wrong)
    elif not isinstance(raw, Mapping):
        yield Problem(path, "type", f"expected an object, found {found(raw)}")
    else:
        yield from (replace(p, field=f"{path}.{p.field}") for p in check_characters(raw))
        if path.startswith("queues.") and (wrong_nickname := nickname_problem(name, raw)):
            yield wrong_nickname
