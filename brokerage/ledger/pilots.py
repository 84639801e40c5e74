"""Pilots: registered, seen."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from brokerage.models import Pilot

SEEN_EVERY_S = 30
"""How exact the last sign of life of an idle pilot is; less often means fewer writes."""


def register(pilot: Pilot) -> None:
    """Insert a pilot."""
    pilot.save(force_insert=True)


def seen(pilot_id: UUID) -> None:
    """Note that the pilot asked, at most every SEEN_EVERY_S."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE brokerage_pilot SET last_seen = now() WHERE id = %s AND last_seen < now() - make_interval(secs => %s)",
            [pilot_id, SEEN_EVERY_S],
        )
