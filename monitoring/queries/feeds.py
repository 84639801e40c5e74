"""How old the grid is, for the page of queues: a line for each feed."""

from __future__ import annotations

from dataclasses import dataclass

from broker_site.foundation.kernel import clock
from brokerage.queries.feeds import feed_states
from monitoring.queries.database import alias


@dataclass(frozen=True, slots=True)
class FeedLine:
    """One feed. `tone`: bad where tasks wait for it, wait where it fails, is old or has faulty entries, else good."""

    tone: str
    sentence: str


def feed_lines() -> list[FeedLine]:
    """The enabled feeds by name."""
    lines = []
    for state in feed_states(clock.now(), alias()):
        unwell = state.state == "old" or state.feed.fault or state.feed.faulty
        tone = "bad" if state.state == "too old" else "wait" if unwell else "good"
        told = {"too old": "; too old to decide on: tasks wait", "old": "; old"}.get(state.state, "")
        lines.append(FeedLine(tone, state.sentence + told))
    return lines
