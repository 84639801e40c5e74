"""Agent refresh. Takes feeds whose period is over, and overrides whose time is. Leaves grid and configuration as they say.

Next: whoever reads the grid.
"""

from __future__ import annotations

import time

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import one_by_one
from broker_site.foundation.agency.look import look_later
from broker_site.foundation.agency.run import Run, agent
from broker_site.foundation.gdpconfig.proposals import end_proposals
from broker_site.foundation.gdpconfig.store import end_expired as end_expired_configuration
from broker_site.foundation.kernel import clock
from brokerage.feeds.refresh import refresh_feed
from brokerage.ledger.feeds import claim, due
from brokerage.ledger.grid_overrides import end_expired, nearest_end
from brokerage.models import Feed
from brokerage.rules.grid.cric import KINDS

LONGEST_S = 45.0
"""Time after which a run begins no further feed: those left are due at the next one, well before a task's time limit."""


@agent("refresh")
def refresh(run: Run) -> int:
    """Read every feed that is due, sites before what refers to them: how many rows of grid and configuration changed."""
    ended = end_expired_configuration(run.now) + end_proposals(run.now)
    changed, began = end_expired(run.now), time.monotonic()
    period_s = gdpconfig.value("feeds", "FEED_PERIOD")
    waiting = Feed.objects.filter(due(run.now, period_s)).defer("copy").order_by("name")

    def read(feed: Feed) -> int:
        in_time = time.monotonic() - began <= LONGEST_S
        return refresh_feed(feed, clock.now()) if in_time and claim(feed, run.now, period_s) else 0

    _look_at_next_end()
    feeds = sorted(waiting, key=lambda feed: list(KINDS).index(feed.kind))
    return ended + changed + sum(one_by_one(feeds, read, lambda feed, error: run.leave(f"feed {feed.name}", error)))


def _look_at_next_end() -> None:
    """Run again when the next override ends, where that is before the next tick: what it set holds no longer than it says."""
    if (end := nearest_end()) is None:
        return
    seconds = (end - clock.now()).total_seconds()
    if seconds <= gdpconfig.value("agents", "PERIOD_refresh"):
        look_later("refresh", max(0.0, seconds))
