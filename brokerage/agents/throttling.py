"""Which units may get jobs in a run of generate, and how many: the job throttler at work (seed 001; decisions C1, C6; row J25).

Here: counting, judging, storing and locking for one run. Not here: the verdict (`workqueues.rules.throttle.throttler`) and the
making of jobs (`generate`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from brokerage.queries.unit_jobs import Claimable, claimable_by_group, jobs_by_group
from brokerage.rules.decision.dry_run import USERS
from workqueues.ledger.claims import OpenGroup
from workqueues.ledger.locks import database_time, release_locks, renew_locks, take_locks
from workqueues.ledger.verdicts import Judged, record_verdicts
from workqueues.models import Task
from workqueues.queries.units import Units
from workqueues.rules.throttle.limits import UnitLimits, at_level, component_of, limits_of, total
from workqueues.rules.throttle.throttler import Counts, Limits, Verdict, throttled
from workqueues.rules.throttle.units import Group, Unit

OFF = "job_submission"
"""Rule of the verdict where JOB_SUBMISSION is off."""


@dataclass(slots=True)
class Throttle:
    """The verdicts of one run. `open`: the groups of tasks that may be claimed; what is not named there gets no jobs now."""

    run: Run
    units: Units
    verdicts: Mapping[Unit, Verdict]
    open: tuple[OpenGroup, ...]
    locked: frozenset[Unit]
    made_for: dict[Unit, int] = field(default_factory=lambda: defaultdict(int))
    renewed: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, run: Run, tasks: int = 20) -> Self:
        """Judge every unit with tasks to make jobs for, store the verdicts, and lock units that such a run can serve.

        `tasks`: how many the run will claim; units beyond are left to other generators. Nothing waits: what another generator
        has locked is not open.
        """
        units, waiting, counted_at = Units.load(), claimable_by_group(), database_time()
        judged = {one.unit: one for one in _judged(units, waiting)}
        record_verdicts(list(judged.values()), gdpconfig.revision())
        verdicts = {unit: one.verdict for unit, one in judged.items()}
        groups = {group: units.of(group) for group in waiting if verdicts[units.of(group)].decision == "PASS"}
        tasks_of: dict[Unit, int] = defaultdict(int)
        for group, unit in groups.items():
            tasks_of[unit] += waiting[group].tasks
        locked = _locked(run, verdicts, tasks_of, tasks, counted_at)
        served = {unit for unit in groups.values() if not verdicts[unit].lock} | locked
        opened = tuple(
            OpenGroup(*group, verdicts[unit].least_priority, waiting[group].turn)
            for group, unit in groups.items()
            if unit in served
        )
        return cls(run, units, verdicts, opened, locked)

    def room(self, task: Task) -> int | None:
        """Jobs that may still be made for the task in this run; None without limit."""
        unit = self._unit(task)
        verdict = self.verdicts.get(unit)
        if verdict is None or verdict.decision == "SKIP":
            return 0
        if verdict.least_priority is not None and task.current_priority < verdict.least_priority:
            return 0
        return None if verdict.max_jobs is None else max(verdict.max_jobs - self.made_for[unit], 0)

    def made(self, task: Task, n: int) -> None:
        """Count jobs that were made for the task; the locks of a run that takes long are held on."""
        self.made_for[self._unit(task)] += n
        if self.locked and time.monotonic() - self.renewed > self.run.claim_s / 4:
            renew_locks(self.run.id)
            self.renewed = time.monotonic()

    def end(self) -> None:
        """Give the locks back."""
        if self.locked:
            release_locks(self.run.id)

    def _unit(self, task: Task) -> Unit:
        group = Group(task.vo, task.prod_source_label, task.gshare, task.work_queue_id or 0, task.resource_type)
        return self.units.of(group)


def _judged(units: Units, waiting: Mapping[Group, Claimable]) -> Iterator[Judged]:
    """The verdict on each unit that has tasks to make jobs for."""
    by_unit: dict[Unit, dict[str, Counts]] = defaultdict(dict)
    for group, counts in jobs_by_group().items():
        of_type = by_unit[_whole(units.of(group))]
        of_type[group.resource_type] = of_type.get(group.resource_type, Counts()) + counts
    priorities: dict[Unit, int | None] = {}
    for group, tasks in waiting.items():
        unit = units.of(group)
        best = None if unit.label in USERS else max(tasks.priority, priorities.get(unit) or tasks.priority)
        priorities[unit] = best
    shortage = gdpconfig.value("core", "WORK_SHORTAGE")
    for unit, priority in priorities.items():
        yield _judge(units, unit, by_unit.get(_whole(unit), {}), priority, shortage=shortage)


def _whole(unit: Unit) -> Unit:
    """The share or work queue of a unit, with all its resource types."""
    return Unit(unit.vo, unit.label, unit.name, unit.work_queue_id)


def _judge(units: Units, unit: Unit, by_type: Mapping[str, Counts], priority: int | None, *, shortage: bool) -> Judged:
    config = gdpconfig.component(component_of(unit.label), vo=unit.vo)
    found = UnitLimits.of(config, unit.name, unit.resource_type)
    levels = {level: at_level(level, by_type) for level in {one.level for one in found}}
    own = by_type.get(unit.resource_type, Counts()) if unit.resource_type else total(by_type.values())
    limits = limits_of(config, found, shortage=shortage, unthrottled=units.unthrottled(unit))
    verdict = _verdict(unit, levels, found, limits, priority)
    return Judged(unit, verdict, own, limits, found, levels)


def _verdict(unit: Unit, levels: Mapping[str, Counts], found: UnitLimits, limits: Limits, priority: int | None) -> Verdict:
    if not gdpconfig.value("jobgen", "JOB_SUBMISSION", vo=unit.vo):
        return Verdict("SKIP", 0, False, OFF, f"JOB_SUBMISSION is off for {unit.vo}")
    return throttled(
        levels[found.lower.level],
        limits,
        priority,
        at_cap=levels[found.cap.level],
        at_running_cap=levels[found.running_cap.level],
    )


def _locked(
    run: Run, verdicts: Mapping[Unit, Verdict], tasks_of: Mapping[Unit, int], tasks: int, counted_at: datetime
) -> frozenset[Unit]:
    """Lock units in their order until their tasks fill the run; what somebody else has, or had since the count, is passed over.

    Units that need no lock fill it too. What is left over is for other generators.
    """
    held: set[Unit] = set()
    left, units = tasks, list(tasks_of)
    while units and left > 0:
        wanted: list[Unit] = []
        while units and sum(tasks_of[unit] for unit in wanted) < left:
            wanted.append(units.pop(0))
        got = take_locks([unit for unit in wanted if verdicts[unit].lock], run.agent, run.id, run.claim_s, counted_at)
        left -= sum(tasks_of[unit] for unit in wanted if unit in got or not verdicts[unit].lock)
        held |= got
    return frozenset(held)
