"""Where a task stands, in one sentence: what happens next and who does it. For who asks why nothing happens yet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from workqueues.states import TASK

NEXT: Mapping[str, str] = {
    "registered": "the agent refine turns its parameters into datasets next",
    "defined": "the agent feed brings the files of its inputs in next",
    "assigning": "the agent assign looks for a nucleus",
    "ready": "the agent generate makes its jobs next",
    "running": "its jobs run; the agent generate makes more as long as there are files",
    "pending": "it waits, then it is tried again",
    "prepared": "the agent finish decides how it ends",
    "passed": "the agent finish decides how it ends",
    "tobroken": "the agent finish closes it",
    "aborting": "the agent command waits until its jobs are gone",
    "finishing": "the agent command waits until its jobs are gone",
    "toretry": "the agent command makes its failed files ready again",
    "exhausted": "somebody has to look: retry, finish or kill it",
}
"""State to what comes next; the states of features that are not built yet have no agent."""


def standing(
    status: str, *, old_status: str = "", reason: str = "", next_look_at: datetime | None = None, throttled: str = ""
) -> str:
    """The sentence. `reason` is what the last agent left with the task, `next_look_at` when a waiting task is looked at again.

    `throttled`: why no jobs are made for its share or work queue, where that is so.
    """
    if status in TASK.final:
        said = f"it has ended as {status}"
    else:
        said = f"it is {status}: {NEXT.get(status, 'no agent takes it from there')}"
    if status == "pending" and old_status:
        said += f" (it was {old_status})"
    if throttled:
        said += f"; {throttled}"
    if reason:
        said += f"; {reason}"
    if next_look_at is not None and status not in TASK.final:
        said += f"; next look at {next_look_at:%Y-%m-%d %H:%M:%S} UTC"
    return said
