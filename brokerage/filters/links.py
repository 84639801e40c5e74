"""Whether output can travel from a queue to the nucleus of the task.

A queue that writes at the nucleus has no link to pass; what waits for the nucleus from everywhere holds for it too.
"""

from __future__ import annotations

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.network import fast_enough, least_if_urgent
from brokerage.rules.facts.snapshot import Queues


@filter("link_unusable", "the link to {nucleus} is blocked", returns=True)
def link_unusable(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """The link to the nucleus is not blocked; an unknown link passes. Source: seed 000; facts on the brokerage 1, 2.3 row 4."""
    return queues.link_open, {"nucleus": ask.nucleus or "", "why": queues.link_why}


@filter(
    "link_unusable",
    "{link_files} files wait on its link to {nucleus}, {cap} at most",
    kind="temporary",
    gap=("link_files", "cap"),
    keys=("NQUEUED_SAT_CAP",),
)
def link_backlog(ask: Ask, queues: Queues, config: Config) -> tuple[Flags, Numbers]:
    """Not over the cap of files wait on the link to the nucleus. Source: seed 000, 001."""
    cap = config["NQUEUED_SAT_CAP"]
    numbers = {"link_files": queues.link_files, "cap": cap, "nucleus": ask.nucleus or "", "counted_by": queues.link_origin}
    return queues.link_free(cap), numbers


@filter(
    "links_full",
    "{nucleus_files} files wait for transfer to {nucleus}, {cap} at most",
    kind="temporary",
    gap=("nucleus_files", "cap"),
    keys=("NQUEUED_NUC_CAP_FOR_JOBS",),
)
def links_full(ask: Ask, queues: Queues, config: Config) -> tuple[Flags, Numbers]:
    """Not over the cap of files wait for transfer to the nucleus from everywhere, at all queues. Source: seed 000; B20."""
    cap = config["NQUEUED_NUC_CAP_FOR_JOBS"]
    numbers = {"nucleus_files": queues.nucleus_files, "cap": cap, "nucleus": ask.nucleus or ""}
    return queues.nucleus_files <= cap, numbers


@filter("dest_blacklisted", "{nucleus} cannot receive output", kind="temporary")
def dest_blacklisted(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """The output endpoint of the nucleus is not in downtime for writing. Source: facts on the brokerage 2.3 row 2."""
    return queues.nucleus_ok | queues.at_nucleus, {"nucleus": ask.nucleus or ""}


@filter(
    "lowNetworkWeight",
    "its network weight is {weight:.3g}, an urgent task wants {least:.3g}",
    kind="temporary",
    gap=("weight", "least"),
    keys=("NW_ACTIVE", "NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP", "NW_THRESHOLD", "NW_WEIGHT_MULTIPLIER"),
)
def low_network_weight(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """An urgent task (or priority 1000 and more) wants a network weight over the threshold. Source: seed 000."""
    weight = queues.network_weight(config["NQUEUED_SAT_CAP"], config["NW_QUEUE_IMPORTANCE"])
    judged = config["NW_ACTIVE"] and ask.urgent and ask.nucleus
    return fast_enough(weight, config) if judged else True, {
        "weight": weight,
        "least": least_if_urgent(config),
        "mbps": queues.mbps,
        "measured_by": queues.mbps_origin,
    }
