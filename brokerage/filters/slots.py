"""Whether the cores and the memory of a job fit the slots of a queue."""

from __future__ import annotations

from brokerage.rules.decision.declare import Criterion, Numbers, filter, filters
from brokerage.rules.facts.ask import VERY_HIGH_PRIORITY, Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.needs import cores_at, memory_mb, task_cores
from brokerage.rules.facts.snapshot import Queues


@filter("cpucore", "a job takes {cores} cores, the slots have {corecount}", gap=("cores", "corecount"))
def cpucore(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Any slot for a task without wish (0); one-core jobs in one-core slots; n cores where the slot has as many.

    Slots of 0 or -1 cores take all. Not for a task that names where it runs. Source: facts on the brokerage 4.
    """
    cores, slots = task_cores(ask), queues.corecount
    numbers = {"cores": cores, "corecount": slots}
    if cores == 0 or ask.preassigned:
        return True, numbers
    return (slots <= 0) | ((slots == 1) if cores == 1 else (slots >= cores)), numbers


@filters(
    Criterion("cpucore", "the task is for {wanted}, the slots have {corecount}"),
    Criterion("max_cpucore", "the task runs on {most} cores at most, the slots have {corecount}", gap=("corecount", "most")),
)
def core_count(ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    """Many-core tasks in many-core slots, one-core tasks in the others; a task of 0 cores in any.

    One of 0 cores that scouts or is very urgent goes to many-core slots. Not where the task names its one queue, unless that is
    unified and has slots for both. Source: seed 000; facts on the brokerage 2.3 row 11.
    """
    cores, slots, most = task_cores(ask), queues.corecount, ask.max_core_count
    many = cores > 1 or (cores == 0 and (ask.priority >= VERY_HIGH_PRIORITY or ask.scout))
    numbers = {"wanted": "several cores" if many else "one core", "corecount": slots, "most": most or 0}
    alike = queues.many_core if many else True if cores == 0 else ~queues.many_core
    few: Flags | bool = True if most is None else slots <= most
    if ask.bound_to_one:
        return (alike | ~queues.is_pseudo, few | ~queues.is_pseudo), numbers
    return (alike, few), numbers


MemoryVerdicts = tuple[tuple[Flags | bool, Flags | bool], Numbers]

LOW = Criterion("lowmemory", "a job needs {need_mb:.0f} MB, a slot gives {maxrss:.0f} MB", gap=("need_mb", "maxrss"))
HIGH = Criterion(
    "highmemory", "a job needs {need_mb:.0f} MB, the slots are for {minrss:.0f} MB or more", gap=("need_mb", "minrss")
)


@filters(LOW, HIGH)
def memory_uncompensated(ask: Ask, queues: Queues, _config: Config) -> MemoryVerdicts:
    """base + ram x cores of the slot is within minrss and maxrss, 0 = no limit; without the factor 0.9.

    A task that gives neither sets no condition; nor does one that names where it runs. Source: facts on the brokerage 4;
    decisions B4, B23.
    """
    verdicts, numbers = _memory(ask, queues, 1.0)
    return (True, True) if ask.preassigned else verdicts, numbers


@filters(LOW, HIGH, keys=("MEMORY_COMPENSATION",))
def memory(ask: Ask, queues: Queues, config: Config) -> MemoryVerdicts:
    """(base + ram x cores of the slot) x compensation is within minrss and maxrss, 0 = no limit.

    A task that gives neither sets no condition. Source: seed 000; decisions B4, B23.
    """
    return _memory(ask, queues, config["MEMORY_COMPENSATION"])


def _memory(ask: Ask, queues: Queues, compensation: float) -> MemoryVerdicts:
    need = memory_mb(ask, cores_at(ask, queues)) * compensation
    numbers = {"need_mb": need, "maxrss": queues.maxrss, "minrss": queues.minrss}
    if not ask.ram_count and not ask.base_ram_count:
        return (True, True), numbers
    return (need <= queues.most_memory, need >= queues.minrss), numbers
