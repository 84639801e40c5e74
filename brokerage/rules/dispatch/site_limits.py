"""Limits that a site advertises, and which sites a job may go to by its list of stations (rows S1, S2; seed 004; decision H8).

A site says how many jobs it has and how many it takes, in any state and while they are being submitted. Both limits are asked
before each match, with the matches since the count added. What is not advertised is not true, so it matches nothing: a missing
limit is never "no limit". Forwarding nodes, which pass jobs on to another grid, are sites as others are. Times in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

KINDS = ("native", "forwarding")
"""A site runs jobs itself, or is a node that forwards them to another grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertisement:
    """What a site says; None: it does not say it.

    `current_jobs` counts all jobs there, those being submitted among them.
    """

    max_jobs: int | None = None
    max_submitting_jobs: int | None = None
    current_jobs: int | None = None
    current_submitting_jobs: int | None = None


LIMITS = ("max_jobs", "max_submitting_jobs")
NUMBERS = (*LIMITS, "current_jobs", "current_submitting_jobs")
AS_WRITTEN = {
    "max_jobs": "MaxJobs",
    "max_submitting_jobs": "MaxSubmittingJobs",
    "current_jobs": "CurrentJobs",
    "current_submitting_jobs": "CurrentSubmittingJobs",
}
"""The names of the document."""


@dataclass(frozen=True, slots=True)
class SiteState:
    """An advertisement and how many jobs the site got since its count (JobsMatchedSinceLastAdvertisement)."""

    ad: Advertisement
    matched: int = 0

    @property
    def cur_matches(self) -> int:
        """CurMatches: the jobs that the site counted and those it got since."""
        return (self.ad.current_jobs or 0) + self.matched


def below_max_jobs(state: SiteState) -> bool:
    """CurMatches < MaxJobs."""
    ad = state.ad
    return ad.current_jobs is not None and ad.max_jobs is not None and state.cur_matches < ad.max_jobs


def below_max_submitting(state: SiteState) -> bool:
    """JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs."""
    now, most = state.ad.current_submitting_jobs, state.ad.max_submitting_jobs
    return now is not None and most is not None and state.matched + now < most


def accepts(state: SiteState) -> bool:
    """Whether the site takes one more job: both requirements hold."""
    return below_max_jobs(state) and below_max_submitting(state)


def room(state: SiteState) -> int:
    """How many more jobs the site takes before either requirement fails."""
    ad = state.ad
    if ad.max_jobs is None or ad.max_submitting_jobs is None or ad.current_jobs is None or ad.current_submitting_jobs is None:
        return 0
    return max(0, min(ad.max_jobs - ad.current_jobs, ad.max_submitting_jobs - ad.current_submitting_jobs) - state.matched)


def give(state: SiteState, wanted: int) -> tuple[SiteState, int]:
    """The site after it got as many of the wanted jobs as it takes, and how many those are."""
    n = max(0, min(wanted, room(state)))
    return replace(state, matched=state.matched + n), n


def advertised(ad: Advertisement, newer_matches: int = 0) -> SiteState:
    """The site when an advertisement arrives. `newer_matches`: jobs that it got after the count, which that cannot know."""
    return SiteState(ad, newer_matches)


def time_fault(counted_at: float, last_counted_at: float | None, now: float, tolerance_s: float) -> str | None:
    """Why an advertisement with this time of its count cannot be taken, or None.

    `tolerance_s`: how far the clock of a site may be ahead of ours.
    """
    if counted_at > now + tolerance_s:
        return f"the count is {_span(counted_at - now)} in the future; at most {_span(tolerance_s)} are taken for a wrong clock"
    if last_counted_at is None and counted_at < 0:
        return "the count is of before 1970; such times cannot be reckoned with"
    if last_counted_at is None or counted_at > last_counted_at:
        return None
    if counted_at == last_counted_at:
        return "the count is of the same time as that of the last advertisement, which said something else"
    return f"the count is not newer than that of the last advertisement, which is {_span(last_counted_at - counted_at)} later"


def why_no_room(state: SiteState, age_s: float, max_age_s: float) -> str:
    """Why the site gets no job, in words; empty: it has room. `age_s`: since the count of its advertisement."""
    ad = state.ad
    if age_s > max_age_s:
        return f"its last advertisement is {_span(age_s)} old, and one older than {_span(max_age_s)} gives no room"
    if missing := [AS_WRITTEN[name] for name in NUMBERS if getattr(ad, name) is None]:
        return f"its advertisement does not say {' and '.join(missing)}, and without that nothing matches"
    told = []
    if not below_max_jobs(state):
        told.append(f"{ad.current_jobs} jobs there and {state.matched} matched since, of at most {ad.max_jobs} (MaxJobs)")
    if not below_max_submitting(state):
        told.append(
            f"{ad.current_submitting_jobs} jobs being submitted and {state.matched} matched since, "
            f"of at most {ad.max_submitting_jobs} (MaxSubmittingJobs)"
        )
    return "; ".join(told)


@dataclass(frozen=True, slots=True)
class ExecutionSite:
    """A site as the choice among sites sees it."""

    name: str
    stations: frozenset[str]
    state: SiteState


def suits(stations: frozenset[str], site: ExecutionSite) -> bool:
    """Whether both sides agree: the site advertises a station of the user's list (empty: any), and takes one more job."""
    return (not stations or not stations.isdisjoint(site.stations)) and accepts(site.state)


def candidates(stations: Iterable[str], sites: Iterable[ExecutionSite]) -> list[str]:
    """Names of the sites that a job with this list of stations may go to now, sorted.

    The choice of the document, an oracle for conformance and tests: here pilots ask, and their site is looked at by itself.
    """
    wanted = frozenset(stations)
    return sorted(site.name for site in sites if suits(wanted, site))


def probability(names: Sequence[str]) -> float | None:
    """How probable the choice of each is; None where there is nothing to choose: the job stays idle. An oracle too."""
    return 1 / len(names) if names else None


def choose(names: Sequence[str], dice: Random) -> str | None:
    """One of the candidates, each as probable as another; None where there is none. An oracle too."""
    return dice.choice(names) if names else None


def _span(seconds: float) -> str:
    if 0 < seconds < 0.1:
        return "less than 0.1 s"
    if seconds < 120:
        return f"{round(seconds, 1):g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
