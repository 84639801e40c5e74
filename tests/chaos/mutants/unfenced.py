"""A planted bug: no epoch is compared, and a report about a job that was given up is taken as if its lease still ran.

With the unique indexes and the guard triggers in place the database refuses what this code wants; `switch_off` takes them away.
Nothing here is part of the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2
from django.apps import AppConfig
from django.db import connection, transaction

if TYPE_CHECKING:
    from brokerage.ledger.settle import LastWord

INDEXES = ("job_input_one_live", "job_input_used_once")
GUARDS = {"job_guard": "brokerage_job", "input_file_guard": "workqueues_file", "output_file_guard": "workqueues_file"}

TAKE_BACK = (
    "UPDATE brokerage_jobinput SET status = 'live' WHERE job_id = %(job)s AND status = 'returned'",
    """UPDATE workqueues_file SET status = 'running', job_id = %(job)s
       WHERE id IN (SELECT file_id FROM brokerage_jobinput WHERE job_id = %(job)s)""",
    "UPDATE workqueues_file SET status = 'running' WHERE out_job_id = %(job)s",
    "DELETE FROM brokerage_jobresult WHERE job_id = %(job)s",
)
"""What makes a given-up job look as if it were still held."""


class Unfenced(AppConfig):
    """Plants the bug in every process of the system."""

    name = "tests.chaos.mutants"
    label = "unfenced"
    path = str(Path(__file__).parent)

    def ready(self) -> None:
        """Replace the comparison of epochs, and what pilots' reports call."""
        from brokerage.api import reports
        from brokerage.api.joint_verbs import Joint
        from brokerage.ledger import moves, settle
        from brokerage.ledger.lease import ANY_TOKEN

        def believing(words: Sequence[LastWord]) -> list[str | Exception]:
            with transaction.atomic():
                for word in words:
                    _take_back(word.job_id)
                return settle.settle_jobs([replace(word, token=ANY_TOKEN) for word in words])

        moves.fence = lambda: "TRUE"
        reports.ENDS = Joint(believing, key=reports.ENDS.key)


def _take_back(job_id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE brokerage_job SET status = 'running', ended_at = NULL, lease_holder = gen_random_uuid(), lease_until = now()"
            " WHERE id = %s AND status = 'failed' AND sub_status = 'lost_heartbeat'",
            [job_id],
        )
        if cursor.rowcount:
            for sql in TAKE_BACK:
                cursor.execute(sql, {"job": job_id})


def switch_off(dsn: str) -> None:
    """Take the used-once indexes and the guard triggers out of a private database."""
    with psycopg2.connect(dsn) as private, private.cursor() as cursor:
        for index in INDEXES:
            cursor.execute(f"DROP INDEX {index}")
        for guard, table in GUARDS.items():
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {guard}")
