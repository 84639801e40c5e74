"""Configuration keys of each agent of the table: whether and how often it runs."""

from broker_site.foundation.agency.duties import AGENTS
from broker_site.foundation.gdpconfig.keys import Key, declare
from broker_site.roof import beat  # noqa: F401 - fills the table

for _duty in AGENTS.values():
    declare(
        Key(
            component="agents",
            name=f"PERIOD_{_duty.name}",
            type="duration",
            default=_duty.period_s,
            low=0.05,
            high=86400.0,
            doc=f"Longest time between two runs of the agent {_duty.name}; a look message makes it run sooner.",
            source="facts, agents 6; decisions A3, G4",
        )
    )
    declare(
        Key(
            component="agents",
            name=f"ENABLED_{_duty.name}",
            type="bool",
            default=True,
            doc=f"Whether the agent {_duty.name} runs. Off stops its part of the system until it is on again.",
            source="mission U4",
        )
    )
