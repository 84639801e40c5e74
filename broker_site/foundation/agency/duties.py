"""What each agent is for: declared once, in life order, by `broker_site.roof.beat`; read by all who tell of agents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from broker_site.foundation.kernel.registry import Registry

Health = Literal["well", "failing", "late", "off", "never"]

OFTEN_S = 10.0
"""Default period of the agents that run most often."""

LATE_PERIODS = 3
GRACE_S = 30.0
"""An agent is late that has not ended a run well for so many of its periods and these seconds."""


@dataclass(frozen=True, slots=True)
class AgentDuty:
    """One agent. `takes`: states of the tasks that it works on next; `period_s`: longest time between two runs by default."""

    name: str
    period_s: float
    takes: tuple[str, ...]
    what_for: str


AGENTS: Registry[AgentDuty] = Registry("agent")


def agent_of(status: str) -> AgentDuty | None:
    """The agent that works next on a task in this state; None where a person or a job has to."""
    return next((duty for duty in AGENTS.values() if status in duty.takes), None)


def late_after_s(period_s: float) -> float:
    """Seconds after its last good run from which an agent with this period is late."""
    return LATE_PERIODS * period_s + GRACE_S


def health(
    last_success: datetime | None, last_error_at: datetime | None, *, period_s: float, enabled: bool, now: datetime
) -> Health:
    """How an agent is: an error counts until a run succeeds."""
    if not enabled:
        return "off"
    if last_error_at is not None and (last_success is None or last_error_at > last_success):
        return "failing"
    if last_success is None:
        return "never"
    return "late" if now - last_success > timedelta(seconds=late_after_s(period_s)) else "well"
