"""How old the grid is: the state of each feed, and which are too old to decide on (decision B14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from broker_site.foundation import gdpconfig
from brokerage.models import ComputingQueue, Feed, Site, StorageEndpoint
from brokerage.rules.grid.attributes import Known
from brokerage.rules.grid.feed_age import State, judged, told

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
    ages = gdpconfig.component("feeds")
    since = feed.data_at or feed.good_at or feed.created_at
    age_s = max((now - since).total_seconds(), 0.0)
    state = judged(feed.kind, age_s, ages)
    failing = "" if feed.fault_since is None else f"{feed.fault_since:%Y-%m-%d %H:%M:%S}"
    return FeedState(feed, age_s, state, told(feed.name, age_s, feed.good_at is None, feed.fault, failing, len(feed.faulty)))


def stale_feeds(now: datetime) -> list[str]:
    """Why production and analysis have to wait: a sentence for each feed older than its FEED_MAX_AGE_*; empty: they need not."""
    return [f"{s.sentence}; too old to decide on" for s in feed_states(now) if s.state == "too old"]


def known_names() -> Known:
    """Every site, storage endpoint and queue that there is."""
    return Known(
        frozenset(Site.objects.values_list("name", flat=True)),
        frozenset(StorageEndpoint.objects.values_list("name", flat=True)),
        frozenset(ComputingQueue.objects.values_list("name", flat=True)),
    )
