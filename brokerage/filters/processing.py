"""Whether a queue takes work of the task's processing type."""

from __future__ import annotations

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues


@filter("processing", "it does not take work of the type {processing_type}")
def processing_type(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """The type is among those that the queue allows, if it lists any, and not among those it excludes. Source: facts 4, 5.1."""
    wanted = ask.processing_type
    takes = queues.where_text("allowed_processing", wanted, lambda types: not types or wanted in types.split("|"))
    spares = queues.where_text("excluded_processing", wanted, lambda types: not types or wanted not in types.split("|"))
    return takes & spares, {"processing_type": wanted}
