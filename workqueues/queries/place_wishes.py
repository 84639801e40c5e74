"""Whether there are the places that a task wishes for, its nucleus and the destinations of its outputs; who knows the grid is
above this app (`check_nucleus_with`, `check_destinations_with`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.refine import TaskDocument

PlaceCheck = Callable[[str], str]
"""A name -> what is wrong with it, empty where nothing is."""
_nuclei: list[PlaceCheck] = []
_destinations: list[PlaceCheck] = []


def check_nucleus_with(check: PlaceCheck) -> None:
    """Say who knows the nuclei."""
    _nuclei[:] = [check]


def check_destinations_with(check: PlaceCheck) -> None:
    """Say who knows the storage endpoints."""
    _destinations[:] = [check]


def check_places(document: TaskDocument) -> list[Problem]:
    """A problem with the rule `exists` for each nucleus or destination that is not there: the wish would be passed over."""
    places = [("destination", document.parameters.destination)]
    places += [(f"{item.path}.destination", item.destination) for item in document.items]
    return [*_wrong(_nuclei, [("nucleus", document.parameters.nucleus)]), *_wrong(_destinations, places)]


def _wrong(checks: list[PlaceCheck], places: Iterable[tuple[str, str]]) -> list[Problem]:
    if not checks:
        return []
    wanted = [(field, name) for field, name in places if name]
    faults = {name: checks[0](name) for name in dict.fromkeys(name for _, name in wanted)}
    return [problem(field, "exists", faults[name]) for field, name in wanted if faults[name]]
