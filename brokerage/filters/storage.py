"""Whether the storage endpoints of a queue are in service."""

from __future__ import annotations

from brokerage.rules.decision.declare import Criterion, Numbers, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues


@filters(
    Criterion("read_lan_blacklist", "none of its endpoints can be read by jobs", "temporary"),
    Criterion("write_lan_blacklist", "none of its endpoints can be written by jobs", "temporary"),
    Criterion("write_wan_blacklist", "its endpoint cannot receive input", "temporary"),
    Criterion("read_wan_blacklist", "its endpoint cannot send output", "temporary"),
    Criterion("source_blacklist", "the input is not there, and nothing that has it can send it", "temporary"),
)
def storage_blacklists(_ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags, Flags, Flags, Flags, Flags], Numbers]:
    """No endpoint that a job there needs is blacklisted, nor every source of its input.

    Nothing travels to or from a queue of the nucleus that has all the input. Source: seed 000; facts on the brokerage 2.3 row 17.
    """
    receives, sends = queues.write_wan_ok | queues.still, queues.read_wan_ok | queues.still
    return (queues.read_lan_ok, queues.write_lan_ok, receives, sends, queues.source_ok), {}
