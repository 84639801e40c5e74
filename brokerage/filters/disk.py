"""Whether there is room: on the scratch disk of a slot, and on the storage that takes the output."""

from __future__ import annotations

import numpy as np

from brokerage.rules.ask import Ask
from brokerage.rules.columns import Flags
from brokerage.rules.declare import Config, Numbers, filter
from brokerage.rules.needs import size_mb
from brokerage.rules.snapshot import Queues


@filter("disk", "a job needs {need_mb:.0f} MB of scratch disk, a slot gives {maxwdir:.0f}", gap=("need_mb", "maxwdir"))
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
    "its output storage has {space_gb:.0f} GB free, {least_gb:.0f} are wanted",
    kind="temporary",
    gap=("least_gb", "space_gb"),
    keys=("STORAGE_MIN_FREE_SIZE",),
)
def output_space(_ask: Ask, queues: Queues, config: Config) -> tuple[Flags, Numbers]:
    """The default output storage has room, where its free space is published. Source: facts on the brokerage 4."""
    least = config["STORAGE_MIN_FREE_SIZE"]
    return ~(queues.space_gb < least), {"space_gb": queues.space_gb, "least_gb": least}
