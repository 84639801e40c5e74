"""A filter and a weight: one expression each over the columns of all queues.

Columns, their units and what 0 means stand in `brokerage.plugin_api.Queues`, what a task
says in `brokerage.plugin_api.Ask`. Names are shared by all packages, so ours begin with `lab_`.
"""

from __future__ import annotations

from brokerage.plugin_api import Ask, Config, Flags, Floats, Numbers, Queues, filter, weight

INTERACTIVE = "interactive"


@filter(
    "lab_busy",
    "{busy} of its cores are busy, fewer than {quiet} are wanted for interactive work",
    kind="temporary",
    gap=("busy", "quiet"),
    keys=("LAB_QUIET_CORES",),
)
def lab_quiet_enough(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """Interactive work goes where few cores are busy; other work anywhere. Source: rules of the lab."""
    quiet = config["LAB_QUIET_CORES"]
    numbers = {"busy": queues.running_cores, "quiet": quiet}
    return queues.running_cores < quiet if ask.processing_type == INTERACTIVE else True, numbers


@weight("lab_power_left", divisor="pledgedcpu")
def lab_power_left(_ask: Ask, queues: Queues, _config: Config) -> Floats:
    """The part of the pledged cores that is idle, times their power; a queue that pledges nothing has no weight."""
    idle = (queues.pledgedcpu - queues.running_cores).clip(min=0)
    return idle / queues.pledgedcpu * queues.power
