"""The description of a resource as it is matched: `any` and what is left out settled, processors told as tags.

Beside it what jobs list, settled by the same rules.

Source: seed 002; facts on matching a3, a4; decision H1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from brokerage.rules.dispatch.requirement import NONE, Resource

NO_TIME = -1
"""CPU time of a resource that has none left: 0 would mean that nobody knows."""

PROCESSORS = "Processors"
"""How a tag ends that tells how many a resource has."""
MOST_PROCESSORS = 1024
"""Processors that are told as tags, one for each number up to theirs."""

ONE_IS_ENOUGH = frozenset({"sites", "grid_ces", "platforms", "pilot_types", "job_types", "stations"})
"""Sets of a requirement of which a resource must name one."""


class InvalidResource(ValueError):
    """A description that cannot be matched; `field` says which attribute is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def names(values: Iterable[str]) -> frozenset[str]:
    """Names as a set: blanks are dropped, order and repetitions do not count."""
    return frozenset(filter(None, (value.strip() for value in values)))


def is_any(values: Iterable[str]) -> bool:
    """Whether one of the values is `any`, in whatever case and punctuation."""
    return any("".join(filter(str.isalnum, value)).lower() == "any" for value in values)


def listed(attribute: str, values: Iterable[str]) -> frozenset[str]:
    """What a job lists under an attribute of its requirement. Where one value is enough, `any` is the same as no list; elsewhere
    it says nothing beside the others.
    """
    given = names(values)
    if attribute in ONE_IS_ENOUGH:
        return NONE if is_any(given) else given
    return frozenset(value for value in given if not is_any([value]))


def accepted(values: Collection[str]) -> frozenset[str] | None:
    """Values of which a task queue must list one, if it lists any: none given, or `any`, sets no condition."""
    given = names(values)
    return None if not given or is_any(given) else given


def named(values: Collection[str]) -> frozenset[str]:
    """Values that a resource bans, or wants to see in a task queue: none where `any` is among them."""
    given = names(values)
    return NONE if is_any(given) else given


