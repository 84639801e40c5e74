"""One cycle of submission: which cached jobs go where, which wait, and which can go nowhere (row W4, decision J8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from brokerage.rules.submission.job_kinds import FINISHING_KINDS, KIND_PRIORITIES, KINDS, READING_KINDS
from brokerage.rules.submission.open_sites import ALL_CLOSED, ALL_DRAIN, GRACE_S, NO_SITE, open_sites
from brokerage.rules.submission.site_caps import ADVERTISED, NO_CAPS, RUNNING_LIMIT, Caps, JobValue
from brokerage.rules.submission.site_thresholds import SiteThresholds, ThresholdRule, thresholds
from brokerage.rules.submission.under_thresholds import ABOVE, MOST_PER_CYCLE, JobGroup, Load, SiteLoad, submit
from workqueues.states import SITE_CLOSED, SITE_DRAINED, SITE_OPEN

NO_DESCRIPTION, UNSTARTABLE = 71104, 71105
"""Codes of the errors of jobs of which nothing is said, and of those that nobody can start."""
CODES: Mapping[int, str] = {
    NO_SITE: "no site is left to which it may go",
    ALL_CLOSED: "all sites to which it may go are down",
    ALL_DRAIN: "all sites to which it may go have drained for too long",
    NO_DESCRIPTION: "it has no description",
    UNSTARTABLE: "its pilot cannot be started",
}
CONDITION_TEXTS: Mapping[str, str] = {
    "NoPendingSlot": "as many jobs wait at the site as may",
    "NoTaskPendingSlot": "as many jobs of its kind wait at the site as may",
    "NoRunningSlot": "as many jobs wait and run at the site as may",
    "NoTaskRunningSlot": "as many jobs of its kind wait and run at the site as may",
}


class CachedJob(NamedTuple):
    """A job that waits to be submitted. `sites`: those to which it may go; `described`: it has a description."""

    id: int
    kind: str
    priority: int
    task_queue: int
    sites: tuple[str, ...]
    described: bool = True
    values: frozenset[JobValue] = frozenset()
    """Those that may be limited at sites."""


class Use(NamedTuple):
    """Jobs of a kind that are at a site: how many wait and run there, and the highest priority of both."""

    pending: int
    running: int
    highest_priority: int


@dataclass(frozen=True, slots=True)
class SubmissionSite:
    """A site: its state and since when (s) it is in it, its slots, and its jobs by kind."""

    name: str
    state: str
    state_s: float
    cpu_slots: int
    io_slots: int
    use: Mapping[str, Use] = field(default_factory=dict)
    declared: int = 0
    """Slots that are declared for its queues."""

    def thresholds(self, rule: ThresholdRule, brokers: int = 1) -> SiteThresholds:
        """Of all jobs, and of each kind."""
        return thresholds(self.cpu_slots, self.io_slots, brokers, rule)

    def load(self, rule: ThresholdRule) -> SiteLoad:
        """Thresholds with what is there."""
        most = self.thresholds(rule)
        uses = self.use.values()
        highest = max((use.highest_priority for use in uses if use.pending or use.running), default=None)
        site = Load(*most.site, sum(use.pending for use in uses), sum(use.running for use in uses), highest)
        return SiteLoad(site, {kind: self._of_kind(kind, most) for kind in KIND_PRIORITIES})

    def _of_kind(self, kind: str, most: SiteThresholds) -> Load:
        slots = most.io_kind if kind in READING_KINDS else most.cpu_kind
        use = self.use.get(kind, Use(0, 0, 0))
        return Load(*slots, use.pending, use.running, use.highest_priority if use.pending or use.running else None)


class CycleRules(NamedTuple):
    """How a cycle goes. `max_jobs` and `part`: the hard limit is their product. `grace_s`: how long a site drains."""

    rule: ThresholdRule = ThresholdRule()
    above: float = ABOVE
    grace_s: float = GRACE_S
    max_jobs: int = 1000
    part: float = 0.75
    most: int = MOST_PER_CYCLE

    @property
    def hard_limit(self) -> int:
        """Most jobs that are submitted at a time, waiting and running, at all sites."""
        return int(self.max_jobs * self.part)


class Waits(NamedTuple):
    """Why a job was not submitted to a site: a condition, or the state of the site; empty: nothing is against it."""

    site: str
    reason: str


class CyclePlan(NamedTuple):
    """(job id, site) of what is submitted, (job id, code) of what can go nowhere, and why each other job waits."""

    submitted: Sequence[tuple[int, str]]
    failed: Sequence[tuple[int, int]]
    why_not: Mapping[int, Sequence[Waits]]


DRAINS, CLOSED, HARD_LIMIT, CYCLE, NO_THRESHOLD = "SiteDrains", "SiteDown", "HardLimit", "NextCycle", "NoThreshold"
WAIT_TEXTS: Mapping[str, str] = {
    **CONDITION_TEXTS,
    ADVERTISED: "the site takes no more jobs, as it advertises",
    RUNNING_LIMIT: "as many jobs of its kind hold slots at the site as may (dispatch.RUNNING_LIMITS)",
    DRAINS: "the site takes no new jobs, and may do so again",
    HARD_LIMIT: "as many jobs are submitted as may be at a time (submission.MAX_JOBS)",
    CLOSED: "the site is down",
    NO_THRESHOLD: "the thresholds of the site let no job wait",
    CYCLE: "its turn comes in one of the next cycles",
}


def next_stop(site: SubmissionSite, kind: str, rules: CycleRules, there: int, caps: Caps = NO_CAPS) -> str:
    """What stops the next job of a kind at a site, of a priority that exceeds nothing; empty kind: of any. Empty: nothing.

    `there`: jobs that are submitted, at all sites.
    """
    if site.state in SITE_CLOSED:
        return CLOSED
    kinds = [kind] if kind else list(KIND_PRIORITIES)
    if site.state in SITE_DRAINED and not FINISHING_KINDS.intersection(kinds):
        return DRAINS
    if there >= rules.hard_limit:
        return HARD_LIMIT
    load = site.load(rules.rule)
    groups = [JobGroup(one, one, KIND_PRIORITIES[one], -(2**31), 1, [site.name]) for one in kinds]
    stopped = [submit([group], {site.name: load}, 1, 0.0, caps) for group in groups]
    if any(done.jobs for done in stopped):
        return ""
    return next((why for done in stopped for of in done.why_not.values() for why in of.values()), NO_THRESHOLD)


def kind_of(kind: int) -> str:
    """The kind of a job by the number in its row."""
    return next(name for known, name in KINDS.items() if known == kind)


def plan_cycle(
    jobs: Iterable[CachedJob], sites: Mapping[str, SubmissionSite], rules: CycleRules, caps: Caps = NO_CAPS
) -> CyclePlan:
    """Judge the cached jobs in their order: priority of their kind, their own, id. Sites that are not there take nothing."""
    capped = frozenset((cap.attribute, cap.value) for cap in caps)
    failed: list[tuple[int, int]] = []
    why_not: dict[int, list[Waits]] = {}
    groups: list[tuple[JobGroup, list[CachedJob]]] = []
    for (kind, priority, possible, described, values), some in groupby(
        jobs, key=lambda job: (job.kind, job.priority, job.sites, job.described, job.values & capped)
    ):
        alike = list(some)
        known = [site for site in possible if site in sites]
        if not described:
            failed += [(job.id, NO_DESCRIPTION) for job in alike]
            continue
        told = open_sites(kind, known, {s: sites[s].state for s in known}, _draining(known, sites), rules.grace_s)
        if told.code is not None:
            failed += [(job.id, told.code) for job in alike]
        elif told.action == "wait":
            why_not |= {job.id: [Waits(site, DRAINS) for site in known] for job in alike}
        else:
            group = JobGroup(str(len(groups)), kind, KIND_PRIORITIES[kind], priority, len(alike), told.sites, values)
            groups.append((group, alike))
    return CyclePlan(*_submit(groups, sites, rules, caps, failed, why_not))


def _draining(known: Sequence[str], sites: Mapping[str, SubmissionSite]) -> dict[str, float]:
    return {site: sites[site].state_s for site in known if sites[site].state not in SITE_OPEN}


def _submit(
    groups: Sequence[tuple[JobGroup, list[CachedJob]]],
    sites: Mapping[str, SubmissionSite],
    rules: CycleRules,
    caps: Caps,
    failed: list[tuple[int, int]],
    why_not: dict[int, list[Waits]],
) -> tuple[list[tuple[int, str]], list[tuple[int, int]], dict[int, list[Waits]]]:
    load = {name: site.load(rules.rule) for name, site in sites.items()}
    there = sum(one.site.pending + one.site.running for one in load.values())
    room = max(rules.hard_limit - there, 0)
    done = submit([group for group, _ in groups], load, min(rules.most, room), rules.above, caps)
    submitted: list[tuple[int, str]] = []
    for group, alike in groups:
        left = iter(alike)
        for site in group.sites:
            submitted += [(next(left).id, site) for _ in range(done.jobs.get((group.name, site), 0))]
        told = [Waits(site, why) for site, why in done.why_not.get(group.name, {}).items()]
        full = HARD_LIMIT if len(submitted) >= room else CYCLE
        none = {site for site in group.sites if not load[site].kinds[group.kind].pending_slots}
        told = told or [Waits(site, NO_THRESHOLD if site in none else full) for site in group.sites]
        why_not |= {job.id: told for job in left}
    return submitted, failed, why_not
