"""How quickly a queue works off what waits there: running over queued jobs."""

from __future__ import annotations

from brokerage.rules.decision.declare import weight
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Floats
from brokerage.rules.facts.snapshot import Queues


@weight("running_over_waiting")
def running_over_waiting(_ask: Ask, queues: Queues, _config: Config) -> Floats:
    """(running + 1) / (activated + defined + 1) / (defined + 1), jobs of all work queues. Source: facts on the brokerage 4."""
    return (queues.running + 1) / (queues.activated + queues.defined + 1) / (queues.defined + 1)
