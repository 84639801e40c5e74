"""The releases document of queues, network metrics and closeness, turned into what the grid tables shall hold.

Pure. Entries of queues and sites that are not there are left out; faulty ones are told, the others taken. Source: facts on queues
5.5 and 5.6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from broker_site.foundation.outside_data import found, problem
from brokerage.rules.grid.attributes import BadGrid, GridNames, moment
from brokerage.rules.grid.cric import check_shape, storable
from brokerage.rules.grid.measurements import ALL, WINDOWS, software_problems
from brokerage.rules.grid.update import GridUpdate
from workqueues.rules.refine.characters import check_characters

OLDEST = timedelta(minutes=30)
"""Metrics older than this are not taken."""

SYSTEM, LONGEST_ACTIVITY, LARGEST = "fts", 64, 2_000_000_000
CLOSENESS = "closeness"
"""The activity of rows that only say how near sites are; those that only say throughput have the transfer system's name."""


def read_software(document: object, known: GridNames) -> GridUpdate:
    """The releases document: queue or ALL to what it publishes. Raises BadGrid."""
    good: dict[str, Mapping[str, Any]] = {}
    faulty: dict[str, str] = {}
    queues = {*known.queues, ALL}
    for name, published in check_shape(document).items():
        if name not in queues:
            continue
        unstorable = check_characters(published) if isinstance(published, Mapping) else []
        if faults := [
            *(replace(p, field=f"software.{name}.{p.field}") for p in unstorable),
            *software_problems(published, f"software.{name}"),
        ]:
            faulty[name] = storable(f"{faults[0].field}: {faults[0].rule}: {faults[0].message}")[:500]
        else:
            good[name] = published
    if not good:
        raise BadGrid([problem("", "empty", "the document has no entry of a queue that is here, nor ALL, that can be used")])
    return GridUpdate(software=good, merged=True, faulty={"software": faulty})


def read_network(document: object, known: GridNames, now: datetime) -> GridUpdate:
    """Files that wait and throughput by link `SOURCE:DESTINATION`; a row for each with its own time. Raises BadGrid."""
    links: list[dict[str, Any]] = []
    faulty: dict[str, str] = {}
    for pair, metrics in check_shape(document).items():
        source, _, destination = str(pair).partition(":")
        if source not in known.sites or destination not in known.sites:
            continue
        try:
            links += _link(source, destination, metrics, now)
        except KeyError as error:
            faulty[str(pair)[:100]] = f"links.{str(pair)[:100]}: required: a measurement lacks its {storable(str(error))[:200]}"
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            faulty[str(pair)[:100]] = f"links.{str(pair)[:100]}: type: {storable(str(error))[:200]}"
    return GridUpdate(links=tuple(links), merged=True, faulty={"link": faulty})


def _link(source: str, destination: str, metrics: Mapping[str, Any], now: datetime) -> Iterator[dict[str, Any]]:
    queued = (metrics.get("files") or {}).get("queued") or {}
    for activity, metric in queued.items():
        at = moment(str(metric["timestamp"]))
        if now - at <= OLDEST:
            files = int(_measure(metric["latest"]))
            yield _row(source, destination, str(activity)[:LONGEST_ACTIVITY], at, files_queued=files)
    systems = metrics.get("mbps") or {}
    system = SYSTEM if SYSTEM in systems else next(iter(sorted(systems)), "")
    if system:
        metric = systems[system]
        at = moment(str(metric["timestamp"]))
        mbps = {window: _measure(metric[window]) for window in WINDOWS if metric.get(window) not in (None, "")}
        if now - at <= OLDEST and mbps:
            yield _row(source, destination, system[:LONGEST_ACTIVITY], at, mbps=mbps)


def _measure(raw: object) -> float:
    """A number from 0 on, also as text. Raises ValueError."""
    number = float(raw)  # type: ignore[arg-type]
    if isinstance(raw, bool) or not math.isfinite(number) or not 0 <= number <= LARGEST:
        raise ValueError(f"expected a number from 0 on, found {found(raw)}")
    return number


def read_closeness(document: object, known: GridNames) -> GridUpdate:
    """A list of src, dst and closeness (0 nearest, 11 farthest, -1 blocked). Raises BadGrid."""
    if not isinstance(document, list) or not document:
        raise BadGrid([problem("", "type" if document else "empty", f"expected a list of links, found {found(document)}")])
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    faulty: dict[str, str] = {}
    for position, entry in enumerate(document):
        path = f"links[{position}]"
        if not isinstance(entry, Mapping):
            faulty[path] = f"{path}: type: expected an object, found {found(entry)}"
            continue
        source, destination = str(entry.get("src")), str(entry.get("dst"))
        if source not in known.sites or destination not in known.sites:
            continue
        try:
            closeness = float(entry["closeness"])
        except (KeyError, TypeError, ValueError):
            closeness = math.nan
        if not -1 <= closeness <= 11:
            faulty[path] = f"{path}.closeness: range: expected -1 to 11, found {found(entry.get('closeness'))}"
            continue
        rows[source, destination] = _row(source, destination, CLOSENESS, None, closeness=closeness)
    return GridUpdate(links=tuple(rows.values()), merged=True, faulty={"link": faulty})


def _row(source: str, destination: str, activity: str, at: datetime | None, **told: Any) -> dict[str, Any]:
    empty = {"files_queued": 0, "mbps": {}, "closeness": None}
    return {"from": source, "to": destination, "activity": activity, "at": at, **empty, **told}
