"""`manage.py after_restore`: makes a restored database safe from what has happened since its backup was taken."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection, transaction
from django.db.models import Max

from broker_site.foundation.access.credentials import revoke
from broker_site.foundation.access.models import Credential
from brokerage.models import Job
from workqueues.ledger.installation import begin_anew

JUMPS = {"workqueues_task": 10_000, "brokerage_job": 1_000_000}
"""More tasks and jobs than come between a backup and its restore."""
NEXT = """SELECT setval(pg_get_serial_sequence(%(table)s, 'id')::regclass,
    nextval(pg_get_serial_sequence(%(table)s, 'id')::regclass) + %(jump)s)"""


class Command(BaseCommand):
    """Pilots and people remember tasks and jobs that the restored database does not know; their ids are not given out again.

    A pilot whose job was held at the backup has ended it since. It could get no other while the database believes that it holds
    this one, so its token ends here: it registers again and works.
    """

    help = "After a restore: skip ids of tasks and jobs made after the backup; pilots that held jobs register again."

    def handle(self, *args: Any, **options: Any) -> None:
        """To be run once, before web, worker and beat are started."""
        held = Job.objects.filter(lease_until__isnull=False)
        with transaction.atomic():
            for table, jump in JUMPS.items():
                self.stdout.write(f"ids of {table.partition('_')[2]}s go on after {_skip_ids(table, jump)}")
            pilots = Credential.objects.filter(
                kind=Credential.Kind.PILOT, subject__in=held.values("lease_holder"), revoked_at__isnull=True
            )
            revoked = revoke(pilots, reason="manage.py after_restore")
            last = held.aggregate(last=Max("lease_until"))["last"]
            begin_anew("manage.py after_restore")
        self.stdout.write(
            f"{held.count()} jobs were held by pilots at the time of the backup; they are given out again when their leases end"
            + (f", the last ends at {last:%Y-%m-%d %H:%M:%S} UTC" if last else "")
        )
        self.stdout.write(f"{revoked} pilots of these jobs register again")


def _skip_ids(table: str, jump: int) -> int:
    """The last id that nothing will get."""
    with connection.cursor() as cursor:
        cursor.execute(NEXT, {"table": table, "jump": jump})
        (last,) = cursor.fetchone()
    return int(last)
