"""Which units may get jobs in a run of generate, and how many: the job throttler at work (seed 001; decisions C1, C6; row J25).

Here: loading, storing and locking for one run. Not here: the verdicts (`workqueues.rules.throttle.unit_verdict`) and the making
of jobs (`generate`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from brokerage.queries.idle_slots import idle_vos
from brokerage.queries.misfits import misfit_task_queues
from brokerage.queries.stranded_jobs import queue_services, stranded_task_queues, waiting_at, waiting_in
from brokerage.queries.unit_jobs import claimable_by_group, jobs_by_group
from workqueues.ledger.claims import OpenGroup
from workqueues.ledger.locks import database_time, release_locks, renew_locks, take_locks_in_turn
from workqueues.ledger.verdicts import record_verdicts
from workqueues.models import Task
from workqueues.queries.units import Units
from workqueues.rules.throttle.limits import component_of
from workqueues.rules.throttle.throttler import Counts, Verdict
from workqueues.rules.throttle.unit_verdict import UnitRules, judge_units
from workqueues.rules.throttle.units import Group, Unit


@dataclass(slots=True)
class Throttle:
    """The verdicts of one run. `open`: the groups of tasks that may be claimed; what is not named there gets no jobs now.

    `claimable`: how many tasks there are that may get jobs, those too that are left to other generators; `vos`: whose they are.
    """

    run: Run
    units: Units
    verdicts: Mapping[Unit, Verdict]
    open: tuple[OpenGroup, ...]
    locked: frozenset[Unit]
    claimable: int
    vos: frozenset[str]
    made_for: dict[Unit, int] = field(default_factory=lambda: defaultdict(int))
    renewed: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, run: Run, tasks: int = 20) -> Self:
        """Judge every unit with tasks to make jobs for, store the verdicts, and lock units that such a run can serve.

        `tasks`: how many the run will claim; units beyond are left to other generators. Nothing waits: what another generator
        has locked is not open.
        """
        units, claimable, counted_at = Units.load(), claimable_by_group(), database_time()
        priorities = {group: tasks_of.priority for group, tasks_of in claimable.items()}
        judged = judge_units(priorities, counted_jobs(), units.of, lambda unit: rules_of(unit, units))
        record_verdicts(list(judged.values()), gdpconfig.revision())
        verdicts = {unit: unit_verdict.verdict for unit, unit_verdict in judged.items()}
        groups = {group: units.of(group) for group in claimable if verdicts[units.of(group)].decision == "PASS"}
        tasks_of_unit: dict[Unit, int] = defaultdict(int)
        for group, unit in groups.items():
            tasks_of_unit[unit] += claimable[group].tasks
        unlocked = {unit for unit in tasks_of_unit if not verdicts[unit].lock}
        locked = take_locks_in_turn(tasks_of_unit, unlocked, tasks, run, counted_at)
        opened = tuple(
            OpenGroup(*group, verdicts[unit].least_priority, claimable[group].turn)
            for group, unit in groups.items()
            if unit in unlocked or unit in locked
        )
        vos = frozenset(group.vo for group in groups)
        return cls(run, units, verdicts, opened, locked, sum(tasks_of_unit.values()), vos)

    def room(self, task: Task) -> int | None:
        """Jobs that may still be made for the task in this run; None without limit."""
        unit = self._unit(task)
        verdict = self.verdicts.get(unit)
        return 0 if verdict is None else verdict.room(task.current_priority, self.made_for[unit])

    def made(self, task: Task, n: int) -> None:
        """Count jobs that were made for the task; the locks of a run that takes long are held on."""
        self.made_for[self._unit(task)] += n
        if self.locked and time.monotonic() - self.renewed > self.run.claim_s / 4:
            renew_locks(self.run.id)
            self.renewed = time.monotonic()

    def end(self) -> None:
        if self.locked:
            release_locks(self.run.id)

    def _unit(self, task: Task) -> Unit:
        group = Group(task.vo, task.prod_source_label, task.gshare, task.work_queue_id or 0, task.resource_type)
        return self.units.of(group)


def counted_jobs() -> dict[Group, Counts]:
    """What the live jobs of each group do, with those apart that stand where they cannot start."""
    jobs = jobs_by_group()
    if not jobs:
        return jobs
    idle = idle_vos()
    dead_s = {group: _dead_s(group, bool(idle & {group.vo, ""})) for group in jobs}
    services = {queue.id: queue for queue in queue_services() if queue.starts_none(min(dead_s.values()))}
    for waiting in waiting_at(list(services)):
        if waiting.group in jobs and services[waiting.queue_id or 0].starts_none(dead_s[waiting.group]):
            jobs[waiting.group] += Counts(stranded=waiting.n)
    for limit_s in set(dead_s.values()) if services else ():
        stopped = {id_ for id_, queue in services.items() if queue.starts_none(limit_s)}
        for waiting in waiting_in(stranded_task_queues(stopped)):
            if waiting.group in jobs and dead_s[waiting.group] == limit_s:
                jobs[waiting.group] += Counts(stranded=waiting.n)
    for waiting in waiting_in(misfit_task_queues(but_at=list(services))):
        if waiting.group in jobs:
            jobs[waiting.group] += Counts(stranded=waiting.n)
    return jobs


def _dead_s(group: Group, beside_idle: bool) -> float:
    keys = ("DEAD_QUEUE", "DEAD_QUEUE_BESIDE_IDLE") if beside_idle else ("DEAD_QUEUE",)
    return min(gdpconfig.value(component_of(group.label), key, vo=group.vo) for key in keys)


def rules_of(unit: Unit, units: Units) -> UnitRules:
    """What the configuration says of a unit now."""
    return UnitRules(
        keys=gdpconfig.component(component_of(unit.label), vo=unit.vo),
        submission=gdpconfig.value("jobgen", "JOB_SUBMISSION", vo=unit.vo),
        shortage=gdpconfig.value("core", "WORK_SHORTAGE"),
        unthrottled=units.unthrottled(unit),
    )
