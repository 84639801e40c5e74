"""Which task queues require what, by attribute and value, so that those which suit a resource are found all at once (row D2).

Each condition of `requirement` but those of amounts stands here once more, on bits: one for each task queue, in the order in
which they were taken up, the first in the lowest. For thousands of them that costs some ten microseconds, however new the
resource is. One index knows the task queues of all computing queues, at hundreds of which pilots say the same: which suit what
they say is kept, and the place of the pilot is looked at apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.dispatch.requirement import AMOUNTS, Requirement, Resource

Bits = int
Packed = NDArray[np.uint8]
"""Bits, eight in a byte, the first in the lowest of the first byte."""
Having = dict[str | None, Bits]
"""Which have each value of an attribute; None: which have none."""

_ATTRIBUTES = (
    "queue", "queues", "vo", "owner", "owner_group", "setup", "sites", "banned_sites", "grid_ces", "platforms", "pilot_types",
    "job_types", "tags", "stations",
)  # fmt: skip
"""Those that a condition reads."""
_NO_VALUE = (None,)
_PLACE = ("queue", "sites", "stations")
"""What a resource says of where it is."""
_WORDS_OF = itemgetter(*(place for place, name in enumerate(Resource._fields) if name not in (*AMOUNTS, *_PLACE)))
_PLACE_OF = itemgetter(*map(Resource._fields.index, _PLACE))
MOST_KEPT, MOST_BYTES = 1000, 16_000_000
"""Of so many resources is kept which task queues suit them; of fewer where these are many."""


class RequirementIndex:
    """What the task queues require that were seen; of none is it asked again.

    Where it changes, as a queue to which they are open comes back, another index is made.

    Any number of threads may ask what suits; one at a time may take up new task queues.
    """

    def __init__(self) -> None:
        self.all: Bits = 0
        self.having: Mapping[str, Having] = {name: {} for name in _ATTRIBUTES}
        self._places: dict[int, int] = {}
        self._kept: dict[tuple[Any, ...], tuple[int, Packed]] = {}
        """With of how many it is known."""
        self._n_bytes = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, task_queue: int) -> bool:
        return task_queue in self._places

    def places(self, needs: Mapping[int, Requirement]) -> NDArray[np.intp]:
        """The place of each of these task queues (id -> what it requires) among the bits; new ones are taken up."""
        if new := [id_ for id_ in needs if id_ not in self._places]:
            first, taken_up = len(self._places), [needs[id_] for id_ in new]
            for attribute, having in self.having.items():
                for value, bits in _having(attribute, taken_up, first).items():
                    having[value] = having[value] | bits if value in having else bits
            self._places.update((id_, place) for place, id_ in enumerate(new, start=first))
            self.all = (1 << len(self._places)) - 1  # last: another thread may ask meanwhile
        return np.fromiter((self._places[id_] for id_ in needs), np.intp, len(needs))

    def suiting(self, resource: Resource, first: int) -> Packed:
        """Whether what the resource says suits each, amounts and its place apart; at least of the `first` so many."""
        return self._of(_WORDS_OF(resource), resource, ON_BITS, first)

    def at(self, resource: Resource, first: int) -> Packed:
        """Whether the place of the resource suits each; at least of the `first` so many."""
        return self._of(_PLACE_OF(resource), resource, ON_BITS_OF_PLACE, first)

    def _of(self, said: tuple[Any, ...], resource: Resource, conditions: Mapping[str, BitsOf], first: int) -> Packed:
        known = self._kept.get(said)
        if known is not None and known[0] >= first:
            return known[1]
        suiting = everyone = self.all
        for condition in conditions.values():
            suiting &= condition(self, resource)
        length = everyone.bit_length()
        packed = np.frombuffer(suiting.to_bytes((length + 7) // 8, "little"), np.uint8)
        if len(self._kept) >= MOST_KEPT or self._n_bytes + len(packed) > MOST_BYTES:
            self._kept, self._n_bytes = {}, 0
        self._kept[said] = length, packed
        self._n_bytes += len(packed)
        return packed


def _having(attribute: str, needs: Sequence[Requirement], first: int) -> Having:
    """Which of these have each value, the first in the bit `first`. Few differ, and they may name a thousand queues each."""
    places: dict[str | frozenset[str], list[int]] = defaultdict(list)
    for place, need in enumerate(needs):
        places[getattr(need, attribute)].append(place)
    having: Having = {}
    for values, some in places.items():
        bits = _bits(some) << first
        for value in (values,) if isinstance(values, str) else values or _NO_VALUE:
            having[value] = having[value] | bits if value in having else bits
    return having


def _bits(places: Sequence[int]) -> Bits:
    packed = bytearray(places[-1] // 8 + 1)
    for place in places:
        packed[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(packed, "little")


def _with_any(having: Having, values: Collection[str]) -> Bits:
    found = 0
    for value in values:
        found |= having.get(value, 0)
    return found


BitsOf = Callable[[RequirementIndex, Resource], Bits]


def _at_queue(index: RequirementIndex, has: Resource) -> Bits:
    own, open_to = index.having["queue"], index.having["queues"]
    bound = own.get(has.queue, 0) if has.queue else 0
    return bound | own.get("", 0) & (open_to.get(None, 0) | open_to.get(has.queue, 0))


def _same(name: str) -> BitsOf:
    def bits(index: RequirementIndex, has: Resource) -> Bits:
        offered = getattr(has, name)
        return index.having[name].get(offered, 0) if offered else index.all

    return bits


def _owner(index: RequirementIndex, has: Resource) -> Bits:
    groups = index.having["owner_group"]
    suiting = _with_any(groups, has.owner_groups) if has.owner_groups else index.all
    if has.owners:
        shared = _with_any(groups, has.owner_groups & has.sharing_groups)
        suiting &= _with_any(index.having["owner"], has.owners) | shared
    return suiting


def _one_of(name: str) -> BitsOf:
    def bits(index: RequirementIndex, has: Resource) -> Bits:
        offered: frozenset[str] | None = getattr(has, name)
        having = index.having[name]
        return index.all if offered is None else having.get(None, 0) | _with_any(having, offered)

    return bits


def _not_banned(name: str) -> BitsOf:
    def bits(index: RequirementIndex, has: Resource) -> Bits:
        banned: frozenset[str] = getattr(has, f"banned_{name}")
        return index.all & ~_with_any(index.having[name], banned) if banned else index.all

    return bits


def _site_not_banned(index: RequirementIndex, has: Resource) -> Bits:
    return index.all & ~_with_all(index, "banned_sites", has.sites) if has.sites else index.all


def _tags(index: RequirementIndex, has: Resource) -> Bits:
    if (offered := has.tags) is None:
        return index.all
    having = index.having["tags"]
    return index.all & ~_with_any(having, [tag for tag in [*having] if tag is not None and tag not in offered])


def _with_all(index: RequirementIndex, name: str, values: Collection[str]) -> Bits:
    found = index.all
    for value in values:
        found &= index.having[name].get(value, 0)
    return found


ON_BITS_OF_PLACE: Mapping[str, BitsOf] = {
    "queue": _at_queue,
    "sites": _one_of("sites"),
    "banned_sites": _site_not_banned,
    "stations": _one_of("stations"),
}
"""The conditions of a requirement on where a resource is, by their names there."""
ON_BITS: Mapping[str, BitsOf] = {
    "vo": _same("vo"),
    "owner": _owner,
    "setup": _same("setup"),
    "pilot_types": _one_of("pilot_types"),
    "grid_ces": _one_of("grid_ces"),
    "platforms": _one_of("platforms"),
    "job_types": _one_of("job_types"),
    "tags": _tags,
    "required_tags": lambda index, has: _with_all(index, "tags", has.required_tags),
    **{f"banned_{name}_of_pilot": _not_banned(name) for name in ("sites", "grid_ces", "platforms", "job_types", "tags")},
}
"""The other conditions of a requirement but its amounts."""
