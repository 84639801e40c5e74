"""How old the grid is: the state of each feed, and which are too old to decide on (decision B14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from broker_site.foundation import gdpconfig
from brokerage.models import ComputingQueue, Feed, Site, StorageEndpoint
from brokerage.rules.grid.attributes import GridNames

State = Literal["fresh", "old", "too old"]

SUBJECTS: Mapping[str, str] = {
    "grid": "QUEUES",
    "cric-sites": "QUEUES",
    "cric-queues": "QUEUES",
    "cric-storages": "STORAGES",
    "software": "RELEASES",
}
"""Kind of a feed -> the part of its keys' names. Network metrics have windows of their own, closeness does not age."""

_STEPS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0))


def _state(kind: str, age_s: float, config: Mapping[str, Any]) -> State:
    """Whether a feed of this age is used, warned of, or not decided on."""
    subject = SUBJECTS.get(kind)
    if subject is None:
        return "fresh"
    if age_s > config[f"FEED_MAX_AGE_{subject}"]:
        return "too old"
    return "old" if age_s > config[f"FEED_WARN_AGE_{subject}"] else "fresh"


def _age(seconds: float) -> str:
    """A length of time in its largest unit, as `3 h`."""
    for unit, length in _STEPS:
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{int(seconds)} s"


_COLUMNS = ("name", "kind", "enabled", "created_at", "good_at", "data_at", "fault", "fault_since", "faulty", "entries")


@dataclass(frozen=True, slots=True)
class FeedState:
    """One feed: its row, how old what it says is (s), and whether that is fresh, old or too old; the sentence for people."""

    feed: Feed
    age_s: float
    state: State
    sentence: str


def feed_states(now: datetime, using: str = "default") -> list[FeedState]:
    """The enabled feeds by name."""
    return [state_of(feed, now) for feed in Feed.objects.using(using).filter(enabled=True).only(*_COLUMNS).order_by("name")]


def state_of(feed: Feed, now: datetime) -> FeedState:
    """How one feed is doing."""
    ages = gdpconfig.component("feeds")
    since = feed.data_at or feed.good_at or feed.created_at
    age_s = max((now - since).total_seconds(), 0.0)
    parts = [f"feed {feed.name}: " + ("never read" if feed.good_at is None else f"of {_age(age_s)} ago")]
    if feed.fault:
        failing = "" if feed.fault_since is None else f"{feed.fault_since:%Y-%m-%d %H:%M:%S}"
        parts.append(f"failing since {failing}: {feed.fault}")
    if feed.faulty:
        parts.append(f"{len(feed.faulty)} faulty {'entry' if len(feed.faulty) == 1 else 'entries'}")
    return FeedState(feed, age_s, _state(feed.kind, age_s, ages), "; ".join(parts))


def stale_feeds(now: datetime) -> list[str]:
    """Why production and analysis have to wait: a sentence for each feed older than its FEED_MAX_AGE_*; empty: they need not."""
    return [f"{s.sentence}; too old to decide on" for s in feed_states(now) if s.state == "too old"]


def known_names() -> GridNames:
    """Every site, storage endpoint and queue that there is."""
    return GridNames(
        frozenset(Site.objects.values_list("name", flat=True)),
        frozenset(StorageEndpoint.objects.values_list("name", flat=True)),
        frozenset(ComputingQueue.objects.values_list("name", flat=True)),
    )
