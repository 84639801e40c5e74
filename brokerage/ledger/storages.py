"""What is written of the roots of storage endpoints: their marks, how they are, and who waits for them."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection, transaction
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look_after_commit
from brokerage.ledger.waits import grid_changed, lock_roots
from brokerage.models import StorageEndpoint
from brokerage.rules.grid.storage_root import RootVerdict
from workqueues.states import TASK


def note_mark(name: str, mark: str) -> None:
    """An endpoint is marked from now on; it is looked at next."""
    StorageEndpoint.objects.filter(name=name).update(mark=mark)
    look_after_commit("storage")


def use_next_key(name: str) -> int:
    """Sign addresses of the endpoint with its next key from now on: its number. Those signed before are void at a server
    that does not have the old key any more.
    """
    with transaction.atomic():
        endpoint = StorageEndpoint.objects.select_for_update().get(name=name)
        endpoint.key_number += 1
        endpoint.save(update_fields=["key_number"])
    look_after_commit("storage")
    return int(endpoint.key_number)


def note_root(endpoint: StorageEndpoint, verdict: RootVerdict, size_gb: float | None) -> bool:
    """Note how the root of an endpoint is: whether its state is another than before.

    When it is no longer down, its files are looked at again, and tasks for which no place was found. Those that wait in a group
    are when the group is judged, so that thousands are not looked at in vain.
    """
    moved = verdict.state != endpoint.root_state
    if not moved and (verdict.fault, size_gb) == (endpoint.root_fault, endpoint.root_gb):
        return False
    with transaction.atomic():
        lock_roots()
        StorageEndpoint.objects.filter(name=endpoint.name).update(
            root_state=verdict.state,
            root_fault=verdict.fault[:510],
            root_gb=size_gb,
            root_since=Now() if moved else endpoint.root_since,
        )
        if moved:
            grid_changed()
        if moved and endpoint.root_state == "down":
            _wake(endpoint.name)
    return moved


def note_space(free_gb: Mapping[str, float | None]) -> None:
    """Note the free space that was seen at roots; None where they are not there."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE brokerage_storageendpoint e SET root_free_gb = g.free FROM unnest(%s::text[], %s::float8[]) AS g(name, free)
            WHERE e.name = g.name AND e.root_free_gb IS DISTINCT FROM g.free
            """,
            [list(free_gb), list(free_gb.values())],
        )


def _wake(storage: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workqueues_file SET look_due = now() WHERE look_due > now() AND held_storage = %s AND held <> ''", [storage]
        )
        cursor.execute(
            f"""
            UPDATE workqueues_task SET next_look_at = now() WHERE id IN (
                SELECT id FROM workqueues_task t WHERE status IN ({TASK.placeless.sql}) AND next_look_at > now()
                    AND NOT (%s AND EXISTS (
                        SELECT FROM brokerage_taskwait w WHERE w.task_id = t.id AND w.until = t.next_look_at))
                ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
            """,
            [bool(gdpconfig.value("jobbroker", "LOOK_AGAIN"))],
        )
    look_after_commit("feed", "wake", "assign", "generate")
