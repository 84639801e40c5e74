"""The verdict on every unit with tasks to make jobs for, with what it is based on (seed 001; decisions C1, C6; row J25).

Here: the jobs of a unit, the priority of its best task, and which keys hold. Not here: judging these numbers (`throttler`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.throttle.limits import UnitLimits, at_level, limits_of, total
from workqueues.rules.throttle.throttler import Counts, Limits, Verdict, throttled
from workqueues.rules.throttle.units import Group, Unit

OFF = "job_submission"
"""Rule of the verdict where JOB_SUBMISSION is off."""


class UnitRules(NamedTuple):
    """What the configuration says of a unit. `keys`: the component of its throttler; `shortage`: work is short."""

    keys: Mapping[str, Any]
    submission: bool
    shortage: bool
    unthrottled: bool


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """A verdict on a unit: the unit's own jobs, the limits with the keys that have them, and the jobs at each one's level."""

    unit: Unit
    verdict: Verdict
    counts: Counts
    limits: Limits
    unit_limits: UnitLimits
    at_levels: Mapping[str, Counts]


def judge_units(
    priorities: Mapping[Group, int],
    jobs: Mapping[Group, Counts],
    unit_of: Callable[[Group], Unit],
    rules_of: Callable[[Unit], UnitRules],
) -> dict[Unit, UnitVerdict]:
    """The verdicts on the units of these tasks; `priorities`: the highest of each group, `jobs`: those of all groups."""
    of_unit = jobs_by_type(jobs, unit_of)
    best: dict[Unit, int | None] = {}
    for group, priority in priorities.items():
        unit = unit_of(group)
        users = activity_of(unit.label) == "analysis"  # no priority of theirs passes a full unit
        best[unit] = None if users else max(priority, best.get(unit) or priority)
    return {unit: judge_unit(unit, of_unit.get(_whole(unit), {}), best[unit], rules_of(unit)) for unit in best}


def jobs_by_type(jobs: Mapping[Group, Counts], unit_of: Callable[[Group], Unit]) -> Mapping[Unit, Mapping[str, Counts]]:
    """Share or work queue, with all its resource types -> resource type -> its jobs."""
    of_unit: dict[Unit, dict[str, Counts]] = defaultdict(dict)
    for group, counts in jobs.items():
        of_type = of_unit[_whole(unit_of(group))]
        of_type[group.resource_type] = of_type.get(group.resource_type, Counts()) + counts
    return of_unit


def _whole(unit: Unit) -> Unit:
    return replace(unit, resource_type="")


def judge_unit(unit: Unit, by_type: Mapping[str, Counts], priority: int | None, rules: UnitRules) -> UnitVerdict:
    """One verdict. `priority`: the highest of the unit's tasks, None where priorities do not count."""
    unit_limits = UnitLimits.of(rules.keys, unit.name, unit.resource_type)
    levels = {level: at_level(level, by_type) for level in {limit.level for limit in unit_limits}}
    counts = by_type.get(unit.resource_type, Counts()) if unit.resource_type else total(by_type.values())
    limits = limits_of(rules.keys, unit_limits, shortage=rules.shortage, unthrottled=rules.unthrottled)
    if not rules.submission:
        verdict = Verdict("SKIP", 0, False, OFF, f"JOB_SUBMISSION is off for {unit.vo}")
    else:
        verdict = throttled(
            levels[unit_limits.lower.level],
            limits,
            priority,
            at_cap=levels[unit_limits.cap.level],
            at_running_cap=levels[unit_limits.running_cap.level],
        )
    return UnitVerdict(unit, verdict, counts, limits, unit_limits, levels)
