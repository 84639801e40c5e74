"""The agents: what each last did, and whether it is well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.alerts import recent_alerts
from broker_site.foundation.agency.duties import AGENTS, Health, health
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.kernel import clock
from monitoring.queries.database import alias
from workqueues.models import Task


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent. `period_s`: longest time between two runs; `rows`: handled by the last run; `left_out`: what
    it could not work on."""

    name: str
    health: Health
    what_for: str
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
    left_out: str


def agents_context() -> dict[str, Any]:
    """How many tasks no agent works on, as one failed on them too often; the alerts of the last day, by what they say."""
    quarantined = Task.objects.using(alias()).filter(quarantined_at__isnull=False).count()
    return {"quarantined": quarantined, "alerts": recent_alerts(24, alias())}


STORED = (
    "last_start", "last_success", "duration_s", "rows", "total_rows", "runs", "last_error_at", "last_error", "left_out",
)  # fmt: skip
"""Columns that are shown as they are stored."""


def agent_rows() -> list[AgentRow]:
    """Every declared agent in life order, also those that never ran."""
    known = {agent.name: agent for agent in Agent.objects.using(alias())}
    config = gdpconfig.component("agents")
    now = clock.now()
    table = []
    for name, duty in AGENTS.items():
        agent = known.get(name) or Agent(name=name)
        period_s, enabled = config[f"PERIOD_{name}"], config[f"ENABLED_{name}"]
        status = health(agent.last_success, agent.last_error_at, period_s=period_s, enabled=enabled, now=now)
        stored = {column: getattr(agent, column) for column in STORED}
        table.append(AgentRow(name, status, duty.what_for, enabled, period_s, **stored))
    return table
