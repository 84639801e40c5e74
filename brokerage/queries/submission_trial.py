"""What a change of thresholds would lead to: those of each site and kind before and after, and what would be submitted now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from broker_site.foundation.gdpconfig.changesets import CONFIG, Step, columns_of
from broker_site.foundation.gdpconfig.values import Config
from brokerage.models import LocalOverride, Site
from brokerage.queries.submission import cycle_rules, site_facts, waiting_jobs
from brokerage.rules.submission.site_states import SITE_LINE, site_state
from brokerage.rules.submission.site_thresholds import slots_of
from brokerage.rules.submission.submission_cycle import CachedJob, CycleRules, SubmissionSite, plan_cycle

MOST_JOBS = 1000
NOTHING_SET: Mapping[str, Any] = {"state": "", "cpu_slots": None, "io_slots": None}
COMPONENT = "submission"


@dataclass(frozen=True, slots=True)
class ThresholdTrial:
    """Of a site and a kind (empty: all kinds): (pending, running) as they may be now and then, and what is there."""

    site: str
    kind: str
    state: tuple[str, str]
    pending: tuple[int, int]
    running: tuple[int, int]
    now: tuple[int, int]


@dataclass(frozen=True, slots=True)
class SubmissionTrial:
    """The thresholds of sites that would change, and how many jobs a cycle would submit to each site now and then.

    `jobs`: those that wait and were judged; `more`: there are more.
    """

    thresholds: Sequence[ThresholdTrial]
    submitted: Mapping[str, tuple[int, int]]
    jobs: int
    more: bool

    @property
    def sentence(self) -> str:
        """What it says, and on how much that rests."""
        before, after = (sum(pair[n] for pair in self.submitted.values()) for n in (0, 1))
        of = f"of {'the first ' if self.more else ''}{self.jobs} jobs that wait to be submitted"
        n = len({trial.site for trial in self.thresholds})
        sites = f"{n} site{'' if n == 1 else 's'}"
        return f"Thresholds of {sites} would be others; {of} {before} may go now, {after} then."


def submission_trial(steps: Sequence[Step], before: Config, after: Config) -> SubmissionTrial | None:
    """What the steps of a preview would mean for submission; None where none of them is about it."""
    changed = [step for step in steps if step.differs]
    of_sites = [step for step in changed if step.place.kind == SITE_LINE]
    if not of_sites and not any(step.place.kind == CONFIG and step.place.component == COMPONENT for step in changed):
        return None
    facts = site_facts()
    rules = [cycle_rules(config.component(COMPONENT)) for config in (before, after)]
    sites = [facts.sites, _with(facts.sites, of_sites)]
    jobs = waiting_jobs(facts, MOST_JOBS + 1)
    counted = [_submitted(jobs[:MOST_JOBS], *side) for side in zip(sites, rules, strict=True)]
    names = sorted({*counted[0], *counted[1]})
    pairs = {name: (counted[0][name], counted[1][name]) for name in names}
    told = [trial for name in sorted(facts.sites) for trial in _trials(sites[0][name], sites[1][name], *rules)]
    return SubmissionTrial(told, pairs, min(len(jobs), MOST_JOBS), len(jobs) > MOST_JOBS)


def _with(sites: Mapping[str, SubmissionSite], steps: Iterable[Step]) -> dict[str, SubmissionSite]:
    """The sites as they would be after the steps."""
    then, facts = dict(sites), _documents([step.place.name for step in steps if step.place.name in sites])
    for step in steps:
        if (site := then.get(step.place.name)) is None:
            continue
        row: Mapping[str, Any] = (
            columns_of(step.after) if step.after is not None else {"state": "", "cpu_slots": None, "io_slots": None}
        )
        document, statuses = facts[step.place.name]
        cpu, io = (document[name] if row[name] is None else row[name] for name in ("cpu_slots", "io_slots"))
        state = site_state(row["state"] or str(document["state"]), statuses)
        slots = slots_of(cpu, io, site.declared)
        since_s = site.state_s if state == site.state else 0.0
        then[site.name] = replace(site, state=state, state_s=since_s, cpu_slots=slots[0], io_slots=slots[1])
    return then


def _documents(names: Sequence[str]) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """What documents say of these sites, under the overrides, and the statuses of their queues."""
    columns = ("state", "cpu_slots", "io_slots")
    beneath = {(o.name, o.attribute): o.beneath for o in LocalOverride.objects.filter(kind="site", name__in=names)}
    found = {}
    for site in Site.objects.filter(name__in=names).prefetch_related("queues"):
        document: dict[str, Any] = {c: beneath.get((site.name, c), getattr(site, c)) for c in columns}
        found[site.name] = (document, [queue.status for queue in site.queues.all()])
    return found


def _submitted(jobs: Sequence[CachedJob], sites: Mapping[str, SubmissionSite], rules: CycleRules) -> Counter[str]:
    return Counter(site for _, site in plan_cycle(jobs, sites, rules).submitted)


def _trials(before: SubmissionSite, after: SubmissionSite, rules: CycleRules, then: CycleRules) -> list[ThresholdTrial]:
    loads = before.load(rules.rule), after.load(then.rule)
    found = []
    for kind in ("", *loads[0].kinds):
        old, new = (load.kinds[kind] if kind else load.site for load in loads)
        pairs = (old.pending_slots, new.pending_slots), (old.running_slots, new.running_slots)
        if before.state != after.state or any(was != then_ for was, then_ in pairs):
            found.append(ThresholdTrial(before.name, kind, (before.state, after.state), *pairs, (old.pending, old.running)))
    return found
