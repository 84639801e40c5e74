"""Why an element that waits is not pulled by a child broker: by the same rules that give elements to children (rows W2, W3, W6).

Computed when somebody asks, of the child as it was last heard of. It is empty exactly where `acquire` would give the element to
the child, were it asked of this element alone. Not here: that other elements come first in the order of a pull.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workqueues.rules.elements.acquisition import Element, JobCounts, Puller, has_slot
from workqueues.rules.elements.element_sites import SiteWishes, data_missing
from workqueues.rules.elements.site_slots import SiteSlots, slots
from workqueues.states import SITE_DRAINED

REASONS: Mapping[str, str] = {
    "revoked": "its token was revoked",
    "silent": "it has not been heard of for too long, or never",
    "drained": "it drains: an operator said so, or it said so itself",
    "vo": "it pulls elements of another VO only",
    "team": "the element is for another team",
    "refused": "it does not want elements of the task",
    "full": "it has as many jobs as its hard limit allows",
    "confirming": "it has yet to say that it has the elements of its last pull",
    "holds": "it has as many elements as one child broker may have",
    "sites": "it told of no site",
    "list": "the site lists of the task leave the site out",
    "data": "the site does not have all that the element reads",
    "site": "the site drains, or is down",
    "slot": "every slot of the site is taken by jobs of the same or a higher priority",
}
"""Kind of a reason -> what it says, without its numbers."""


PULL_REASONS: Mapping[str, str] = {
    "draining": "it drains",
    "no_free_job": "it has as many jobs as its hard limit allows",
    "negotiating": "elements of the pull before were not confirmed yet",
    "holds_most": "it has as many elements as one child broker may have",
    "in_other_hands": "just taken by others",
    "no_slot": "no slot for them",
    "nothing_waits": "nothing waits that it may have and has a slot for",
}
"""Why a pull got no more, as its answer tells -> in words."""


class WhyNot(NamedTuple):
    """One reason why a child does not get an element; `kind`: one of REASONS; `site`: of the child, where it is about one."""

    kind: str
    why: str
    site: str = ""


@dataclass(frozen=True, slots=True)
class ChildStand:
    """A child broker as its parent knows it.

    `drained_here`: by an operator of the parent; `heard_s`: seconds since its last message, None: never; `quiet_s`: after so many
    it counts as not heard of; `sites`, `jobs`, `free_jobs`, `is_draining`: as it told; `negotiating`: elements of its last pull
    that it has not yet confirmed; `held`: all elements that it has, of which it may have `most_held`, None: any number.
    """

    team: str = ""
    vo: str = ""
    is_revoked: bool = False
    drained_here: bool = False
    is_draining: bool = False
    heard_s: float | None = 0.0
    quiet_s: float = 900.0
    sites: Mapping[str, SiteSlots] = field(default_factory=dict)
    jobs: JobCounts = field(default_factory=dict)
    free_jobs: int | None = None
    negotiating: int = 0
    held: int = 0
    most_held: int | None = None
    refused_tasks: Collection[str] = ()

    @property
    def holds_most(self) -> bool:
        """Whether it has as many elements as it may."""
        return self.most_held is not None and self.held >= self.most_held

    @property
    def puller(self) -> Puller:
        """It as `acquire` knows it."""
        return Puller(
            team=self.team,
            refused_tasks=self.refused_tasks,
            free_jobs=self.free_jobs,
            negotiating=self.negotiating,
            holds_most=self.holds_most,
            is_draining=self.is_draining or self.drained_here,
        )


def why_waiting(element: Element, vo: str, child: ChildStand) -> list[WhyNot]:
    """Why the child does not get the element of this VO, which waits: what keeps it from the child whatever the site, else what
    keeps it from each of the child's sites, by name. Empty: nothing does, and it gets it once its turn in a pull has come.
    """
    if whole := [*_of_child(child), *_of_both(element, vo, child)]:
        return whole
    open_slots = slots(child.sites, "pull")
    found = [_of_site(element, site, child.sites[site], open_slots, child.jobs) for site in sorted(child.sites)]
    if not found:
        return [WhyNot("sites", "It told of no site.")]
    return [] if None in found else [reason for reason in found if reason is not None]


def _of_child(child: ChildStand) -> Iterator[WhyNot]:
    """What keeps every element from it."""
    if child.is_revoked:
        yield WhyNot("revoked", "Its token was revoked.")
    if child.heard_s is None:
        yield WhyNot("silent", "It has not been heard of yet.")
    elif child.heard_s > child.quiet_s:
        yield WhyNot("silent", f"It has not been heard of for {_lasting(child.heard_s)}.")
    if child.drained_here:
        yield WhyNot("drained", "It is drained: an operator of this broker let it pull nothing more.")
    if child.is_draining:
        yield WhyNot("drained", "It drains: it said that it pulls nothing more.")
    if child.free_jobs is not None and child.free_jobs <= 0:
        yield WhyNot("full", "It has as many jobs as its hard limit allows.")
    if child.negotiating:
        what = "the element" if child.negotiating == 1 else f"{child.negotiating:,} elements"
        yield WhyNot("confirming", f"It has yet to say that it has {what} of its last pull.")
    if child.holds_most:
        yield WhyNot("holds", f"It has {child.most_held:,} elements, as many as one child broker may have.")


def _of_both(element: Element, vo: str, child: ChildStand) -> Iterator[WhyNot]:
    """What keeps this element from it, whatever the site."""
    if child.vo and child.vo != vo:
        yield WhyNot("vo", f"It pulls elements of {child.vo} only; this is one of {vo}.")
    if element.team and child.team and element.team != child.team:
        yield WhyNot("team", f"The element is for the team {element.team}; the child is of {child.team}.")
    if element.task in child.refused_tasks:
        yield WhyNot("refused", f"It does not want elements of task {element.task}.")


def _of_site(element: Element, name: str, site: SiteSlots, open_slots: Mapping[str, float], jobs: JobCounts) -> WhyNot | None:
    """What keeps the element from one site; None: nothing."""
    if (barred := _barred(element.wishes, name)) is not None:
        return barred
    if name not in open_slots:
        drains = site.state in SITE_DRAINED
        return WhyNot("site", f"{name} drains: it pulls nothing more." if drains else f"{name} is {site.state}.", name)
    there = jobs.get(name, {})
    if has_slot(element.priority, open_slots[name], there):
        return None
    n = sum(count for priority, count in there.items() if priority >= element.priority)
    many = open_slots[name]
    if many <= 0:
        return WhyNot("slot", f"{name} has no slot.", name)
    taken = "its slot is" if many == 1 else f"its {many:,.0f} slots are"
    by = f"{n:,.0f} job{'' if n == 1 else 's'} of priority {element.priority:.0f} or higher"
    return WhyNot("slot", f"No slot at {name}: {taken} taken by {by}.", name)


def _barred(wishes: SiteWishes, site: str) -> WhyNot | None:
    if site in wishes.excluded or site not in wishes.included:
        return WhyNot("list", f"The site lists of the task leave {site} out.", site)
    missing = data_missing(wishes, site)
    return WhyNot("data", f"{site} does not have {missing}.", site) if missing else None


def _lasting(seconds: float) -> str:
    """A duration in its largest unit."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size:,.0f} {unit}s"
    return f"{seconds:,.0f} seconds"
