"""A production task of which too many jobs fail, or that loses too much work with them, makes no more of them until somebody has
looked at it. Pure.

Source: facts on gdpconfig 1.2.7 (MAX_JOB_FAILURE_RATE_TO_PAUSE, MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE), on tables, agents; decision
D25. Of the two names that practice has for the second key the one of its list is read, as it is built like that of retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from broker_site.foundation.gdpconfig.values import pick
from workqueues.rules.task.boost import jobs_left

CAUSE = "failing"
"""The cause of such a task."""

JOBS, WORK = "MAX_JOB_FAILURE_RATE_TO_PAUSE", "MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE"
"""The keys, without label and queue."""


class EndedFigures(NamedTuple):
    """How many jobs of a task finished and failed, and the work of both: hours x cores x power of a core."""

    finished: int
    failed: int
    work_finished: float = 0.0
    work_failed: float = 0.0


def limited(label: str, config: Mapping[str, Any], key: str = "") -> bool:
    """Whether there is a limit for any task of this source label, or one by this key. `config`: component watchdog."""
    names = tuple(f"{name}_{label}" for name in ([key] if key else [JOBS, WORK]))
    return any(value for name, value in config.items() if name.startswith(names))


def limit_of(key: str, label: str, share: str, config: Mapping[str, Any]) -> float:
    """The part that may fail; 0 = any. `config`: component watchdog; a value for the share goes before."""
    narrow = pick(config, f"{key}_<label>_<queue>", label=label, queue=share)
    wide = pick(config, f"{key}_<label>", label=label)
    return float(wide or 0.0) if narrow is None else float(narrow)


def failing(label: str, share: str, ended: EndedFigures, open_files: int, done_files: int, config: Mapping[str, Any]) -> str:
    """Why a task rests whose jobs ended so; empty where it goes on: with few jobs ended, or few left to come."""
    n = ended.finished + ended.failed
    if n < max(1, pick(config, "MIN_JOBS_TO_PAUSE_<label>", label=label)):
        return ""
    if jobs_left(open_files, ended.finished, done_files) < pick(config, "MIN_REMAINING_JOBS_TO_PAUSE_<label>", label=label):
        return ""
    limit, of_work = limit_of(JOBS, label, share, config), limit_of(WORK, label, share, config)
    work = ended.work_finished + ended.work_failed
    if limit and ended.failed >= limit * n:
        what, most = f"{ended.failed:,} of its latest {n:,} jobs failed", limit
    elif of_work and work > 0 and ended.work_failed >= of_work * work:
        lost, most = 100 * ended.work_failed / work, of_work
        what = f"{lost:.0f} % of the HEP score of its latest {n:,} jobs went to failed ones"
    else:
        return ""
    return f"{what}, {100 * most:g} % or more are too many; look at it, then resume it"
