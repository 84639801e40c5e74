"""The agents: what each last did, and whether it is well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.gdpconfig import KEYS
from broker_site.foundation.kernel import clock
from monitoring.queries.database import alias

Health = Literal["well", "failing", "late", "off", "never"]
PATIENCE = 3
"""Periods without a success after which an agent is late."""
GRACE_S = 30.0
"""Seconds by which an agent of a very short period may be late without anybody being told."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent. `period_s`: longest time between two runs; `rows`: handled by the last run."""

    name: str
    health: Health
    enabled: bool
    period_s: float
    last_start: datetime | None
    last_success: datetime | None
    duration_s: float
    rows: int
    total_rows: int
    runs: int
    last_error_at: datetime | None
    last_error: str


def agent_rows() -> list[AgentRow]:
    """Every declared agent in life order, also those that never ran."""
    known = {agent.name: agent for agent in Agent.objects.using(alias())}
    config = gdpconfig.component("agents")
    names = [key.name.removeprefix("PERIOD_") for key in KEYS if key.component == "agents" and key.name.startswith("PERIOD_")]
    return [
        _row(known.get(name) or Agent(name=name), config[f"PERIOD_{name}"], config[f"ENABLED_{name}"], clock.now())
        for name in names
    ]


def _row(agent: Agent, period_s: float, enabled: bool, now: datetime) -> AgentRow:
    return AgentRow(
        name=agent.name,
        health=health(agent, period_s, enabled, now),
        enabled=enabled,
        period_s=period_s,
        last_start=agent.last_start,
        last_success=agent.last_success,
        duration_s=agent.duration_s,
        rows=agent.rows,
        total_rows=agent.total_rows,
        runs=agent.runs,
        last_error_at=agent.last_error_at,
        last_error=agent.last_error,
    )


def health(agent: Agent, period_s: float, enabled: bool, now: datetime) -> Health:
    """How the agent is: an error counts until a run succeeds."""
    if not enabled:
        return "off"
    if agent.last_error_at is not None and (agent.last_success is None or agent.last_error_at > agent.last_success):
        return "failing"
    if agent.last_success is None:
        return "never"
    return "late" if now - agent.last_success > timedelta(seconds=PATIENCE * period_s + GRACE_S) else "well"
