"""Configuration keys of a broker that pulls work from a parent (row X5); those of its pulls are in the component too."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.table import declare_table

declare_table(
    """
[elements]
CHILD_DRAINS | bool | false | | row W6
    As a child: pull no more, and end what was pulled.
STANDSTILL | duration | 3h | 1s..30d | row W6
    As a child: an element of which no job was made and none lives for so long is given back to the parent. One whose numbers
    are used up, or that goes on only by hand, is given back at once.
WORK_WAIT | duration | 10min | 1s..30d | row W6
    As a child: an element is given back whose work the parent has not given for so long, though it answers else. Until then
    nothing more is pulled.
PARENT_TIMEOUT | duration | 30s | 100ms..10min | row X5
    As a child: within this time an answer of the parent must be there whole.
"""
)
