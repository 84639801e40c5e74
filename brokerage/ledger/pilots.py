"""When pilots were last seen: noted where they ask in vain, and from the leases of those at work.

A pilot at work costs no write of its own: each verb of it notes the time on its job, and now and then the pilot's row follows.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connection

SEEN_EVERY_S = 30
"""How exact the last sign of life of an idle pilot is; less often means fewer writes."""
AT_WORK_EVERY_S = 60
"""The same of a pilot at work."""


def note_vain_ask(pilot_id: UUID) -> None:
    """Note that a pilot asked and got nothing, at most every SEEN_EVERY_S. Every ask that ends so, or waits, is noted here."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE brokerage_pilot SET last_seen = now() WHERE id = %s AND last_seen < now() - make_interval(secs => %s)",
            [pilot_id, SEEN_EVERY_S],
        )


def note_pilots_at_work() -> int:
    """Note the last sign of life of pilots that hold jobs: of how many. What others lock is left for the next time."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH held AS MATERIALIZED (
                SELECT lease_holder, max(last_seen) AS last_seen FROM brokerage_job
                WHERE lease_holder IS NOT NULL GROUP BY lease_holder
            ), due AS (
                SELECT p.id, held.last_seen FROM brokerage_pilot p JOIN held ON held.lease_holder = p.id
                WHERE p.id = ANY (ARRAY(SELECT lease_holder FROM held))
                    AND p.last_seen < held.last_seen - make_interval(secs => %s)
                FOR NO KEY UPDATE OF p SKIP LOCKED
            )
            UPDATE brokerage_pilot p SET last_seen = due.last_seen FROM due WHERE p.id = due.id
            """,
            [AT_WORK_EVERY_S],
        )
        return int(cursor.rowcount)
