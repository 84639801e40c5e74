"""Alerts: what of access somebody should look at, as rows of the audit with the author `alert`. One an hour about one thing.

Some are noted where they happen (`alert`), others follow from the newest rows of the audit, at which the agent seal looks.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now

from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.trace import trace_id

AUTHOR = "alert"
QUIET = timedelta(hours=1)
"""Time in which nothing more is said of the same thing."""
LOOK_BACK_S = 900
"""Rows of the audit that the agent looks at: as old as several of its periods."""
REFUSALS = 20
"""Refusals within a minute of one credential, or of one address without any."""

logger = logging.getLogger(__name__)


def alert(what: str, target: str, reason: str) -> None:
    """Note something, unless the same was noted of `target` within the hour. Never fails: the call is answered all the same."""
    act, target = f"alert.{what}", target[:300]
    try:
        with transaction.atomic():
            if Audit.objects.filter(object=target, act=act, at__gt=Now() - QUIET).exists():
                return
            row = Audit(who=AUTHOR, kind="anonymous", act=act, object=target, reason=reason[:500], trace_id=trace_id())
            row.outcome = Audit.Outcome.DONE
            row.save(force_insert=True)
    except DatabaseError as exc:
        logger.error("no alert %s about %s: %s", what, target, exc)
    else:
        logger.warning("alert: %s: %s", target, reason)


_REFUSED = """
SELECT DISTINCT ON (1) who_and_where, n FROM (
    SELECT concat_ws(' ', kind, nullif(who, kind), nullif(prefix, ''), after->>'address') AS who_and_where,
        count(*) OVER (PARTITION BY kind, who, prefix, after->>'address'
            ORDER BY at RANGE BETWEEN INTERVAL '1 minute' PRECEDING AND CURRENT ROW) AS n
    FROM access_audit WHERE at > now() - make_interval(secs => %(back)s) AND outcome = 'refused'
) AS refused WHERE n >= %(most)s ORDER BY 1, 2 DESC
"""
_SHARES = """
SELECT object, who, act, to_char(at AT TIME ZONE 'UTC', 'HH24:MI') FROM access_audit
WHERE at > now() - make_interval(secs => %(back)s) AND (act LIKE 'globalshare.%%' OR act LIKE 'workqueue.%%') AND outcome = 'done'
    AND NOT (extract(hour FROM at AT TIME ZONE 'UTC') >= %(first)s AND extract(hour FROM at AT TIME ZONE 'UTC') < %(last)s)
ORDER BY id
"""


def look_for_alerts(first_hour: int, last_hour: int) -> None:
    """Note what the newest rows of the audit say; edits of shares are expected from the first hour on up to the last (UTC)."""
    values = {"back": LOOK_BACK_S, "most": REFUSALS, "first": first_hour, "last": last_hour}
    with connection.cursor() as cursor:
        cursor.execute(_REFUSED, values)
        refused = cursor.fetchall()
        cursor.execute(_SHARES, values)
        edits = cursor.fetchall()
    for target, n in refused:
        alert("refusals", target, f"{n} refusals within a minute")
    for target, who, act, time in edits:
        alert("share_edit", target, f"{act} by {who} at {time} UTC, outside of the hours {first_hour} to {last_hour}")


def recent_alerts(hours: int, using: str = "default") -> dict[str, int]:
    """What was noted in the last hours -> how often."""
    with_author = Audit.objects.using(using).filter(who=AUTHOR, at__gt=Now() - timedelta(hours=hours))
    counts: dict[str, int] = {}
    for act in with_author.values_list("act", flat=True):
        counts[act.removeprefix("alert.")] = counts.get(act.removeprefix("alert."), 0) + 1
    return counts
