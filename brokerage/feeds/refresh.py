"""One feed read and used, or its fault noted: what it last said stays whatever happens."""

from __future__ import annotations

import hashlib
import logging
import zlib
from datetime import datetime

from django.db import transaction

from broker_site.foundation import gdpconfig
from brokerage.feeds.document import from_afar, parse, time_of, wanted_of
from brokerage.feeds.fetch import FeedDocument, FeedUnavailable, Limits, fetch
from brokerage.ledger.feeds import note_fault, note_good
from brokerage.ledger.grid import import_grid
from brokerage.ledger.grid_facts import drop_old_links
from brokerage.models import Feed
from brokerage.queries.feeds import known_names
from brokerage.rules.grid.attributes import BadGrid

logger = logging.getLogger(__name__)

STATIC = "grid"
"""The kind whose documents people write: unless it names its time, its age is that of the last good reading, not of the file."""


def limits() -> Limits:
    """What feeds may be, as configured now."""
    keys = gdpconfig.component("feeds")
    return Limits(keys["FEED_HOSTS"], keys["FEED_FOLDERS"], keys["FEED_TIMEOUT"], keys["FEED_MAX_SIZE"])


def refresh_feed(feed: Feed, now: datetime) -> int:
    """Fetch, convert and import one feed: how many rows changed."""
    try:
        changed = _use(feed, fetch(feed.place, limits()), now)
    except FeedUnavailable as down:
        note_fault(feed, str(down), now)
    except BadGrid as bad:
        faults = "; ".join(f"{p.field or 'document'}: {p.rule}: {p.message}" for p in bad.problems[:5])
        note_fault(feed, faults, now)
    else:
        return changed
    logger.warning("feed %s: %s", feed.name, feed.fault)
    return 0


def _use(feed: Feed, fetched: FeedDocument, now: datetime) -> int:
    _, document = parse(fetched.body)
    data_at = time_of(document) or (None if feed.kind == STATIC else fetched.modified_at) or now
    wanted = from_afar(wanted_of(feed.kind, document, known_names(), now))
    with transaction.atomic():
        unchanged = Feed.objects.filter(pk=feed.pk, kind=feed.kind, place=feed.place, enabled=True)
        if (mine := unchanged.select_for_update(no_key=True).first()) is None:
            return 0  # an operator removed it, switched it off or changed its place while it was read
        if mine.data_at is not None and data_at < mine.data_at and fetched.body != last_copy(mine):
            raise FeedUnavailable(
                f"of {data_at:%Y-%m-%d %H:%M:%S}, older than the copy that we have, of {mine.data_at:%Y-%m-%d %H:%M:%S}"
            )
        changes = import_grid(wanted, source=mine.name, max_loss=gdpconfig.value("feeds", "FEED_MAX_LOSS"))
        if mine.kind == "network":
            drop_old_links(now)
        mine.data_at = min(data_at, now)
        mine.copy = zlib.compress(fetched.body, 6)
        mine.digest = hashlib.sha256(fetched.body).hexdigest()
        note_good(mine, wanted, now)
    return len(changes)


def last_copy(feed: Feed) -> bytes:
    """The last good document of a feed; empty where there is none."""
    return zlib.decompress(bytes(feed.copy)) if feed.copy else b""
