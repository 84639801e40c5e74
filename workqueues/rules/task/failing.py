"""A production task of which too many jobs fail makes no more of them until somebody has looked at it. Pure.

Source: facts on gdpconfig 1.2.7 (MAX_JOB_FAILURE_RATE_TO_PAUSE), on tables, agents; decision D25.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.gdpconfig.values import pick
from workqueues.rules.task.boost import jobs_left

CAUSE = "failing"
"""The cause of such a task."""


LIMIT = "MAX_JOB_FAILURE_RATE_TO_PAUSE_"


def limited(label: str, config: Mapping[str, Any]) -> bool:
    """Whether there is a limit for any task of this source label. `config`: component watchdog."""
    return any(value for name, value in config.items() if name.startswith(LIMIT + label))


def limit_of(label: str, share: str, config: Mapping[str, Any]) -> float:
    """The part of its jobs that may fail; 0 = any. `config`: component watchdog; a value for the share goes before."""
    narrow = pick(config, "MAX_JOB_FAILURE_RATE_TO_PAUSE_<label>_<queue>", label=label, queue=share)
    wide = pick(config, "MAX_JOB_FAILURE_RATE_TO_PAUSE_<label>", label=label)
    return float(wide or 0.0) if narrow is None else float(narrow)


def failing(
    label: str, share: str, finished: int, failed: int, open_files: int, done_files: int, config: Mapping[str, Any]
) -> str:
    """Why a task rests of whose jobs so many ended; empty where it goes on: with few jobs ended, or few left to come."""
    limit, ended = limit_of(label, share, config), finished + failed
    if not limit or ended < max(1, pick(config, "MIN_JOBS_TO_PAUSE_<label>", label=label)):
        return ""
    if jobs_left(open_files, finished, done_files) < pick(config, "MIN_REMAINING_JOBS_TO_PAUSE_<label>", label=label):
        return ""
    if failed < limit * ended:
        return ""
    return f"{failed:,} of its latest {ended:,} jobs failed, {100 * limit:g} % or more are too many; look at it, then resume it"
