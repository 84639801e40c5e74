"""The record of the agents, to read."""

from __future__ import annotations

from django.contrib import admin

from broker_site.foundation.adminpages import ReadOnlyAdmin, cut
from broker_site.foundation.agency.models import Agent


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    """What each agent did last. Period and switch are keys of the configuration."""

    list_display = (
        "name",
        "last_start",
        "last_success",
        "rows",
        "total_rows",
        "runs",
        "took",
        "last_error_at",
        "fault",
        "left",
    )
    ordering = ("name",)

    @admin.display(description="took, s", ordering="duration_s")
    def took(self, agent: Agent) -> str:
        """To the millisecond: what is stored has more digits than anybody reads."""
        return f"{agent.duration_s:.3f}"

    @admin.display(description="last error")
    def fault(self, agent: Agent) -> str:
        return cut(agent.last_error, 80)

    @admin.display(description="left out")
    def left(self, agent: Agent) -> str:
        return cut(agent.left_out, 80)
