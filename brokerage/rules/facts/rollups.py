"""What is counted of jobs over time: flows, levels, by what, and how long each step is kept (decision L3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum

MADE, STARTED = "made", "started"
FILES, EVENTS = "files", "events"
FLOWS = (MADE, STARTED, "finished", "failed", "closed", "cancelled", FILES, EVENTS)
"""What jobs did in some time. `started`: the first word of a pilot that the payload runs, or has run. `files`, `events`: what
jobs worked through that finished, without those that merge.
"""

MINUTE_S, FIVE_MINUTES_S, HOUR_S, DAY_S = 60, 300, 3600, 86_400
STEPS = (MINUTE_S, FIVE_MINUTES_S, HOUR_S, DAY_S)
"""Lengths of the buckets, s; days are those of UTC."""
MOST_ERROR_TASKS = 10_000
"""Tasks that are kept of an error and an owner, and up to which those of an error are told."""
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)


def step_after(at: datetime, step_s: int) -> datetime:
    """When the first bucket of this length begins after a moment."""
    step = timedelta(seconds=step_s)
    return _BEGIN + ((at - _BEGIN) // step + 1) * step


class Family(StrEnum):
    """By what is counted; each has few values, so that tables stay small."""

    VO = "vo"
    """VO alone."""
    QUEUE = "queue"
    """VO and computing queue."""
    SHARE = "share"
    """VO, share and kind of job."""
    PLACE = "place"
    """VO, computing queue, share and kind of job: what is asked for together."""
    USER = "user"
    """VO, share and owner of the task."""
    ERROR = "error"
    """VO and fingerprint of the error: jobs that failed or were closed."""
    ERROR_AT = "error_at"
    """VO, computing queue and fingerprint of the error."""
    ERROR_OF = "error_of"
    """VO, owner of the task and fingerprint of the error."""


COLUMNS = {
    Family.VO: ("vo",),
    Family.QUEUE: ("vo", "queue"),
    Family.SHARE: ("vo", "share", "kind"),
    Family.PLACE: ("vo", "queue", "share", "kind"),
    Family.USER: ("vo", "share", "user_name"),
    Family.ERROR: ("vo", "fingerprint"),
    Family.ERROR_AT: ("vo", "queue", "fingerprint"),
    Family.ERROR_OF: ("vo", "user_name", "fingerprint"),
}
"""Family -> the columns by which it counts, those with the fewest groups first; the others are empty."""

OF_ERRORS = (Family.ERROR, Family.ERROR_AT, Family.ERROR_OF)
"""Those that count jobs that failed or were closed alone."""
