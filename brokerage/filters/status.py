"""Whether a queue is in service."""

from __future__ import annotations

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues


@filter("status", "its status is {status}, not online")
def status(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """The status is online, unless the task itself names the queue. Source: seed 000; facts on the brokerage 4."""
    return True if ask.preassigned else queues.online, {"status": queues.status}
