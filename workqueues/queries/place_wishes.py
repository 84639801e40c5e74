"""Whether there are the places that a task wishes for: its queues, its nucleus and the destinations of its outputs; who knows the
grid is above this app (`check_sites_with`, `check_nucleus_with`, `check_destinations_with`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.refine import TaskDocument

PlaceCheck = Callable[[str], str]
"""A name -> what is wrong with it, empty where nothing is."""


class SitesCheck(Protocol):
    """A list of names with commas -> what is wrong with each; `storages`: whether they may be those of storage endpoints too."""

    def __call__(self, names: str, *, storages: bool) -> list[str]: ...


_sites: list[SitesCheck] = []
_nuclei: list[PlaceCheck] = []
_destinations: list[PlaceCheck] = []


def check_nucleus_with(check: PlaceCheck) -> None:
    """Say who knows the nuclei."""
    _nuclei[:] = [check]


def check_sites_with(check: SitesCheck) -> None:
    """Say who knows the queues and sites."""
    _sites[:] = [check]


def check_destinations_with(check: PlaceCheck) -> None:
    """Say who knows the storage endpoints."""
    _destinations[:] = [check]


def check_places(document: TaskDocument) -> list[Problem]:
    """A problem with the rule `exists` for each queue, nucleus or destination that is not there: the task would wait for it, or
    the wish be passed over.
    """
    site, label = document.parameters.site, document.parameters.prodSourceLabel
    faults = _sites[0](site, storages=activity_of(label) == "analysis") if _sites and site else []
    places = [("destination", document.parameters.destination)]
    places += [(f"{item.path}.destination", item.destination) for item in document.items]
    nucleus = [("nucleus", document.parameters.nucleus)]
    sites = [problem("site", "exists", wrong) for wrong in faults]
    return [*sites, *_wrong(_nuclei, nucleus), *_wrong(_destinations, places)]


def _wrong(checks: list[PlaceCheck], places: Iterable[tuple[str, str]]) -> list[Problem]:
    if not checks:
        return []
    wanted = [(field, name) for field, name in places if name]
    faults = {name: checks[0](name) for name in dict.fromkeys(name for _, name in wanted)}
    return [problem(field, "exists", faults[name]) for field, name in wanted if faults[name]]
