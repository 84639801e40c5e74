"""How the root of a storage endpoint is, from what was seen of it, and what that means for its use. Pure.

Who looks: `brokerage.feeds.storage_roots`, pilots (`brokerage.pilot.storage_root`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

RootState = Literal["unmarked", "up", "down", "read only", "full"]
ROOT_STATES = get_args(RootState)
READS, WRITES = ("read_lan", "read_wan"), ("write_lan", "write_wan")


class RootLook(NamedTuple):
    """What was seen of a root: why it is not there (empty: it is), whether it can be written to, its free and whole GB."""

    fault: str = ""
    writable: bool = True
    free_gb: float = 0.0
    size_gb: float = 0.0


class RootVerdict(NamedTuple):
    """State of a root, and what is wrong in words."""

    state: RootState
    fault: str = ""


def judge_root(mark: str, look: RootLook, full_below_gb: float) -> RootVerdict:
    """The state of a root. One that was never marked may be any folder: whatever is seen there, nothing follows from it."""
    if not mark:
        return RootVerdict("unmarked", look.fault or "its root was never marked (manage.py storage mark)")
    if look.fault:
        return RootVerdict("down", look.fault)
    if not look.writable:
        return RootVerdict("read only", "its root cannot be written to")
    if look.free_gb < full_below_gb:
        return RootVerdict("full", f"{look.free_gb:.3g} GB are free, less than {full_below_gb:g} GB")
    return RootVerdict("up")


def told_space_gb(free_gb: float) -> float:
    """Free space as it is told: two digits, downwards, so that what is told changes seldom."""
    if free_gb < 1:
        return 0.0
    digit = 10.0 ** (math.floor(math.log10(free_gb)) - 1)
    return round(math.floor(free_gb / digit + 1e-9) * digit, 1)


def access_left(status: Mapping[str, str] | None, state: str) -> Mapping[str, str]:
    """The accesses of an endpoint that are ON or OFF by its document, under the state of its root."""
    closed = (*READS, *WRITES) if state == "down" else WRITES if state in ("read only", "full") else ()
    return {**(status or {}), **dict.fromkeys(closed, "OFF")}
