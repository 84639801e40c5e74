"""Where a retried task goes on (decision D19)."""

from __future__ import annotations

from typing import Literal

Step = Literal["registered", "defined", "assigning", "ready"]


def first_open_step(*, defined: bool, fed: bool, assigned: bool) -> Step:
    """The first state on the way to its jobs that a task has not left behind.

    `defined`: it has datasets; `fed`: their files are read from the catalogue; `assigned`: it has a nucleus, or needs none.
    """
    if not defined:
        return "registered"
    if not fed:
        return "defined"
    return "ready" if assigned else "assigning"
