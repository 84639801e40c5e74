"""Which elements a child broker acquires: by priority, then age, where a slot is empty (rows W2, W3; facts on work queues b5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from workqueues.rules.elements.element_sites import SiteWishes, possible_sites

JobCounts = Mapping[str, Mapping[float, float]]
"""Jobs that count at each site, by priority."""


@dataclass(frozen=True, slots=True)
class Element:
    """Work that can be acquired. `created`: when, for the order alone; `jobs` times `blowup`: jobs that it counts as."""

    id: str
    priority: float
    created: float
    jobs: int
    wishes: SiteWishes
    team: str = ""
    state: str = "Available"
    task: str = ""
    blowup: float = 1.0


@dataclass(frozen=True, slots=True)
class Puller:
    """The broker that asks: its team, tasks whose elements it does not want, and how it stands.

    `free_jobs`: jobs that it may still have, None: any number; `negotiating`: elements of its last pull that it has not yet
    confirmed; `holds_most`: it has as many elements as it may; `is_draining`: it takes nothing more.
    """

    team: str = ""
    refused_tasks: Collection[str] = ()
    free_jobs: int | None = None
    negotiating: int = 0
    holds_most: bool = False
    is_draining: bool = False

    @property
    def may_pull(self) -> bool:
        """Whether it may get anything at all."""
        stopped = self.is_draining or self.negotiating > 0 or self.holds_most
        return not stopped and (self.free_jobs is None or self.free_jobs > 0)


def free_jobs(most_jobs: int, fraction: float, executing: int) -> int:
    """Jobs that a broker may still have below the hard limit of its pool, of which it uses a fraction."""
    return int(most_jobs * fraction) - executing


class Acquired(NamedTuple):
    """The elements that are acquired, in their order, each with the site that had the slot; and the jobs that count now."""

    elements: list[tuple[Element, str]]
    counts: dict[str, dict[float, float]]


def acquire(
    elements: Iterable[Element],
    slots: Mapping[str, float],
    dice: Random,
    *,
    counts: JobCounts | None = None,
    puller: Puller | None = None,
    most: int | None = None,
) -> Acquired:
    """Go through the elements by priority, then age; one is acquired for the first of its sites, at random, with an empty slot.

    `slots` and `counts` of each site: a slot is empty while fewer jobs of the same or a higher priority count there; a whole
    element goes in where one slot is empty. `most`: elements of one pull.
    """
    puller = puller or Puller()
    left = {site: dict(jobs) for site, jobs in (counts or {}).items()}
    got: list[tuple[Element, str]] = []
    in_order = _in_order(elements, puller) if puller.may_pull else []
    wishes = {id(one.wishes): one.wishes for one in in_order}  # many elements have the same
    possible = {key: sorted(possible_sites(each) & slots.keys()) for key, each in wishes.items()}
    for element in in_order:
        if most is not None and len(got) >= most:
            break
        sites = possible[id(element.wishes)].copy()
        dice.shuffle(sites)
        site = next((name for name in sites if has_slot(element.priority, slots[name], left.get(name, {}))), None)
        if site is not None:
            there = left.setdefault(site, {})
            there[element.priority] = there.get(element.priority, 0) + element.jobs * element.blowup
            got.append((element, site))
    return Acquired(got, left)


def has_slot(priority: float, slots: float, counts: Mapping[float, float]) -> bool:
    """Whether a site has an empty slot for work of a priority: lower priorities do not count."""
    return sum(jobs for other, jobs in counts.items() if other >= priority) < slots


def _in_order(elements: Iterable[Element], puller: Puller) -> list[Element]:
    """What this broker may have, highest priority first, then the oldest; among equals as they come."""
    return sorted((one for one in elements if _is_free(one, puller)), key=lambda one: (-one.priority, one.created))


def _is_free(element: Element, puller: Puller) -> bool:
    """Whether it waits for a broker, and may be for this one: of its team, where both have one."""
    is_for = not element.team or not puller.team or element.team == puller.team
    return is_for and element.state == "Available" and element.task not in puller.refused_tasks
