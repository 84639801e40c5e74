"""The snapshot that pages decide on: for a moment the same one, so that who tries this and that waits once.

What changes by itself (jobs, pilots, loads, remaining work) is up to KEPT_S old; what people and feeds say of sites, storages,
queues and links is that of now, since a change of any row ends it.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from django.db import connection

from brokerage.queries.world import load_snapshot
from brokerage.rules.world.grid_snapshot import GridSnapshot

KEPT_S = 15.0
_TABLES = ("site", "storageendpoint", "queuestorage", "link", "transferlink", "declaredslots", "software")
# A row that is written anew has the number of a later transaction. Of queues also what jobs do is noted in their row.
_SEEN = f"""
{" UNION ALL ".join(f"SELECT count(*), sum(xmin::text::bigint) FROM brokerage_{table}" for table in _TABLES)} UNION ALL
SELECT count(*), sum(hashtextextended((to_jsonb(q) - 'last_start')::text, 0)) FROM brokerage_computingqueue q
"""


class _Kept(NamedTuple):
    seen: list[tuple[Any, ...]]
    until: float
    snapshot: GridSnapshot


_kept: _Kept | None = None


def recent_snapshot() -> GridSnapshot:
    """That of this process, or a new one; one statement where it has one."""
    global _kept
    with connection.cursor() as cursor:
        cursor.execute(_SEEN)
        seen = cursor.fetchall()
    if _kept is None or _kept.seen != seen or time.monotonic() >= _kept.until:
        _kept = _Kept(seen, time.monotonic() + KEPT_S, load_snapshot())
    return _kept.snapshot


def forget_snapshot() -> None:
    """The next one is new; for this process only."""
    global _kept
    _kept = None
