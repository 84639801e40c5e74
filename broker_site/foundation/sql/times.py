"""Points of time that the database holds and Python cannot: read as the nearest one, so that such a row does not hide others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg2 import extensions

TIMESTAMPTZ = 1184
"""PostgreSQL's number of the type."""
A_DAY = timedelta(days=1)
FIRST, LAST = datetime.min.replace(tzinfo=UTC) + A_DAY, datetime.max.replace(tzinfo=UTC) - A_DAY
"""The nearest ones, which every zone can show."""


def read_time(text: str | bytes | None, cursor: Any) -> datetime | None:
    """A point of time as PostgreSQL sends it."""
    try:
        time: datetime | None = extensions.PYDATETIMETZ(text, cursor)
    except (ValueError, OverflowError):
        return FIRST if str(text).endswith("BC") or str(text).startswith("-") else LAST
    return time


def register() -> None:
    """Read points of time so on all connections of this process."""
    extensions.register_type(extensions.new_type((TIMESTAMPTZ,), "READABLE_TIMESTAMPTZ", read_time))
