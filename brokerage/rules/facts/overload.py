"""When a queue has too much work for analysis: by what waits there altogether, and by what one user has there.

Source: seed 000, analysis, filters for temporary issues; facts on the brokerage 3.3, 3.4; decision A2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from brokerage.rules.facts.ask import Config
from brokerage.rules.facts.columns import Flags, Floats
from brokerage.rules.facts.snapshot import Queues

LEAST_QUEUED = 40
"""Jobs that may always wait at a queue: twice 20, as so many count as running at least."""

OVERLOAD_KEYS = ("OVERLOAD_BY_RATIO", "OVERLOAD_MIN_QUEUE", "OVERLOAD_RATIO_OFFSET")
USER_LIMIT_KEYS = (
    "BASE_QUEUE_LENGTH_PER_PQ",
    "BASE_EXPECTED_WAIT_HOUR_ON_PQ",
    "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER",
    "BASE_QUEUE_RATIO_ON_PQ",
    "STATIC_MAX_QUEUE_RUNNING_RATIO",
    "MAX_EXPECTED_WAIT_HOUR",
)


def overloaded(queues: Queues, config: Config) -> Flags:
    """Where more waits than twice what runs, or (OVERLOAD_BY_RATIO) much more per running job than on the whole grid."""
    queued, running = queues.queued_in_all_states, queues.busy
    if not config["OVERLOAD_BY_RATIO"]:
        by_document: Flags = queued > queues.cap(LEAST_QUEUED)
        return by_document
    # nQ/nR > (total nQ / total nR) x offset, multiplied out so that no running job needs no rule.
    above = queued * running.sum() > running * queued.sum() * config["OVERLOAD_RATIO_OFFSET"]
    by_ratio: Flags = (queued > config["OVERLOAD_MIN_QUEUE"]) & (above | (running == 0))
    return by_ratio


def user_limit(queued: Any, running: Any, user_running: Any, users: Any, starts_per_hour: Any, config: Config) -> Floats:
    """Jobs that a user may have waiting at each queue; infinite where so little waits that nobody is limited."""
    wait = config["BASE_EXPECTED_WAIT_HOUR_ON_PQ"] * starts_per_hour
    limited = (queued >= config["BASE_QUEUE_LENGTH_PER_PQ"]) & (queued >= wait)
    most = np.maximum(config["BASE_QUEUE_LENGTH_PER_PQ"], config["STATIC_MAX_QUEUE_RUNNING_RATIO"] * running)
    most = np.maximum(most, config["MAX_EXPECTED_WAIT_HOUR"] * starts_per_hour)
    # Multiplied before it is divided: 2 x 98 x 15 / 98 is 30, which the product with a rounded part is not (decision H2).
    part = np.maximum(most / np.maximum(users, 1), most * user_running / np.maximum(running, 1))
    least = np.maximum(config["BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"], config["BASE_QUEUE_RATIO_ON_PQ"] * running)
    return np.where(limited, np.maximum(least, part), np.inf)
