"""Storage endpoints at which there is something to remove: cache copies, or copies that are `deleting`."""

from __future__ import annotations

from django.db import connection

_WITH_CACHES = """
SELECT e.name FROM brokerage_storageendpoint e
WHERE EXISTS (SELECT FROM workqueues_replica r WHERE r.storage = e.name AND r.kind = 'cache' AND r.state = 'available')
ORDER BY 1
"""
_WITH_REMOVALS = """
SELECT e.name FROM brokerage_storageendpoint e
WHERE EXISTS (
    SELECT FROM workqueues_replica r
    WHERE r.storage = e.name AND r.state <> 'available' AND r.state = 'deleting'
        AND (r.removal_at IS NULL OR r.removal_at <= now()))
ORDER BY 1
"""


def storages_with_caches() -> list[str]:
    """Those with a cache copy."""
    with connection.cursor() as cursor:
        cursor.execute(_WITH_CACHES)
        return [name for (name,) in cursor]


def storages_with_removals() -> list[str]:
    """Those with a copy whose removal is due."""
    with connection.cursor() as cursor:
        cursor.execute(_WITH_REMOVALS)
        return [name for (name,) in cursor]
