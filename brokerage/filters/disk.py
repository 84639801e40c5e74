"""Whether the storage takes a job: room on the scratch disk of a slot and for the output, endpoints in service."""

from __future__ import annotations

import numpy as np

from brokerage.rules.decision.declare import Criterion, Numbers, filter, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.needs import scaled_need_mb, size_mb
from brokerage.rules.facts.snapshot import Queues

OUTPUT_FLOOR_MB = 500.0
"""The least room that the production broker keeps for output."""


@filter("disk", "a job needs {need_mb:.0f} MB of scratch disk, a slot gives {maxwdir:.0f} MB", gap=("need_mb", "maxwdir"))
def scratch_unscaled(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """output + work + largest input of one job is within maxwdir, 0 = no limit.

    The output is not scaled with events or input, maxwdir not divided by cores; where input is read directly it takes no room.
    Source: facts on the brokerage 4.
    """
    fixed = size_mb(ask.out_disk_count, ask.out_disk_unit) + size_mb(ask.work_disk_count, ask.work_disk_unit)
    need = fixed + np.where(queues.direct_access_lan, 0.0, ask.chunk.largest_gb * 1000.0)
    return (need <= queues.maxwdir) | (queues.maxwdir == 0), {"need_mb": need, "maxwdir": queues.maxwdir}


@filter(
    "disk",
    "its output storage has {space_gb:.0f} GB free, {least_gb:.0f} GB are wanted",
    kind="temporary",
    gap=("least_gb", "space_gb"),
    keys=("STORAGE_MIN_FREE_SIZE",),
)
def output_space(_ask: Ask, queues: Queues, config: Config) -> tuple[Flags, Numbers]:
    """The default output storage has room, where its free space is published. Source: facts on the brokerage 4."""
    least = config["STORAGE_MIN_FREE_SIZE"]
    return ~(queues.space_gb < least), {"space_gb": queues.space_gb, "least_gb": least, "space_from": queues.space_origin}


@filter("disk", "a job needs {need_mb:.0f} MB of scratch disk, a core's part is {limit_mb:.0f} MB", gap=("need_mb", "limit_mb"))
def scratch(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """Input + the larger of 0.5 GB and the scaled output + work is less than maxwdir / cores; maxwdir 0 = no limit.

    Where input is read directly it takes no room, but output that scales with it still does. Source: seed 000; decision B5.
    """
    need = scaled_need_mb(ask, queues, OUTPUT_FLOOR_MB)
    return queues.scratch_per_core > need, {"need_mb": need, "limit_mb": queues.scratch_per_core}


@filter(
    "disk",
    "its output storage has {space_gb:.0f} GB free, more than {least_gb:.0f} GB are wanted",
    kind="temporary",
    gap=("least_gb", "space_gb"),
    keys=("STORAGE_MIN_FREE_SIZE",),
)
def storage_space(_ask: Ask, queues: Queues, config: Config) -> tuple[Flags, Numbers]:
    """The free space of the output storage is over the limit; none published is none. Source: seed 000; facts on queues 5.2."""
    space, least = queues.known_space_gb, config["STORAGE_MIN_FREE_SIZE"]
    return space > least, {"space_gb": space, "least_gb": least, "space_from": queues.space_origin}


@filters(
    Criterion("read_lan_blacklist", "none of its endpoints can be read by jobs", "temporary"),
    Criterion("write_lan_blacklist", "none of its endpoints can be written by jobs", "temporary"),
    Criterion("write_wan_blacklist", "its endpoint cannot receive input", "temporary"),
    Criterion("read_wan_blacklist", "its endpoint cannot send output", "temporary"),
    Criterion("source_blacklist", "the input is not there, and nothing that has it can send it", "temporary"),
)
def storage_blacklists(_ask: Ask, queues: Queues, _config: Config) -> tuple[tuple[Flags, Flags, Flags, Flags, Flags], Numbers]:
    """No endpoint that a job there needs is blacklisted, nor every source of its input.

    Nothing travels to or from a queue of the nucleus that has all the input. Source: seed 000; facts on the brokerage 2.3 row 17.
    """
    receives, sends = queues.write_wan_ok | queues.still, queues.read_wan_ok | queues.still
    return (queues.read_lan_ok, queues.write_lan_ok, receives, sends, queues.source_ok), {}
