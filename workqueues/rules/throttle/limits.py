"""Which limits hold for a unit: the keys of job throttling and the levels at which they are looked up (facts on gdpconfig 1.2.4).

Pure: the configuration is a component's mapping. Not here: the verdict (`throttle`), and what the keys are (`config_keys`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.throttle.throttler import PRACTICE, Counts, Limits

LOWER, CAP, RUNNING_CAP = "NQUEUELIMIT", "NQUEUECAP", "NRUNNINGCAP"

CLASSES = ("MCORE", "SCORE")
"""Beginnings of resource types that have a level of their own, written with a star."""

ANALYSIS, PRODUCTION = "anal_job_throttler", "prod_job_throttler"

RULES: Mapping[str, str] = {
    "THROTTLE_DEFAULT_LIMIT": "limit",
    "THROTTLE_BROKERAGE_STUCK": "brokerage_stuck",
    "THROTTLE_WAITING_JOBS": "waiting",
    "THROTTLE_SHORT_WORK": "walltime",
    "THROTTLE_HIGH_PRIORITY": "high_priority",
}
"""Key that switches a rule of practice on -> the rule."""


class UnitLimit(NamedTuple):
    """A limit: its value, the key that has it, and the level at which jobs are counted.

    `level`: a resource type, a class of them with a star (`MCORE*`), or empty for the whole unit. Value None: not set.
    """

    value: int | None
    key: str
    level: str


def component_of(label: str) -> str:
    """The component whose keys hold for work of a source label: that of analysis, else that of production."""
    return ANALYSIS if activity_of(label) == "analysis" else PRODUCTION


def levels(resource_type: str) -> list[str]:
    """Levels from the narrowest: the resource type, its class, the whole unit."""
    narrow = [resource_type] if resource_type else []
    narrow += [f"{name}*" for name in CLASSES if resource_type.startswith(name)]
    return [*narrow, ""]


def limit(config: Mapping[str, Any], key: str, name: str, resource_type: str) -> UnitLimit:
    """The first value that is set and not 0, from the narrowest level on; without any, nothing at the unit's own."""
    for level in levels(resource_type):
        stored = f"{key}_{name}_{level}" if level else f"{key}_{name}"
        if value := config.get(stored):
            return UnitLimit(int(value), stored, level)
    return UnitLimit(None, "", resource_type)


def at_level(level: str, by_type: Mapping[str, Counts]) -> Counts:
    """The jobs of a share or queue that count at a level; `by_type`: resource type -> its jobs."""
    if level.endswith("*"):
        return total(counts for name, counts in by_type.items() if name.startswith(level[:-1]))
    return total(by_type.values()) if not level else by_type.get(level, Counts())


def total(counts: Iterable[Counts]) -> Counts:
    return sum(counts, Counts())


class UnitLimits(NamedTuple):
    """The three limits of a unit, each at its level."""

    lower: UnitLimit
    cap: UnitLimit
    running_cap: UnitLimit

    @classmethod
    def of(cls, config: Mapping[str, Any], name: str, resource_type: str) -> UnitLimits:
        return cls(*(limit(config, key, name, resource_type) for key in (LOWER, CAP, RUNNING_CAP)))


def limits_of(config: Mapping[str, Any], unit_limits: UnitLimits, *, shortage: bool, unthrottled: bool) -> Limits:
    """What the throttler judges by. `shortage`: work is short, so the other threshold holds; `unthrottled`: nothing does."""
    return Limits(
        lower=unit_limits.lower.value,
        cap=unit_limits.cap.value,
        running_cap=unit_limits.running_cap.value,
        ratio=config["THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE" if shortage else "THROTTLE_THRESHOLD"],
        practice=frozenset(rule for key, rule in RULES.items() if config[key]) & PRACTICE,
        unthrottled=unthrottled,
    )
