"""Whether a link is to blame for the failures on it, and what follows: half as many transfers, then none for a while. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from broker_site.foundation.kernel.machine import Names

OF_THE_LINK = Names("checksum timeout auth unknown")
"""Reasons that say something of the way; a full disk or a lost file does not."""

Step = Literal["", "halve", "block"]


def judge_link(done: int, failed: int, halved: bool, config: Mapping[str, Any]) -> Step:
    """What follows from the attempts that were counted. `halved`: it has half of its transfers already."""
    counted = done + failed
    if counted < config["LINK_JUDGED_FROM"] or failed <= config["LINK_FAILED_PART"] * counted:
        return ""
    return "block" if halved else "halve"


def blocked_why(source: str, to: str, done: int, failed: int) -> str:
    """What people read of a link that failures blocked."""
    return f"{failed} of the last {done + failed} attempts from {source} to {to} failed"
