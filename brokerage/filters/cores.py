"""Whether the cores of a job fit the slots of a queue."""

from __future__ import annotations

from brokerage.rules.ask import Ask
from brokerage.rules.columns import Flags
from brokerage.rules.declare import Config, Numbers, filter
from brokerage.rules.needs import task_cores
from brokerage.rules.snapshot import Queues


@filter("cpucore", "a job takes {cores} cores, the slots have {corecount}", gap=("cores", "corecount"))
def enough_cores(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Any slot for a task without wish (0); one-core jobs in one-core slots; n cores where the slot has as many.

    Slots of 0 or -1 cores take all. Not for a task that names where it runs. Source: facts on the brokerage 4.
    """
    cores, slots = task_cores(ask), queues.corecount
    numbers = {"cores": cores, "corecount": slots}
    if cores == 0 or ask.preassigned:
        return True, numbers
    return (slots <= 0) | ((slots == 1) if cores == 1 else (slots >= cores)), numbers
