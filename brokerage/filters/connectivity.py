"""Whether the network of a queue's nodes is what the task wants: `connectivity#stack` on both sides (seed 000; decision B7)."""

from __future__ import annotations

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues

ACCEPTED = {"full": ("full", "http", "none"), "http": ("http", "none"), "none": ("none",)}
"""Connectivity of a queue -> what tasks may want there; a queue that says nothing is taken as full."""


def split(text: str | None) -> tuple[str, str]:
    """Connectivity and stack, either may be empty."""
    connectivity, _, stack = (text or "").partition("#")
    return connectivity.strip(), stack.strip()


def accepts(queue: str | None, task: str | None) -> bool:
    """Whether the nodes suit the task; what the task does not set is not checked.

    A queue with a stack takes tasks that ask for that stack or for none; one without a stack those that ask for none.
    """
    offered, offered_stack = split(queue)
    wanted, wanted_stack = split(task)
    if wanted and wanted not in ACCEPTED.get(offered or "full", ()):
        return False
    return not wanted_stack or wanted_stack == offered_stack


@filter("network", "the task wants {wanted}, its nodes have {wnconnectivity}")
def connectivity(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """wnconnectivity suits the ipConnectivity of the task, if it sets any; not where it names its one queue. Source: seed 000."""
    wanted = f"{ask.ip_connectivity or ''}{f'#{ask.ip_stack}' if ask.ip_stack else ''}"
    numbers = {"wanted": wanted, "wnconnectivity": queues.wnconnectivity}
    if not wanted or ask.bound_to_one:
        return True, numbers
    accepting = queues.where_text("wnconnectivity", wanted, lambda offered: accepts(offered, wanted))
    return accepting, numbers
