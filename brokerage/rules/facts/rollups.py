"""What is counted of jobs over time: flows, levels, by what, and how long each step is kept (decision L3)."""

from __future__ import annotations

from enum import StrEnum

MADE, STARTED = "made", "started"
FLOWS = (MADE, STARTED, "finished", "failed", "closed", "cancelled")
"""What jobs did in some time. `started`: the first word of a pilot that the payload runs, or has run."""

MINUTE_S, FIVE_MINUTES_S, HOUR_S = 60, 300, 3600
STEPS = (MINUTE_S, FIVE_MINUTES_S, HOUR_S)
"""Lengths of the buckets, s."""


class Family(StrEnum):
    """By what is counted; each has few values, so that tables stay small."""

    VO = "vo"
    """VO alone."""
    PLACE = "place"
    """VO, computing queue, share and kind of job."""
    USER = "user"
    """VO, share and owner of the task."""
    ERROR = "error"
    """VO, computing queue and fingerprint of the error: jobs that failed or were closed."""


COLUMNS = {
    Family.VO: ("vo",),
    Family.PLACE: ("vo", "queue", "share", "kind"),
    Family.USER: ("vo", "share", "user_name"),
    Family.ERROR: ("vo", "queue", "fingerprint"),
}
"""Family -> the columns by which it counts; the others are empty."""
