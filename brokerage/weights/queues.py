"""The factors by which queues are weighed (seed 000; facts on the brokerage 2.5, 4)."""

from __future__ import annotations

import numpy as np

from brokerage.rules.decision.declare import weight
from brokerage.rules.facts.ask import VERY_HIGH_PRIORITY, Ask, Config
from brokerage.rules.facts.columns import Floats
from brokerage.rules.facts.snapshot import Queues

MUCH_IO_KBPS = 500.0
NUCLEUS_FIRST = 100.0
"""Least factor of the nucleus for very high priority and scouts."""


@weight("running_over_queued")
def running_over_queued(_ask: Ask, queues: Queues, _config: Config) -> Floats:
    """(running + 1) / ((activated + assigned + starting + defined + 10) x manyAssigned); no assigned where input is local."""
    return np.where(queues.local, queues.ratio_at_hand, queues.ratio_moving)


@weight("data_availability")
def data_availability(ask: Ask, queues: Queues, _config: Config) -> Floats | float:
    """(available + total) / (total x (missing files / 100 + 1)); 1 without input."""
    total = ask.chunk.gb
    if total <= 0:
        return 1.0
    return (queues.available_gb + total) / (queues.missing_files * (total / 100) + total)


@weight("t1", keys=("T1_CLOUD_WEIGHT",))
def t1(ask: Ask, queues: Queues, config: Config) -> Floats | float:
    """What the nucleus counts more than others: t1Weight, else the configured weight for much I/O. Source: decision B8."""
    factor = ask.t1_weight if ask.t1_weight > 0 else 1.0
    if ask.t1_weight == 0 and (ask.io_intensity or 0.0) >= MUCH_IO_KBPS:
        factor = config["T1_CLOUD_WEIGHT"]
    if (ask.priority >= VERY_HIGH_PRIORITY or ask.scout) and not ask.preassigned:
        factor = max(factor, NUCLEUS_FIRST)
    return 1.0 if factor == 1.0 else np.where(queues.at_nucleus, factor, 1.0)


@weight("network", keys=("NW_ACTIVE", "NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP"))
def network(ask: Ask, queues: Queues, config: Config) -> Floats | float:
    """The network weight of the link to the nucleus; 1 without nucleus, or while it is switched off."""
    if not config["NW_ACTIVE"] or not ask.nucleus:
        return 1.0
    return queues.network_weight(config["NQUEUED_SAT_CAP"], config["NW_QUEUE_IMPORTANCE"])


@weight("running_over_all_queued")
def running_over_all_queued(_ask: Ask, queues: Queues, _config: Config) -> Floats:
    """(running + 1) / (activated + assigned + starting + defined + 1)."""
    return (queues.busy + 1) / (queues.queued_in_all_states + 1)


@weight("running_over_waiting")
def running_over_waiting(_ask: Ask, queues: Queues, _config: Config) -> Floats:
    """(running + 1) / (activated + defined + 1) / (defined + 1), jobs of all work queues. Source: facts on the brokerage 4."""
    return (queues.running + 1) / (queues.activated + queues.defined + 1) / (queues.defined + 1)
