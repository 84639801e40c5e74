"""Agent refresh. Takes feeds whose period is over, and overrides whose time is. Leaves the grid as they say.

Next: whoever reads the grid.
"""

from __future__ import annotations

from broker_site import gdpconfig
from broker_site.agency.run import Run, agent
from broker_site.kernel import clock
from brokerage.feeds.document import KINDS
from brokerage.feeds.refresh import refresh_feed
from brokerage.ledger.feeds import claim_due
from brokerage.ledger.grid_overrides import end_expired


@agent("refresh")
def refresh(run: Run) -> int:
    """Read every feed that is due, sites before what refers to them: how many rows of the grid changed."""
    changed = end_expired(run.now)
    feeds = claim_due(run.now, gdpconfig.value("feeds", "FEED_PERIOD"))
    for feed in sorted(feeds, key=lambda feed: KINDS.index(feed.kind)):
        changed += refresh_feed(feed, clock.now())
    return changed
