"""`manage.py after_restore`: makes a restored database safe from what has happened since its backup was taken."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection, transaction

JUMPS = {"workqueues_task": 10_000, "brokerage_job": 1_000_000}
"""More tasks and jobs than come between a backup and its restore."""
NEXT = """SELECT setval(pg_get_serial_sequence(%(table)s, 'id')::regclass,
    nextval(pg_get_serial_sequence(%(table)s, 'id')::regclass) + %(jump)s)"""


class Command(BaseCommand):
    """Pilots and people remember tasks and jobs that the restored database does not know; their ids are not given out again."""

    help = "After a restore: skip the ids of tasks and jobs that were made after the backup."

    def handle(self, *args: Any, **options: Any) -> None:
        """To be run once, before web, worker and beat are started."""
        with transaction.atomic(), connection.cursor() as cursor:
            for table, jump in JUMPS.items():
                cursor.execute(NEXT, {"table": table, "jump": jump})
                (last,) = cursor.fetchone()
                self.stdout.write(f"ids of {table.partition('_')[2]}s go on after {last}")
            cursor.execute("SELECT count(*) FROM brokerage_job WHERE lease_until IS NOT NULL")
            (held,) = cursor.fetchone()
        self.stdout.write(
            f"{held} jobs were held by pilots at the time of the backup; they are given out again when their leases end"
        )