def demanded(values: Collection[str]) -> frozenset[str] | None:
    """Values of an attribute that a resource has only where it names it: `any` sets no condition, none given is none."""
    given = names(values)
    return None if is_any(given) else given


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a pilot says of itself. Sizes in MB and s, 0 = not told; `processors`: of which tags are made.

    `sharing_groups`: groups whose jobs any of their members may run. `strict_platform`: no platform given suits only task queues
    without platforms.
    """

    queue: str = ""
    cpu_time_s: int | None = None
    cores: int = 1
    memory_mb: int = 0
    disk_mb: int = 0
    walltime_s: int = 0
    vo: str = ""
    sites: Collection[str] = NONE
    grid_ces: Collection[str] = NONE
    platforms: Collection[str] = NONE
    pilot_types: Collection[str] = NONE
    job_types: Collection[str] = NONE
    tags: Collection[str] = NONE
    required_tags: Collection[str] = NONE
    banned_sites: Collection[str] = NONE
    banned_grid_ces: Collection[str] = NONE
    banned_platforms: Collection[str] = NONE
    banned_job_types: Collection[str] = NONE
    banned_tags: Collection[str] = NONE
    stations: Collection[str] = NONE
    setup: str = ""
    owners: Collection[str] = NONE
    owner_groups: Collection[str] = NONE
    sharing_groups: Collection[str] = NONE
    processors: int = 0
    whole_node: bool = False
    strict_platform: bool = False


def described(pilot: Description) -> Resource:
    """The resource that is matched. Raises InvalidResource without a CPU time, or with a required tag that is no tag of it."""
    if pilot.cpu_time_s is None:
        raise InvalidResource("cpu_time_s", "a resource must say how much CPU time it has left")
    if pilot.cpu_time_s < 0:
        raise InvalidResource("cpu_time_s", f"the CPU time is negative: {pilot.cpu_time_s}")
    given = names(pilot.tags)
    tags = given | processor_tags(pilot.processors, whole_node=pilot.whole_node)
    required = named(pilot.required_tags)
    if missing := sorted(required - tags):
        raise InvalidResource("required_tags", f"required tags must be among the tags: {', '.join(missing)}")
    return Resource(
        queue=pilot.queue,
        cores=pilot.cores,
        memory_mb=pilot.memory_mb,
        disk_mb=pilot.disk_mb,
        walltime_s=pilot.walltime_s,
        vo=pilot.vo,
        cpu_time_s=pilot.cpu_time_s or NO_TIME,
        owners=names(pilot.owners),
        owner_groups=names(pilot.owner_groups),
        sharing_groups=names(pilot.sharing_groups),
        setup=pilot.setup.strip(),
        sites=accepted(pilot.sites),
        grid_ces=demanded(pilot.grid_ces),
        platforms=(demanded if pilot.strict_platform else accepted)(pilot.platforms),
        pilot_types=demanded(pilot.pilot_types),
        job_types=accepted(pilot.job_types),
        tags=None if is_any(given) else tags,
        stations=names(pilot.stations),
        required_tags=required,
        banned_sites=named(pilot.banned_sites),
        banned_grid_ces=named(pilot.banned_grid_ces),
        banned_platforms=named(pilot.banned_platforms),
        banned_job_types=named(pilot.banned_job_types),
        banned_tags=named(pilot.banned_tags),
    )


MOST_KEPT_NAMES = 100
"""A resource with more names is settled anew at each ask, so that no pilot fills the memory."""
MOST_KEPT = 1000


class Amounts(NamedTuple):
    """What is left of a slot: cores, MB, MB, s, CPU s; 0 = not told, but for the CPU time, of which nothing is left then."""

    cores: int
    memory_mb: int
    disk_mb: int
    walltime_s: int
    cpu_time_s: int


class Place(NamedTuple):
    """Where a slot is: its queue, and its site and the stations of that as they are matched."""

    queue: str = ""
    sites: frozenset[str] | None = None
    stations: frozenset[str] = NONE


NOWHERE = Place()


@lru_cache(maxsize=1000)
def place_of(queue: str, site: str, stations: frozenset[str]) -> Place:
    """Where the slots of a queue are, at a site that advertises these stations."""
    return Place(queue, accepted((site,)), names(stations))


class Described:
    """The resources of descriptions, each kind settled once: pilots say the same all day but for what is left of their slots.

    At whatever queue they are: a process serves hundreds, whose pilots say the same.
    """

    def __init__(self) -> None:
        self._kinds: dict[Hashable, Resource] = {}

    def resource(self, kind: Hashable, describe: Callable[[], Description], amounts: Amounts, place: Place = NOWHERE) -> Resource:
        """As `described`, with these amounts of an ask, at this place. `kind`: all that the rest is made of."""
        known = self._kinds.get(kind)
        if known is None:
            known = described(replace(describe(), cpu_time_s=amounts.cpu_time_s))
            if sum(len(some) for some in known if isinstance(some, frozenset)) <= MOST_KEPT_NAMES:
                if len(self._kinds) >= MOST_KEPT:
                    self._kinds.clear()
                self._kinds[kind] = known
        cores, memory, disk, walltime, cpu_time = amounts
        # As `_replace` would, which is slow: every ask comes here.
        here = place.queue, cores, memory, disk, walltime, known.vo, cpu_time or NO_TIME, place.sites, place.stations
        return Resource._make((*here, *known[len(here) :]))


def processor_tags(processors: int, *, whole_node: bool = False) -> frozenset[str]:
    """Tags that tell how many processors a resource has: one for each number up to it, as a job asks for one of them."""
    tags = {f"{n}{PROCESSORS}" for n in range(1, min(processors, MOST_PROCESSORS) + 1)}
    if processors > 1:
        tags.add("MultiProcessor")
    return frozenset(tags | ({"WholeNode"} if whole_node else set()))


def stored(resource: Resource) -> dict[str, object]:
    """What a resource says beside its queue, VO and amounts, where it says more than nothing, for a column of JSON."""
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in resource._asdict().items()
        if name not in _IN_COLUMNS and value != Resource._field_defaults[name]
    }


def restored(resource: Resource, said: Mapping[str, object]) -> Resource:
    """The resource with what `stored` kept of it."""
    known: dict[str, Any] = {
        name: frozenset(value) if isinstance(value, list) else value
        for name, value in said.items()
        if name in Resource._fields and name not in _IN_COLUMNS
    }
    return resource._replace(**known)


_IN_COLUMNS = frozenset({"queue", "vo", "cores", "memory_mb", "disk_mb", "walltime_s"})
