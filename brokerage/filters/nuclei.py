"""Which sites can collect the output of a task."""

from __future__ import annotations

from brokerage.rules.ask import Ask
from brokerage.rules.columns import Flags
from brokerage.rules.declare import Config, Numbers, filter
from brokerage.rules.snapshot import Nuclei

GB_PER_HS06_DAY = 0.25 / 10 / 24 / 3600
"""Output that tasks will still write to their nucleus, GB per HS06 s that remains: 0.25 GB per day of a core of 10 HS06."""


@filter("nonpreassigned", "the task collects its output at {nucleus}")
def named_nucleus(ask: Ask, nuclei: Nuclei, _config: Config) -> tuple[Flags | bool, Numbers]:
    """A task that names a nucleus keeps it. Source: facts on the brokerage 5."""
    return (nuclei.name == ask.nucleus) if ask.nucleus else True, {"nucleus": ask.nucleus or ""}


@filter("status", "the site is {state}, not ACTIVE")
def active(_ask: Ask, nuclei: Nuclei, _config: Config) -> tuple[Flags, Numbers]:
    """The site is ACTIVE. Source: seed 001, task brokerage."""
    return nuclei.state == "ACTIVE", {"state": nuclei.state}


@filter(
    "transfer_backlog",
    "{files_queued} files wait for transfer to it, fewer than {cap} are wanted",
    kind="temporary",
    gap=("files_queued", "cap"),
    keys=("NQUEUED_NUC_CAP",),
)
def backlog_small(ask: Ask, nuclei: Nuclei, config: Config) -> tuple[Flags | bool, Numbers]:
    """Fewer files than the cap wait for transfer to it.

    Not judged when t1Weight is negative. Source: seed 001, task brokerage.
    """
    cap = config["NQUEUED_NUC_CAP"]
    return (nuclei.files_queued < cap) | (ask.t1_weight < 0), {"files_queued": nuclei.files_queued, "cap": cap}


@filter(
    "space",
    "{left_gb:.0f} GB would be left on its storage, more than {least_gb:.0f} are wanted",
    kind="temporary",
    gap=("least_gb", "left_gb"),
    keys=("DISK_THRESHOLD",),
)
def space_left(_ask: Ask, nuclei: Nuclei, config: Config) -> tuple[Flags, Numbers]:
    """Free and expired space, less what its tasks will still write, is over the threshold. Source: seed 001, task brokerage."""
    left, least = nuclei.free_gb - nuclei.total_rw * GB_PER_HS06_DAY, config["DISK_THRESHOLD"] * 1000.0
    return left > least, {"left_gb": left, "least_gb": least}
