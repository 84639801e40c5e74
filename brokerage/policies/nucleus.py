"""The task broker.

At which site the output of a task is collected. Source: seed 001, task brokerage; facts on the brokerage 5.
"""

from __future__ import annotations

from brokerage.filters.nuclei import active, backlog_small, named_nucleus, space_left
from brokerage.rules.declare import BrokeragePolicy, Draw, PendingFor, policy
from brokerage.weights.space import free_space


@policy(vo="*", activity="nucleus")
class Nucleus(BrokeragePolicy):
    """An active nucleus with room for what comes, drawn in proportion to its room; its candidates are sites, not queues."""

    components = ("taskbrokerage",)
    candidates = named_nucleus
    filters = (active, backlog_small, space_left)
    weights = (free_space,)
    select, otherwise = Draw(), PendingFor("PENDING_NUCLEUS")
