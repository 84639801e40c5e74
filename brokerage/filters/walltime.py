"""Whether a job ends within the walltime that a queue gives."""

from __future__ import annotations

import numpy as np

from brokerage.rules.decision.declare import Criterion, Numbers, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.needs import walltime_at
from brokerage.rules.facts.snapshot import Queues

SHORT = Criterion(
    "shortwalltime", "a job takes {walltime_s:.0f} s, the queue gives {maxtime:.0f} s", gap=("walltime_s", "maxtime")
)
LONG = Criterion(
    "longwalltime", "a job takes {walltime_s:.0f} s, the queue wants {mintime:.0f} s or more", gap=("walltime_s", "mintime")
)
SCOUT = Criterion("scout_walltime", "scouts need {least_s:.0f} s, the queue gives {maxtime:.0f} s", gap=("least_s", "maxtime"))
UNKNOWN = Criterion("min_walltime", "{what} need {least_s:.0f} s, the queue gives {maxtime:.0f} s", gap=("least_s", "maxtime"))


@filters(SHORT, LONG)
def walltime_generic(ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    """mintime <= walltime <= maxtime, 0 = no limit.

    A task of unknown walltime sets no condition. Source: facts on the brokerage 4.
    """
    need = walltime_at(ask, queues)
    if need is None:
        return (True, True), {"walltime_s": 0.0, "maxtime": queues.maxtime, "mintime": queues.mintime}
    numbers = {"walltime_s": need, "maxtime": queues.maxtime, "mintime": queues.mintime}
    return (need <= queues.most_time, need >= queues.mintime), numbers


@filters(SCOUT, UNKNOWN, keys=("LEAST_MAXTIME",))
def maxtime_for_scouts(ask: Ask, queues: Queues, config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    """Scouts, merge jobs and jobs of unknown walltime go where there is a day for them; 0 = no limit.

    Source: seed 000; facts on the brokerage 2.3 row 19; decision B12.
    """
    return _a_day(ask, queues, config)


@filters(SCOUT, UNKNOWN, keys=("LEAST_MAXTIME",))
def maxtime_for_scouts_analysis(ask: Ask, queues: Queues, config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    """Scouts and jobs of unknown walltime go where there is a day for them; 0 = no limit.

    Analysis does not ask this of merging. Source: facts on the brokerage 3.3.
    """
    verdicts, numbers = _a_day(ask, queues, config)
    return (True, True) if ask.merge else verdicts, numbers


def _a_day(ask: Ask, queues: Queues, config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    least = config["LEAST_MAXTIME"]
    unknown = ask.merge or not (ask.cpu_time or ask.walltime_s)
    scouting = ask.scout and not ask.bound_to_one
    what = "merge jobs" if ask.merge else "jobs of unknown walltime"
    numbers = {"least_s": least, "maxtime": queues.maxtime, "what": what}
    if not (scouting or unknown):
        return (True, True), numbers
    enough = queues.most_time >= least
    return (enough if scouting else True, enough if unknown else True), numbers


@filters(SHORT)
def shortwalltime(ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags | bool], Numbers]:
    """The estimated walltime is less than maxtime, 0 = no limit. Source: seed 000; decision B12."""
    need = walltime_at(ask, queues)
    numbers = {"walltime_s": 0.0 if need is None else need, "maxtime": queues.maxtime}
    return (True if need is None else need < queues.most_time,), numbers


@filters(LONG)
def longwalltime(ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags], Numbers]:
    """The estimated walltime is not less than mintime; what is not known is less. Source: facts on the brokerage 2.3 row 20."""
    need = walltime_at(ask, queues)
    expected = np.zeros(len(queues)) if need is None else need
    return (expected >= queues.mintime,), {"walltime_s": expected, "mintime": queues.mintime}


@filters(SHORT, LONG)
def walltime_analysis(ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    """mintime <= walltime < maxtime, 0 = no limit; what is not known is less than any mintime. Not for merging.

    Source: seed 000, analysis; facts on the brokerage 3.3.
    """
    need = walltime_at(ask, queues)
    expected = np.zeros(len(queues)) if need is None else need
    numbers = {"walltime_s": expected, "maxtime": queues.maxtime, "mintime": queues.mintime}
    return (True, True) if ask.merge else (expected < queues.most_time, expected >= queues.mintime), numbers
