"""Whether the memory of a job fits a slot."""

from __future__ import annotations

from brokerage.rules.decision.declare import Criterion, Numbers, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.needs import cores_at, memory_mb
from brokerage.rules.facts.snapshot import Queues

Within = tuple[tuple[Flags | bool, Flags | bool], Numbers]

LOW = Criterion("lowmemory", "a job needs {need_mb:.0f} MB, a slot gives {maxrss:.0f}", gap=("need_mb", "maxrss"))
HIGH = Criterion("highmemory", "a job needs {need_mb:.0f} MB, the slots are for {minrss:.0f} or more", gap=("need_mb", "minrss"))


@filters(LOW, HIGH)
def memory_uncompensated(ask: Ask, queues: Queues, _config: Config) -> Within:
    """base + ram x cores of the slot is within minrss and maxrss, 0 = no limit; without the factor 0.9.

    A task that gives no ram sets no condition; nor does one that names where it runs. Source: facts on the brokerage 4; decision
    B4.
    """
    need = memory_mb(ask, cores_at(ask, queues))
    numbers = {"need_mb": need, "maxrss": queues.maxrss, "minrss": queues.minrss}
    if not ask.ram_count or ask.preassigned:
        return (True, True), numbers
    return ((need <= queues.maxrss) | (queues.maxrss == 0), need >= queues.minrss), numbers


@filters(LOW, HIGH, keys=("MEMORY_COMPENSATION",))
def memory(ask: Ask, queues: Queues, config: Config) -> Within:
    """(base + ram x cores of the slot) x compensation is within minrss and maxrss, 0 = no limit. Source: seed 000; decision B4.

    A task that gives no ram sets no condition.
    """
    need = memory_mb(ask, cores_at(ask, queues)) * config["MEMORY_COMPENSATION"]
    numbers = {"need_mb": need, "maxrss": queues.maxrss, "minrss": queues.minrss}
    if not ask.ram_count:
        return (True, True), numbers
    return (need <= queues.most_memory, need >= queues.minrss), numbers
