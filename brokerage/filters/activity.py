"""Whether anything happens at a queue: jobs begin, pilots ask."""

from __future__ import annotations

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues

NO_PILOT = "no pilot has asked for work in three hours"


@filter(
    "inactive",
    "{waiting} jobs wait and none has begun for {idle_s:.0f} s",
    kind="temporary",
    gap=("idle_s", "limit_s"),
    keys=("INACTIVE_AFTER",),
)
def inactive(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """For high priority, scouts, merging and what will be merged: jobs have begun in the last two hours, or none waits.

    Where no job ever began it counts since when jobs wait. Source: seed 000; decision B20.
    """
    limit, waiting = config["INACTIVE_AFTER"], queues.waiting_in_all
    numbers = {"idle_s": queues.idle_s, "limit_s": limit, "waiting": waiting}
    if not (ask.high or ask.merge or ask.merge_output):
        return True, numbers
    return ~((queues.idle_s > limit) & (waiting > 0)), numbers


@filter("nopilot", NO_PILOT, kind="temporary")
def nopilot(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Pilots asked for work in the last three hours, or the queue declares that it needs none.

    Not for the label test unless express. Source: seed 000; facts on the brokerage 2.3 row 24; decision B20.
    """
    return _piloted(ask, queues)


@filter("nopilot", NO_PILOT, kind="temporary")
def nopilot_generic(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Pilots asked for work in the last three hours, or the queue declares that it needs none.

    Not where the task names its queues, nor for the label test unless express. Source: facts on the brokerage 4.
    """
    return (True, {"requests_3h": queues.requests_3h}) if ask.preassigned else _piloted(ask, queues)


@filter("nopilot", NO_PILOT, returns=True)
def nopilot_analysis(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Pilots asked for work in the last three hours, or the queue declares that it needs none.

    For analysis it counts as an issue that lasts. Source: seed 000, analysis; facts 3.3.
    """
    return _piloted(ask, queues)


def _piloted(ask: Ask, queues: Queues) -> tuple[Flags | bool, Numbers]:
    if "test" in ask.prod_source_label and not ask.urgent:
        return True, {"requests_3h": queues.requests_3h}
    return queues.piloted, {"requests_3h": queues.requests_3h}
