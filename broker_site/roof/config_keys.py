"""Configuration keys of each agent of the table: whether and how often it runs."""

from broker_site.foundation.agency.duties import AGENTS
from broker_site.foundation.gdpconfig.table import declare_table
from broker_site.roof import beat  # noqa: F401 - fills the table

for _duty in AGENTS.values():
    declare_table(f"""
[agents]
PERIOD_{_duty.name} | duration | {_duty.period_s}s | 50ms..1d | facts, agents 6; decisions A3, G4
    Longest time between two runs of the agent {_duty.name}; a look message makes it run sooner.
ENABLED_{_duty.name} | bool | true | | mission U4
    Whether the agent {_duty.name} runs. Off stops its part of the system until it is on again.
""")
