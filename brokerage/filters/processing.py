"""Whether a queue takes work of the task's processing type."""

from __future__ import annotations

import numpy as np

from brokerage.rules.ask import Ask
from brokerage.rules.columns import Flags
from brokerage.rules.declare import Config, Numbers, filter
from brokerage.rules.snapshot import Queues


@filter("processing", "it does not take work of the type {processing_type}")
def processing_type(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """The type is among those that the queue allows, if it lists any, and not among those it excludes. Source: facts 4, 5.1."""
    wanted = ask.processing_type
    allowed, allowed_at = queues.coded("allowed_processing")
    excluded, excluded_at = queues.coded("excluded_processing")
    takes = np.array([not types or wanted in types.split("|") for types in allowed], dtype=np.bool_)
    refuses = np.array([bool(types) and wanted in types.split("|") for types in excluded], dtype=np.bool_)
    return takes[allowed_at] & ~refuses[excluded_at], {"processing_type": wanted}
