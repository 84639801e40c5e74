"""Configuration keys of a broker that pulls work from a parent (row X5); those of its pulls are in the component too."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.table import declare_table

declare_table(
    """
[elements]
CHILD_DRAINS | bool | false | | row W6
    As a child: pull no more, and end what was pulled.
PARENT_TIMEOUT | duration | 30s | 100ms..10min | row X5
    As a child: within this time an answer of the parent must be there whole.
"""
)
