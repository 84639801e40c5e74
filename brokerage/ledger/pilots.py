"""Pilots: registered, seen, and that they began a job."""

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


def start_noted(job_id: int) -> None:
    """Note that a job began to run at its queue, at most once a minute per queue."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE brokerage_computingqueue SET last_start = now()
            WHERE id = (SELECT computing_queue_id FROM brokerage_job WHERE id = %s)
              AND (last_start IS NULL OR last_start < now() - interval '1 minute')
            """,
            [job_id],
        )
