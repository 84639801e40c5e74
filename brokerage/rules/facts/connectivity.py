"""Whether the network of a queue's nodes is what a task wants: `connectivity#stack` on both sides (seed 000; decision B7)."""

from __future__ import annotations

ACCEPTED = {"full": ("full", "http", "none"), "http": ("http", "none"), "none": ("none",)}
"""Connectivity of a queue -> what tasks may want there; a queue that says nothing is taken as full."""


def split(text: str | None) -> tuple[str, str]:
    """Connectivity and stack, either may be empty."""
    connectivity, _, stack = (text or "").partition("#")
    return connectivity.strip(), stack.strip()


def accepts(queue: str | None, task: str | None) -> bool:
    """Whether the nodes suit the task; what the task does not set is not checked.

    A queue with a stack takes tasks that ask for that stack or for none; one without a stack those that ask for none.
    """
    offered, offered_stack = split(queue)
    wanted, wanted_stack = split(task)
    if wanted and wanted not in ACCEPTED.get(offered or "full", ()):
        return False
    return not wanted_stack or wanted_stack == offered_stack
