"""Whether the network of a queue's nodes is what the task wants."""

from __future__ import annotations

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.connectivity import accepts
from brokerage.rules.facts.snapshot import Queues


@filter("network", "the task wants {wanted}, its nodes have {wnconnectivity}")
def connected(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """wnconnectivity suits the ipConnectivity of the task, if it sets any; not where it names its one queue. Source: seed 000."""
    wanted = f"{ask.ip_connectivity or ''}{f'#{ask.ip_stack}' if ask.ip_stack else ''}"
    numbers = {"wanted": wanted, "wnconnectivity": queues.wnconnectivity}
    if not wanted or ask.bound_to_one:
        return True, numbers
    accepting = queues.where_text("wnconnectivity", wanted, lambda offered: accepts(offered, wanted))
    return accepting, numbers
