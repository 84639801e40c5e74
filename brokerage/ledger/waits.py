"""Tasks that found no place wait: unless a storage came or went since the world was read that they were judged by.

A storage that comes back wakes who waits. A decision that was under way then waits for nothing that is still so: the lock keeps
both from passing each other, and the time of the last change tells whether there was one in between.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction
from django.db.models import Max

from broker_site.foundation.agency.run import Run
from brokerage.models import StorageEndpoint
from workqueues.ledger.holds import retry_later, set_pending

_ALONE = "SELECT pg_advisory_xact_lock(hashtext('roots of storages'))"
_TOGETHER = "SELECT pg_advisory_xact_lock_shared(hashtext('roots of storages'))"


def last_root_change() -> datetime | None:
    """When the root of a storage last came or went."""
    changed: datetime | None = StorageEndpoint.objects.aggregate(last=Max("root_since"))["last"]
    return changed


def lock_roots() -> None:
    """For the rest of the caller's transaction nobody begins to wait for a place."""
    with connection.cursor() as cursor:
        cursor.execute(_ALONE)


def wait_for_place(
    run: Run, task_id: int, reason: str, wait_s: float, judged_by: datetime | None, *, pending: bool = False
) -> None:
    """A claimed task waits for `wait_s` seconds, in its state or pending; for none where storages changed since `judged_by`."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_TOGETHER)
        if last_root_change() != judged_by:
            wait_s = 0.0
        if pending:
            set_pending(run.id, task_id, reason, wait_s, run.who)
        else:
            retry_later(run.id, task_id, reason, wait_s)
