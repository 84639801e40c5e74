"""How much may be on the way for one user or group: else the tasks that move data are throttled.

Source: seed 001, PRESTAGE_LIMIT (row J26); decisions A2, D25. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

GB = 1e9
DISK_TRANSFERS, TAPE_STAGING = "disk_transfers", "tape_staging"
"""Causes of a throttled task."""

CAUSES = (DISK_TRANSFERS, TAPE_STAGING)

GROUP = "group:"


class Underway(NamedTuple):
    """Bytes that are brought for an owner from disks, and those that are staged from tape for him."""

    disk: int = 0
    tape: int = 0


def excesses(owner: str, underway: Underway, limits: Mapping[str, Any]) -> dict[str, str]:
    """The causes for which the owner has too much on the way, with what to say. `limits`: component anal_watchdog."""
    found = {}
    for cause, size, key, doing in (
        (DISK_TRANSFERS, underway.disk, "USER_TRANSFER_LIMIT", "are brought"),
        (TAPE_STAGING, underway.tape, "USER_PRESTAGE_LIMIT", "are staged from tape"),
    ):
        if limits[key] is not None and size > limits[key] * GB:
            found[cause] = f"{size / GB:,.0f} GB of input {doing} for {_named(owner)}, more than the limit of {limits[key]:g} GB"
    return found


def _named(owner: str) -> str:
    return f"the group {owner.removeprefix(GROUP)}" if owner.startswith(GROUP) else owner
