"""Links as documents and feeds tell them and as our own transfers load them, joined to one entry for each link and activity.

LINK_BACKLOG_SOURCE says whose number of waiting files holds; a throughput that a feed tells holds over our own, which is there
where none is told (or always, where only our own counts). What is too old of what is told is left out here, since the joined
entry is of now. A link that failures or operators block is blocked, whatever is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from brokerage.rules.facts.snapshot import BLOCKED
from brokerage.rules.grid.measurements import PRODUCTION_OUTPUT
from brokerage.rules.world.link_columns import FEED, MOST_AGE, age_of

Source = Literal["own", "feed", "larger"]
Pair = tuple[str, str]

OWN = "own transfers"
"""Where a number comes from, as it is told."""

NOT_TOLD = {"origin": "", "rate_origin": "", "why": ""}


def join_links(
    told: Iterable[Mapping[str, Any]],
    own: Iterable[Mapping[str, Any]],
    blocked: Mapping[Pair, str],
    source: Source,
    now: datetime,
) -> tuple[Mapping[str, Any], ...]:
    """All links, by sites and activity. `blocked`: (from, to) -> why, of links that are."""
    links = {(entry["from"], entry["to"], entry["activity"]): {**NOT_TOLD, **entry} for entry in told}
    if source != "feed":
        if source == "own":
            links = {key: {**entry, "files_queued": 0, "mbps": {}} for key, entry in links.items()}
        windows: dict[Pair, set[str]] = defaultdict(set)
        for (begin, end, _), entry in links.items():
            windows[begin, end].update(_fresh(entry, now))
        for load in own:
            key = load["from"], load["to"], load["activity"]
            links[key] = _joined(links.get(key), load, windows[key[:2]], now)
    for begin, end in blocked.keys() - {key[:2] for key in links}:
        links[begin, end, PRODUCTION_OUTPUT] = _empty(begin, end, PRODUCTION_OUTPUT)
    for key, entry in links.items():
        if key[:2] in blocked:
            links[key] = {**entry, "closeness": BLOCKED, "why": blocked[key[:2]]}
    return tuple(links[key] for key in sorted(links))


def _joined(told: Mapping[str, Any] | None, load: Mapping[str, Any], windows: set[str], now: datetime) -> dict[str, Any]:
    """An entry of now from what is told, if anything is, and the load; `windows`: those whose throughput is told of the link."""
    entry = dict(told or _empty(load["from"], load["to"], load["activity"]))
    files = entry["files_queued"] if age_of(entry, now) <= MOST_AGE["1h"] else 0
    rates = {window: rate for window, rate in load["mbps"].items() if window not in windows}
    mbps = _fresh(entry, now) | rates
    larger = load["files_queued"] >= files
    latest = next((window for window in MOST_AGE if window in mbps), None)
    return entry | {
        "files_queued": load["files_queued"] if larger else files,
        "mbps": mbps,
        "at": None,
        "origin": OWN if larger else FEED,
        "rate_origin": "" if latest is None else OWN if latest in rates else FEED,
    }


def _fresh(entry: Mapping[str, Any], now: datetime) -> dict[str, float]:
    age = age_of(entry, now)
    return {window: mbps for window, mbps in entry["mbps"].items() if mbps is not None and age <= MOST_AGE[window]}


def _empty(begin: str, end: str, activity: str) -> dict[str, Any]:
    measured = {"files_queued": 0, "mbps": {}, "closeness": None, "at": None}
    return {"from": begin, "to": end, "activity": activity} | measured | NOT_TOLD
