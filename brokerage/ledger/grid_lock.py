"""Writers of the grid take turns: an import, a feed and an operator's override lock the same rows in different orders."""

from __future__ import annotations

from django.db import connection

LOCK = 0x6772_6964
"""Key of the advisory lock."""


def take_turns() -> None:
    """Wait until no other writer of the grid is at work; held to the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
