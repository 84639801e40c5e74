"""Whether to ask again, and when: what the server says by Retry-After, else pauses that double. Pure: time and chance come in."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
BUSY = frozenset({429, 503})
"""Answers that may be another one in a moment."""


def asked_pause(retry_after: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, which holds them or a date; None where it says nothing that can be read."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
    return max((aware - now).total_seconds(), 0.0)


def own_pause(tries: int, dice: random.Random) -> float:
    """Seconds before the next try after so many: half to all of a pause that doubles, so that clients do not come together."""
    most = min(FIRST_PAUSE_S * 2.0 ** min(tries - 1, 10), LONGEST_PAUSE_S)
    return most * (0.5 + dice.random() / 2)
