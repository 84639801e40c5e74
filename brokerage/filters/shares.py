"""Whether the work of a task has a share at a queue, by its fairsharepolicy."""

from __future__ import annotations

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.grid.fair_share import Work, accepts

NO_SHARE = "work of the group {group} has no share: {policy}"


@filter("zeroshare", NO_SHARE, keys=("PROCESSING_GROUPS",))
def zero_share(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """The queue's fairsharepolicy leaves the work of the task a share. Source: seed 000; facts 2.4; decision B11.

    Not for tests and validation, but for one that names its one queue.
    """
    return _zero_share(ask, queues, config)


@filter("zeroshare", NO_SHARE, keys=("PROCESSING_GROUPS",))
def zero_share_analysis(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """The queue's fairsharepolicy leaves the work of the task a share.

    Not for tests and validation, nor for a task that names its one queue. Source: facts on the brokerage 3.3.
    """
    accepted, numbers = _zero_share(ask, queues, config)
    return True if ask.bound_to_one else accepted, numbers


def _zero_share(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    kind = ask.processing_type
    group = next((group for group, types in config["PROCESSING_GROUPS"].items() if kind in types), kind)
    numbers = {"group": group, "policy": queues.fairsharepolicy}
    tests = (ask.share or "").lower() in ("test", "validation") or ask.prod_source_label in ("test", "validation")
    if tests and not (ask.bound_to_one and ask.prod_source_label != "managed"):
        return True, numbers
    work = Work(group, ask.working_group, ask.share, ask.priority, ask.merge)
    return queues.where_text("fairsharepolicy", work, lambda policy: accepts(policy, work)), numbers
