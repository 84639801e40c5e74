"""Whether a queue has more to do than it should: disk I/O, transfers, waiting jobs, other people's cores."""

from __future__ import annotations

from brokerage.rules.decision.declare import Criterion, Numbers, filter, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.needs import task_cores
from brokerage.rules.facts.snapshot import Queues

OPPORTUNISTIC = -1.0


DISK_IO = "its disk I/O is {measured:.0f} kB/s per core, the task's {wanted:.0f} kB/s, {most:.0f} kB/s at most"


@filter("diskIO", DISK_IO, kind="temporary", gap=("wanted", "most"), keys=("MAX_DISKIO_DEFAULT",))
def disk_io(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """Where the measured disk I/O is over the limit go only tasks with less than the limit. Source: seed 000; 2.3 row 10."""
    return _disk_io(ask, queues, config)


@filter("diskIO", DISK_IO, gap=("wanted", "most"), keys=("MAX_DISKIO_DEFAULT",), returns=True)
def disk_io_analysis(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """Where the measured disk I/O is over the limit go only tasks with less than the limit.

    For analysis it counts as an issue that lasts. Source: seed 000, analysis; facts 3.3.
    """
    return _disk_io(ask, queues, config)


def _disk_io(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    most, over = queues.most_disk_io(config["MAX_DISKIO_DEFAULT"]), queues.disk_io_over(config["MAX_DISKIO_DEFAULT"])
    wanted = (ask.disk_io or 0.0) / (queues.slot_size if task_cores(ask) != 1 else 1)
    numbers = {"measured": queues.disk_io, "wanted": wanted, "most": most}
    return True if over is None else ~(over & (wanted > most)), numbers


@filter(
    "transferring", "{transferring} jobs transfer their output, {most} at most", kind="temporary", gap=("transferring", "most")
)
def transferring(_ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """Not more jobs transfer than the limit (2000 if unset) or twice those that run. Source: seed 000; decision B20."""
    numbers = {"transferring": queues.transferring, "most": queues.most_transferring}
    return queues.transfers_freely, numbers


@filters(
    Criterion("non_pledged", "its cores are opportunistic, and there is too little work for others", returns=True),
    Criterion(
        "over_pledged", "{running_cores} cores run, {pledged:.0f} are pledged", gap=("running_cores", "pledged"), returns=True
    ),
    keys=("WORK_SHORTAGE",),
)
def non_pledged(ask: Ask, queues: Queues, config: Config) -> tuple[tuple[Flags | bool, Flags | bool], Numbers]:
    """While work is short: neither opportunistic queues nor those beyond their pledge. Source: facts 2.3 row 23a."""
    numbers = {"running_cores": queues.running_cores, "pledged": queues.pledgedcpu}
    if not config["WORK_SHORTAGE"] or ask.bound_to_one:
        return (True, True), numbers
    within = (queues.running_cores <= queues.pledgedcpu) | (queues.pledgedcpu <= 0)
    return (queues.pledgedcpu != OPPORTUNISTIC, within), numbers


@filter("opportunistic", "its cores are opportunistic, {what} do not go there", keys=("REJECT_OPPORTUNISTIC",))
def opportunistic(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """An option: high priority and scouts not at opportunistic queues. Source: facts on the brokerage 2.3 row 5; decision B1."""
    judged = config["REJECT_OPPORTUNISTIC"] and ask.high and not ask.preassigned
    what = {"what": "scouts" if ask.scout else f"tasks of priority {ask.priority}"}
    return (queues.pledgedcpu != OPPORTUNISTIC) if judged else True, what


CAP_ACTIVATED = Criterion(
    "cap_activated", "{activated_starting} jobs wait for a pilot, {limit} at most", "temporary", ("activated_starting", "limit")
)
CAP_QUEUED = Criterion("cap_queued", "{queued} jobs wait, {limit} at most", "temporary", ("queued", "limit"))


@filters(CAP_ACTIVATED, CAP_QUEUED, keys=("NQUEUELIMITSITE", "NQUEUELIMITSITE_<gshare>"))
def queue_caps(ask: Ask, queues: Queues, config: Config) -> tuple[tuple[Flags, Flags], Numbers]:
    """Waiting jobs are not more than twice those that run, nor than the lower bound; assigned jobs count where input must move.

    Source: seed 000, further filters; decisions A2, B9, B17, B20.
    """
    of_share = config.get(f"NQUEUELIMITSITE_{ask.share}")
    limit = queues.cap(config["NQUEUELIMITSITE"] if of_share is None else of_share)
    numbers = {"activated_starting": queues.waiting, "queued": queues.queued, "limit": limit}
    return (queues.waiting <= limit, queues.queued <= limit), numbers
