"""Rounds in which jobs were made: what pilots took since the last ones tells how many jobs a queue can use (decision B19)."""

from __future__ import annotations

from django.db import connection

from brokerage.queries.placement_rounds import ROUNDS


def note_round(last_change: int) -> None:
    """Note a round that made jobs. `last_change`: number of the last move of a job before it; the rounds before the last go."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH noted AS (INSERT INTO brokerage_placementround (last_change) VALUES (%s))
            DELETE FROM brokerage_placementround
            WHERE id <= (SELECT id FROM brokerage_placementround ORDER BY id DESC OFFSET %s LIMIT 1)
            """,
            [last_change, ROUNDS - 1],
        )
