"""The bytes of a document of any kind, turned into what the grid tables shall hold.

Not here: where the bytes come from (`fetch`), and the rules (`brokerage.rules.grid.update`, `cric`, `cric_metrics`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from broker_site.foundation.kernel.verdict import Problem
from brokerage.feeds.grid_document import parse_document
from brokerage.rules.grid.attributes import BadGrid, GridNames, moment
from brokerage.rules.grid.cric import read_queues, read_sites, read_storages, recognised
from brokerage.rules.grid.cric_metrics import read_closeness, read_network, read_software
from brokerage.rules.grid.document import without_ours
from brokerage.rules.grid.update import GridUpdate, read_update

KINDS = ("grid", "cric-sites", "cric-storages", "cric-queues", "software", "network", "closeness")
"""Every kind of document, in the order in which later ones refer to earlier ones."""


def parse(text: bytes) -> tuple[str, Any]:
    """Kind and JSON data of a document. Raises BadGrid; rules json, duplicate, kind."""
    document = parse_document(text)
    kind = recognised(document)
    if not kind and isinstance(document, Mapping) and "format" in document:
        kind = "grid"
    return kind or "grid", document


def wanted_of(kind: str, document: Any, known: GridNames, now: datetime) -> GridUpdate:
    """What a document of a kind says. Raises BadGrid, also where it is of another kind."""
    found = recognised(document)
    if found and found != kind:
        raise BadGrid([Problem("", "kind", f"expected a document of the kind {kind}, this looks like {found}")])
    match kind:
        case "cric-sites":
            return read_sites(document)
        case "cric-storages":
            return read_storages(document, known)
        case "cric-queues":
            return read_queues(document, known)
        case "software":
            return read_software(document, known)
        case "network":
            return read_network(document, known, now)
        case "closeness":
            return read_closeness(document, known)
    return read_update(document)


def time_of(document: Any) -> datetime | None:
    """Of when our own document says that it is."""
    if not isinstance(document, Mapping) or not isinstance(document.get("now"), str) or not document["now"]:
        return None
    try:
        return moment(document["now"])
    except ValueError:
        return None


def from_afar(wanted: GridUpdate) -> GridUpdate:
    """What a feed may say: no directory of ours, no process on our machine."""
    return replace(
        wanted,
        storages=None if wanted.storages is None else [without_ours(entry) for entry in wanted.storages],
        queues=None if wanted.queues is None else [without_ours(queue) for queue in wanted.queues],
    )
