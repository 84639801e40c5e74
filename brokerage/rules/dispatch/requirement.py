"""What jobs require of a resource and what a resource offers, and whether the one suits the other (rows D1, D2; seed 002).

Jobs with equal requirements wait in one task queue. A set that is None sets no condition; what `any` means, and what a resource
leaves out, is settled when it is described (`brokerage.rules.dispatch.resource`). Not here: which of the task queues that suit a
resource is served (`brokerage.rules.dispatch.policies`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

NONE: frozenset[str] = frozenset()
Hits = Mapping[str, frozenset[str]]
NO_HITS: Hits = MappingProxyType({})
"""Attribute of a requirement -> its values that are at their limit now."""


class Requirement(NamedTuple):
    """What every job of a task queue needs.

    `queue`: the computing queue that it was brokered to; empty: open, to any of `queues`. Resources are those of the whole job,
    0 = no demand: cores, MB, MB, s, CPU seconds (their own, whatever their class). An empty set sets no condition; `tags` are
    all demanded, of the other sets one value is enough.
    """

    queue: str = ""
    cores: int = 1
    memory_mb: int = 0
    disk_mb: int = 0
    walltime_s: int = 0
    vo: str = ""
    cpu_time_s: int = 0
    owner: str = ""
    owner_group: str = ""
    setup: str = ""
    queues: frozenset[str] = NONE
    sites: frozenset[str] = NONE
    banned_sites: frozenset[str] = NONE
    grid_ces: frozenset[str] = NONE
    platforms: frozenset[str] = NONE
    pilot_types: frozenset[str] = NONE
    job_types: frozenset[str] = NONE
    tags: frozenset[str] = NONE
    stations: frozenset[str] = NONE
    submit_pools: frozenset[str] = NONE
    grid_middlewares: frozenset[str] = NONE


class Resource(NamedTuple):
    """What a pilot offers now: its queue and what is left of its slot; 0 = unknown, which sets no condition.

    `owners`, `owner_groups`: the only ones whose work it may do, empty: all; of a group of `sharing_groups` that is named all
    owners are served. `required_tags`, `banned_*`: what a task queue must, and must not, list. What differs from ask to ask, and
    from queue to queue, comes first.
    """

    queue: str = ""
    cores: int = 1
    memory_mb: int = 0
    disk_mb: int = 0
    walltime_s: int = 0
    vo: str = ""
    cpu_time_s: int = 0
    sites: frozenset[str] | None = None
    stations: frozenset[str] | None = NONE
    owners: frozenset[str] = NONE
    owner_groups: frozenset[str] = NONE
    sharing_groups: frozenset[str] = NONE
    setup: str = ""
    grid_ces: frozenset[str] | None = NONE
    platforms: frozenset[str] | None = None
    pilot_types: frozenset[str] | None = NONE
    job_types: frozenset[str] | None = None
    tags: frozenset[str] | None = NONE
    required_tags: frozenset[str] = NONE
    banned_sites: frozenset[str] = NONE
    banned_grid_ces: frozenset[str] = NONE
    banned_platforms: frozenset[str] = NONE
    banned_job_types: frozenset[str] = NONE
    banned_tags: frozenset[str] = NONE


SETS = tuple(name for name, value in Requirement._field_defaults.items() if isinstance(value, frozenset))
"""Attributes of a requirement with several values."""

AMOUNTS = ("cores", "memory_mb", "disk_mb", "walltime_s", "cpu_time_s")
"""Attributes of which a resource must have at least as much."""


class Misfit(NamedTuple):
    """An attribute by which a resource does not suit a requirement: what is needed, and what there is."""

    attribute: str
    needs: str
    has: str


def _enough(name: str) -> Callable[[Requirement, Resource], bool]:
    def condition(need: Requirement, has: Resource) -> bool:
        needed, offered = getattr(need, name), getattr(has, name)
        return not needed or not offered or needed <= offered

    return condition


def _one_of(name: str) -> Callable[[Requirement, Resource], bool]:
    def condition(need: Requirement, has: Resource) -> bool:
        needed, offered = getattr(need, name), getattr(has, name)
        return not needed or offered is None or not needed.isdisjoint(offered)

    return condition


def _not_banned(name: str) -> Callable[[Requirement, Resource], bool]:
    def condition(need: Requirement, has: Resource) -> bool:
        banned: frozenset[str] = getattr(has, f"banned_{name}")
        return not banned or banned.isdisjoint(getattr(need, name))

    return condition


def _at_queue(need: Requirement, has: Resource) -> bool:
    return need.queue == has.queue if need.queue else not need.queues or has.queue in need.queues


def _site_not_banned(need: Requirement, has: Resource) -> bool:
    """Of several sites one that is not banned is enough."""
    return not has.sites or not has.sites <= need.banned_sites


def _owner(need: Requirement, has: Resource) -> bool:
    """A private pilot: its group, and its owner unless the group shares its jobs."""
    if has.owner_groups and need.owner_group not in has.owner_groups:
        return False
    shared = bool(has.owner_groups) and need.owner_group in has.sharing_groups
    return not has.owners or shared or need.owner in has.owners


CONDITIONS: Mapping[str, Callable[[Requirement, Resource], bool]] = {
    "queue": _at_queue,
    "vo": lambda need, has: not has.vo or need.vo == has.vo,
    "owner": _owner,
    "setup": lambda need, has: not has.setup or need.setup == has.setup,
    **{name: _enough(name) for name in AMOUNTS},
    "pilot_types": _one_of("pilot_types"),
    "sites": _one_of("sites"),
    "banned_sites": _site_not_banned,
    "grid_ces": _one_of("grid_ces"),
    "platforms": _one_of("platforms"),
    "job_types": _one_of("job_types"),
    "tags": lambda need, has: has.tags is None or need.tags <= has.tags,
    "required_tags": lambda need, has: has.required_tags <= need.tags,
    "stations": _one_of("stations"),
    **{f"banned_{name}_of_pilot": _not_banned(name) for name in ("sites", "grid_ces", "platforms", "job_types", "tags")},
}
"""What must hold for a resource to suit a requirement, by attribute, in the order in which a misfit is told.

