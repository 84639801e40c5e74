"""The task broker.

At which site the output of a task is collected. Source: seed 001, task brokerage; facts on the brokerage 5.
"""

from __future__ import annotations

from brokerage.filters.nuclei import (
    active,
    backlog_small,
    can_run,
    input_there,
    named_nucleus,
    outputs_have_place,
    space_left,
)
from brokerage.rules.decision.declare import BrokeragePolicy, Draw, PendingFor, policy
from brokerage.weights.nucleus import input_there as part_of_input
from brokerage.weights.nucleus import less_work_ahead, not_from_tape


@policy(vo="*", activity="nucleus")
class Nucleus(BrokeragePolicy):
    """An active nucleus with room for what comes and some of the input, drawn by its weight; its candidates are sites."""

    components = ("taskbrokerage",)
    candidates = named_nucleus
    filters = (active, space_left, input_there, can_run, backlog_small, outputs_have_place)
    weights = (less_work_ahead, part_of_input, not_from_tape)
    select, otherwise = Draw(), PendingFor("PENDING_NUCLEUS")
