"""How quickly a queue works off what waits there: running over queued jobs."""

from __future__ import annotations

from brokerage.rules.ask import Ask
from brokerage.rules.columns import Floats
from brokerage.rules.declare import Config, weight
from brokerage.rules.snapshot import Queues


@weight("running_over_waiting")
def running_over_waiting(_ask: Ask, queues: Queues, _config: Config) -> Floats:
    """(running + 1) / (activated + defined + 1) / (defined + 1), jobs of all work queues. Source: facts on the brokerage 4."""
    return (queues.running + 1) / (queues.activated + queues.defined + 1) / (queues.defined + 1)