For many requirements at once all but the amounts stand again in `requirement_index`.
"""

_PILOT_BANS = "_of_pilot"


def fits(need: Requirement, has: Resource, hits: Hits = NO_HITS) -> bool:
    """Whether the resource suits the requirement, and no value of it is at its limit (each limit holds by itself)."""
    return all(condition(need, has) for condition in CONDITIONS.values()) and not at_limit(partial(values_of, need), hits)


def with_sets(need: Requirement, sets: Mapping[str, Iterable[str]]) -> Requirement:
    """The requirement with these attributes of several values."""
    values: dict[str, Any] = {name: frozenset(some) for name, some in sets.items()}
    return need._replace(**values)


def misfits(need: Requirement, has: Resource) -> list[Misfit]:
    """Why the resource does not suit the requirement, in the order of the conditions; empty where it does."""
    return [_misfit(name, need, has) for name, condition in CONDITIONS.items() if not condition(need, has)]


def at_limit(values: Callable[[str], frozenset[str]], hits: Hits) -> tuple[str, ...]:
    """The kinds of jobs that are at their limit, each an attribute with a value of it. `values`: those that jobs have of one.

    An attribute that they do not have limits nothing, and a set without values passes.
    """
    kinds: tuple[str, ...] = ()
    for attribute, limited in hits.items():
        if hit := values(attribute) & limited:
            kinds += tuple(f"{attribute} {value}" for value in sorted(hit))
    return kinds


def values_of(need: Requirement, attribute: str) -> frozenset[str]:
    """The values of an attribute of a requirement; none where it has no such attribute."""
    value = getattr(need, attribute, NONE)
    if isinstance(value, frozenset):
        return value
    return frozenset([value]) if isinstance(value, str) and value else NONE


def placed(need: Requirement, queues: Iterable[str]) -> list[Requirement]:
    """The requirement at each of these queues to which its jobs may go."""
    return [need] if need.queue else [need._replace(queue=queue, queues=NONE) for queue in queues if queue in need.queues]


def closest(needs: Iterable[Requirement], has: Resource) -> tuple[Requirement, list[Misfit]] | None:
    """The requirement that the resource misses by least: fewest attributes, the first of those; None where there is none."""
    told = ((need, misfits(need, has)) for need in needs)
    return min(told, key=lambda each: len(each[1]), default=None)


def _misfit(name: str, need: Requirement, has: Resource) -> Misfit:
    if name == "owner":
        offered = [*_listed(has.owner_groups), *_listed(has.owners)]
        return Misfit(name, " of ".join(filter(None, (need.owner, need.owner_group))) or "none", ", ".join(offered))
    if name == "required_tags":
        return Misfit("tags", _text(need.tags), f"only jobs with {_text(has.required_tags)}")
    if name == "banned_sites":
        return Misfit("sites", f"not {_text(need.banned_sites)}", _text(has.sites))
    if name.endswith(_PILOT_BANS):
        banned = name.removesuffix(_PILOT_BANS)
        return Misfit(
            banned.removeprefix("banned_"),
            _text(getattr(need, banned.removeprefix("banned_"))),
            f"not {_text(getattr(has, banned))}",
        )
    if name == "queue":
        return Misfit(name, need.queue or _text(need.queues), has.queue)
    if name in AMOUNTS:
        return Misfit(name, str(getattr(need, name)), str(max(0, getattr(has, name))))
    return Misfit(name, _text(getattr(need, name)), _text(getattr(has, name)))


def _listed(values: Iterable[str]) -> Iterator[str]:
    return iter(sorted(values))


def _text(value: object) -> str:
    if value is None:
        return "any"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "none"
    return str(value) or "none"
