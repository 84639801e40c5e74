"""What became of the attempts on each link, counted for a while, and what follows where most of them failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction

from brokerage.rules.transfers.link_health import blocked_why, judge_link
from brokerage.rules.transfers.room import Way

_COUNT = """
INSERT INTO brokerage_transferlink AS l (source_id, destination_id, counted_since, n_done, n_failed)
SELECT g.source, g.destination, now(), g.done, g.failed
FROM unnest(%s::text[], %s::text[], %s::int[], %s::int[]) AS g(source, destination, done, failed)
    JOIN brokerage_site s ON s.name = g.source JOIN brokerage_site d ON d.name = g.destination
ORDER BY 1, 2
ON CONFLICT (source_id, destination_id) DO UPDATE SET
    n_done = EXCLUDED.n_done + CASE WHEN l.counted_since > now() - make_interval(secs => %s) THEN l.n_done ELSE 0 END,
    n_failed = EXCLUDED.n_failed + CASE WHEN l.counted_since > now() - make_interval(secs => %s) THEN l.n_failed ELSE 0 END,
    counted_since = CASE WHEN l.counted_since > now() - make_interval(secs => %s) THEN l.counted_since ELSE now() END
RETURNING id, source_id, destination_id, n_done, n_failed, coalesce(halved_until > now(), false)
"""
_HALVE = """
UPDATE brokerage_transferlink SET halved_until = now() + make_interval(secs => %s),
    counted_since = now(), n_done = 0, n_failed = 0
WHERE id = %s
"""
_BLOCK = """
UPDATE brokerage_transferlink SET blocked_until = greatest(blocked_until, now() + make_interval(secs => %s)), blocked_why = %s,
    halved_until = NULL, counted_since = now(), n_done = 0, n_failed = 0
WHERE id = %s
"""


def count_attempts(attempts: Mapping[Way, tuple[int, int]], config: Mapping[str, Any]) -> list[str]:
    """Add attempts that ended (well, failed) on each link, and halve or block those where too many failed: what was done.

    `config`: the keys of the component `transfers`.
    """
    told = []
    with transaction.atomic(), connection.cursor() as cursor:
        ways = sorted(attempts)
        window = config["LINK_WINDOW"]
        columns = [
            [way.source for way in ways],
            [way.destination for way in ways],
            *zip(*(attempts[way] for way in ways), strict=True),
        ]
        cursor.execute(_COUNT, [*map(list, columns), window, window, window])
        for id_, source, to, done, failed, halved in cursor.fetchall():
            step = judge_link(done, failed, halved, config)
            if step == "halve":
                cursor.execute(_HALVE, [window, id_])
                told.append(f"the link from {source} to {to} has half of its transfers: {blocked_why(source, to, done, failed)}")
            elif step == "block":
                cursor.execute(_BLOCK, [config["LINK_BLOCK"], blocked_why(source, to, done, failed), id_])
                told.append(f"the link from {source} to {to} is blocked: {blocked_why(source, to, done, failed)}")
    return told
