"""The weight of the analysis broker (seed 000)."""

from __future__ import annotations

from brokerage.rules.decision.declare import weight
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Floats
from brokerage.rules.facts.snapshot import Queues


@weight("running_over_all_queued")
def running_over_all_queued(_ask: Ask, queues: Queues, _config: Config) -> Floats:
    """(running + 1) / (activated + assigned + starting + defined + 1)."""
    return (queues.busy + 1) / (queues.queued_in_all_states + 1)
