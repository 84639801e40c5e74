"""The task broker.

At which site the output of a task is collected. Source: seed 001, task brokerage; facts on the brokerage 5.
"""

from __future__ import annotations

from brokerage.filters.nuclei import (
    nonpreassigned_nucleus,
    nucleus_input,
    nucleus_job,
    nucleus_outputs,
    nucleus_space,
    nucleus_status,
    transfer_backlog,
)
from brokerage.rules.decision.declare import BrokeragePolicy, Draw, PendingFor, policy
from brokerage.weights.nucleus import input_there as part_of_input
from brokerage.weights.nucleus import less_work_ahead, not_from_tape


@policy(vo="*", activity="nucleus")
class Nucleus(BrokeragePolicy):
    """An active nucleus with room for what comes and some of the input, drawn by its weight; its candidates are sites."""

    components = ("taskbrokerage",)
    candidates = nonpreassigned_nucleus
    filters = (nucleus_status, nucleus_space, nucleus_input, nucleus_job, transfer_backlog, nucleus_outputs)
    weights = (less_work_ahead, part_of_input, not_from_tape)
    select, otherwise = Draw(), PendingFor("PENDING_NUCLEUS")
