"""How a site of this broker stands when it pulls work from its parent (rows W2, W3; decision J8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from brokerage.rules.submission.site_states import site_state
from brokerage.rules.submission.site_thresholds import PRACTICE, ThresholdRule, slots_of, thresholds
from workqueues.rules.elements.site_slots import SiteSlots


def pulling_site(
    attribute: str,
    queues: Collection[str],
    cpu_slots: int | None,
    declared: int,
    running_jobs: int,
    rule: ThresholdRule = PRACTICE,
) -> SiteSlots:
    """A site by its attributes `state` and `cpu_slots`, the statuses of its queues, the slots that were declared for it, and the
    jobs that run.
    """
    limits = thresholds(*slots_of(cpu_slots, None, declared), 1, rule).site
    return SiteSlots(site_state(attribute, queues), limits.pending, limits.running, running_jobs)


def waiting_jobs(
    ready: Mapping[str, Mapping[int, int]], not_ready: Mapping[str, int], elements: Mapping[str, Mapping[int, int]]
) -> dict[str, dict[float, float]]:
    """Site -> priority -> jobs that wait there, and that elements will be.

    Of jobs whose input is still brought the priority is not known; they count with the lowest that is, so that they never block
    what is more urgent.
    """
    found: dict[str, dict[float, float]] = {}
    for site in sorted({*ready, *elements, *(site for site, n in not_ready.items() if n > 0)}):
        counts: dict[float, float] = {}
        for part in (ready.get(site, {}), elements.get(site, {})):
            for priority, jobs in part.items():
                counts[priority] = counts.get(priority, 0) + jobs
        if (n := not_ready.get(site, 0)) > 0:
            lowest = min(counts, default=0)
            counts[lowest] = counts.get(lowest, 0) + n
        found[site] = counts
    return found


def fewer_priorities(counts: Mapping[float, float], most: int) -> dict[float, float]:
    """The same jobs under at most so many priorities: the highest stay, and the others count as the highest of them."""
    ordered = sorted(counts, reverse=True)
    kept = {priority: counts[priority] for priority in ordered[:most]}
    if rest := ordered[most:]:
        kept[ordered[most - 1]] += sum(counts[priority] for priority in rest)
    return kept
