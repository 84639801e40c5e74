"""Whether a job ends within the walltime that a queue gives."""

from __future__ import annotations

from brokerage.rules.ask import Ask
from brokerage.rules.columns import Flags
from brokerage.rules.declare import Config, Criterion, Numbers, filters
from brokerage.rules.needs import expected_walltime_s, slot_cores
from brokerage.rules.snapshot import Queues

SHORT = Criterion("shortwalltime", "a job takes {walltime_s:.0f} s, the queue gives {maxtime:.0f}", gap=("walltime_s", "maxtime"))
LONG = Criterion(
    "longwalltime", "a job takes {walltime_s:.0f} s, the queue wants {mintime:.0f} or more", gap=("walltime_s", "mintime")
)


@filters(SHORT, LONG)
def walltime_within(ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    """mintime <= walltime <= maxtime, 0 = no limit.

    A task of unknown walltime sets no condition. Source: facts on the brokerage 4.
    """
    need = expected_walltime_s(ask, slot_cores(ask, queues.corecount), queues.corepower)
    if need is None:
        return (True, True), {"walltime_s": 0.0, "maxtime": queues.maxtime, "mintime": queues.mintime}
    numbers = {"walltime_s": need, "maxtime": queues.maxtime, "mintime": queues.mintime}
    return ((need <= queues.maxtime) | (queues.maxtime == 0), need >= queues.mintime), numbers
