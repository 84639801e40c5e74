"""The course of an element, and of the inbox element that follows the elements of its task (row W1, facts on work queues b2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import reduce

from workqueues.states.elements import ELEMENT


class Conflict(ValueError):
    """Two versions of an element differ in what never changes; the message names the field."""


def later(one: str, other: str) -> str:
    """Which of two states comes later in the course."""
    return max(one, other, key=ELEMENT.course.index)


def inbox_state(elements: Collection[str], own: str | None) -> str | None:
    """The state of the inbox element by those of its elements; it never goes back. `own`: its state so far, None: it is new.

    Raises ValueError for a state that no element has.
    """
    if unknown := [state for state in elements if state not in ELEMENT.course]:
        raise ValueError(f"no element has the state {unknown[0]!r}")
    if not elements:
        return own
    state = _ended(elements) if all(state in ELEMENT.final for state in elements) else _under_way(elements)
    return state if own is None else later(own, state)


def _under_way(elements: Collection[str]) -> str:
    """While not all have ended: that of the one furthest on its way; what waits is there, so its task was acquired."""
    return next((state for state in ELEMENT.first_told if state in elements), "Acquired")


def _ended(elements: Collection[str]) -> str:
    return next((state for state in ELEMENT.worst if state in elements), "Done")


@dataclass(frozen=True, slots=True)
class ElementVersion:
    """An element as one of two brokers knows it.

    `percent_complete`, `percent_success`: 0 to 100; `inputs`, `parents`, `pileup`: sites of each dataset; `fixed`: what never
    changes, by name.
    """

    state: str
    percent_complete: int = 0
    percent_success: int = 0
    priority: float = 0
    inputs: Mapping[str, Collection[str]] = field(default_factory=dict)
    parents: Mapping[str, Collection[str]] = field(default_factory=dict)
    pileup: Mapping[str, Collection[str]] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)


GROWING = ("percent_complete", "percent_success", "priority")
LOCATIONS = ("inputs", "parents", "pileup")


def merged(versions: Iterable[ElementVersion]) -> ElementVersion:
    """One element of its versions: the later state, the larger progress and priority, the longer list of sites of each dataset.

    Raises Conflict where they differ in anything else, ValueError without a version.
    """
    known = list(versions)
    if not known:
        raise ValueError("there is no version of the element")
    return reduce(_merged, known)


def _merged(one: ElementVersion, other: ElementVersion) -> ElementVersion:
    for name in one.fixed.keys() & other.fixed.keys():
        if one.fixed[name] != other.fixed[name]:
            raise Conflict(f"{name} is {one.fixed[name]!r} in one version and {other.fixed[name]!r} in another")
    chosen: dict[str, object] = {"state": later(one.state, other.state), "fixed": {**one.fixed, **other.fixed}}
    chosen |= {name: max(getattr(one, name), getattr(other, name)) for name in GROWING}
    chosen |= {name: _longer(getattr(one, name), getattr(other, name)) for name in LOCATIONS}
    return ElementVersion(**{each.name: chosen[each.name] for each in fields(ElementVersion)})  # type: ignore[arg-type]


def _longer(one: Mapping[str, Collection[str]], other: Mapping[str, Collection[str]]) -> Mapping[str, Collection[str]]:
    """For each dataset the longer of its lists of sites, the first where they are as long."""
    return {name: max((sites.get(name, ()) for sites in (one, other)), key=len) for name in {**one, **other}}
