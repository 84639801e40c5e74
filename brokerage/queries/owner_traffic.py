"""How much input is on the way for each user or group."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from django.db import connection

from broker_site.foundation import gdpconfig
from brokerage.rules.transfers.owner_limits import Underway, excesses
from brokerage.rules.transfers.wishes import INPUT_ROLES

_UNDERWAY = f"""
SELECT vo, owner, coalesce(sum(bytes) FILTER (WHERE NOT tape), 0)::bigint, coalesce(sum(bytes) FILTER (WHERE tape), 0)::bigint
FROM (
    SELECT w.vo, w.owner, t.bytes, bool_or(w.role = 'stage') AS tape
    FROM brokerage_transferwish w JOIN brokerage_transfer t ON t.id = w.transfer_id
    WHERE w.closed_at IS NULL AND w.role IN ({INPUT_ROLES.sql}) AND w.owner <> ''
    GROUP BY w.vo, w.owner, t.id, t.bytes
) AS each GROUP BY 1, 2
"""


class OwnerTraffic:
    """What is on the way for whom, read once and only if somebody asks."""

    @cached_property
    def underway(self) -> Mapping[tuple[str, str], Underway]:
        """By VO and owner: each transfer counts once, whoever of his jobs wish it."""
        with connection.cursor() as cursor:
            cursor.execute(_UNDERWAY)
            return {(vo, owner): Underway(disk, tape) for vo, owner, disk, tape in cursor.fetchall()}

    def excess(self, vo: str, owner: str) -> dict[str, str]:
        """Why the owner has too much on the way, by cause; nothing where he has not."""
        underway = self.underway.get((vo, owner))
        return excesses(owner, underway, gdpconfig.component("anal_watchdog", vo=vo)) if underway else {}
