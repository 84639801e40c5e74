"""Which jobs are submitted to which site in a cycle, under thresholds by site and kind (row W4, facts on work queues b7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from brokerage.rules.submission.job_kinds import FINISHING_KINDS
from brokerage.rules.submission.site_caps import NO_CAPS, Caps, JobValue, caps_on, tightest

ABOVE = 0.2
"""Part of a threshold by which jobs of a higher priority than all that are there may exceed it."""
MOST_PER_CYCLE = 1000
_PER_TASK_PRIORITY = 10_000_000
_ROUNDING = 1e-9

CONDITIONS = ("NoPendingSlot", "NoTaskPendingSlot", "NoRunningSlot", "NoTaskRunningSlot")
"""What stops a job at a site, in the order in which it is looked at: of the site, and of its kind there."""


@dataclass(frozen=True, slots=True)
class Load:
    """Slots for jobs that wait and that run, and how many do; `highest_priority` of these jobs, None: there are none."""

    pending_slots: int
    running_slots: int
    pending: int = 0
    running: int = 0
    highest_priority: float | None = None

    def started(self) -> Load:
        """All that wait have begun to run."""
        return replace(self, pending=0, running=self.running + self.pending)

    def plus(self, jobs: int, priority: float) -> Load:
        """So many more wait."""
        highest = priority if self.highest_priority is None else max(self.highest_priority, priority)
        return replace(self, pending=self.pending + jobs, highest_priority=highest)


@dataclass(frozen=True, slots=True)
class SiteLoad:
    """A site: all of its jobs together, and those of each kind."""

    site: Load
    kinds: Mapping[str, Load] = field(default_factory=dict)

    def started(self) -> SiteLoad:
        """All that wait have begun to run."""
        return SiteLoad(self.site.started(), {kind: load.started() for kind, load in self.kinds.items()})

    def plus(self, kind: str, jobs: int, priority: float) -> SiteLoad:
        """So many more of a kind wait."""
        kinds = {**self.kinds, kind: self.kinds[kind].plus(jobs, priority)}
        return SiteLoad(self.site.plus(jobs, priority), kinds)


class JobGroup(NamedTuple):
    """Jobs that are alike: their kind, the priority of kinds among each other, their own, how many, and their sites in turn."""

    name: str
    kind: str
    kind_priority: int
    priority: float
    jobs: int
    sites: Sequence[str]
    values: frozenset[JobValue] = frozenset()
    """Those that may be capped."""


class Submission(NamedTuple):
    """What a cycle submits: (group, site) -> jobs; the load after it; and for each group with jobs left why, by site."""

    jobs: dict[tuple[str, str], int]
    load: dict[str, SiteLoad]
    why_not: dict[str, dict[str, str]]


def submit(
    groups: Iterable[JobGroup],
    load: Mapping[str, SiteLoad],
    most: int = MOST_PER_CYCLE,
    above: float = ABOVE,
    caps: Caps = NO_CAPS,
) -> Submission:
    """Submit at most so many jobs, highest priority first, each to the first of its sites that has room.

    `load` at the beginning of the cycle, by site. `above`: see ABOVE; the hard limit of the pool is in `most`. `caps`: what
    sites take at all.
    """
    now, jobs, why_not = dict(load), dict[tuple[str, str], int](), dict[str, dict[str, str]]()
    takes = dict(caps)
    for group in sorted(groups, key=lambda one: -(one.kind_priority * _PER_TASK_PRIORITY + one.priority)):
        left = group.jobs
        for site in group.sites:
            if site not in now or group.kind not in now[site].kinds or not now[site].kinds[group.kind].pending_slots:
                continue
            on = caps_on(takes, site, group.values)
            room, why = min([_room(group, load[site], now[site], above), *tightest(takes, on)], key=lambda one: one[0])
            n = min(left, most, room)
            if n:
                now[site] = now[site].plus(group.kind, n, group.priority)
                jobs[group.name, site] = n
                takes |= {cap: takes[cap] - n for cap in on}
                left, most = left - n, most - n
            if left and n == room:
                why_not.setdefault(group.name, {})[site] = why
            if not left or not most:
                break
    return Submission(jobs, now, why_not)


def _room(group: JobGroup, first: SiteLoad, now: SiteLoad, above: float) -> tuple[int, str]:
    """Jobs of the group for which the site has room, and the condition that stops the next one.

    `first`: its load when the cycle began, by which the priority is judged.
    """
    highest = first.kinds[group.kind].highest_priority
    exceeds = highest is not None and group.priority > highest and group.kind not in FINISHING_KINDS
    loads = ((now.site, first.site), (now.kinds[group.kind], first.kinds[group.kind]))
    pending = [max(one.pending_slots, start.pending) + above * one.pending_slots for one, start in loads]
    if not exceeds:
        pending = [one.pending_slots for one, _ in loads]
    waiting = [slots - one.pending for slots, (one, _) in zip(pending, loads, strict=True)]
    together = [more + one.running_slots - one.running for more, (one, _) in zip(waiting, loads, strict=True)]
    rooms = [max(math.ceil(room - _ROUNDING), 0) for room in (*waiting, *together)]
    return min(zip(rooms, CONDITIONS, strict=True), key=lambda one: one[0])
