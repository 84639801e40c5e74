"""Which kinds of resources suit what task queues require, amounts apart, kept while task queues come and go (row D2).

Task queues differ in few ways and pilots say few things, so that nearly every verdict was made before, at this queue or another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.dispatch.requirement import BY_ATTRIBUTES, Condition, Conditions, Requirement, Resource, offered_for

MOST_SAID, MOST_SAID_AT_QUEUE = 500, 100
"""So much of what resources say of the attributes of a condition is kept, and so much for the task queues of one queue."""
UNKNOWN = -1
"""Stands for a verdict, 0 or 1, that nobody has asked for."""
_UNKNOWN_BYTE = np.int8(UNKNOWN).tobytes()

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int32]


class Parts:
    """What task queues require, part by part: each combination of values once, whoever has it.

    What a condition makes of a combination and of what a resource says is found once, when it is first asked for, however many
    task queues of however many computing queues have the combination, and however many kinds of resources say this.
    """

    def __init__(self) -> None:
        self._parts = [_Part(attributes, conditions) for attributes, conditions in BY_ATTRIBUTES.items()]
        self.conditions = [(row, condition) for row, part in enumerate(self._parts) for condition in part.conditions]
        """Each with the row of `numbers` of the attributes that it reads."""
        self._lock = Lock()

    def __len__(self) -> int:
        return max(map(len, self._parts))

    def numbers(self, needs: Sequence[Requirement]) -> Numbers:
        """The number of the combination that each requirement has, a row for each part."""
        with self._lock:
            found = [[part.number(need) for need in needs] for part in self._parts]
        return np.array(found, dtype=np.int32).reshape(len(self._parts), len(needs))


class _Part:
    """Some attributes of the requirements, with the conditions that read no others; `firsts`: who first had each combination."""

    def __init__(self, attributes: Sequence[str], conditions: Conditions) -> None:
        self._of = attrgetter(*attributes)
        self._numbers: dict[object, int] = {}
        self.firsts: list[Requirement] = []
        self.conditions = [_KeptVerdicts(condition, self.firsts) for condition in conditions]

    def __len__(self) -> int:
        return len(self.firsts)

    def number(self, need: Requirement) -> int:
        """The number of the combination that a requirement has; a new one is taken up."""
        values = self._of(need)
        if (number := self._numbers.get(values)) is None:
            number = len(self.firsts)
            self.firsts.append(need)
            self._numbers[values] = number
        return number


class _KeptVerdicts:
    """What one condition makes of combinations, by what resources say of the attributes that it reads."""

    def __init__(self, condition: Condition, firsts: Sequence[Requirement]) -> None:
        self._condition, self._firsts, self.said_by = condition, firsts, attrgetter(*offered_for(condition))
        self._by_said: dict[object, NDArray[np.int8]] = {}

    def verdicts(self, resource: Resource, numbers: NDArray[np.int32]) -> Flags:
        """Whether it lets the resource have the combinations with these numbers."""
        kept = self._kept(self.said_by(resource), len(self._firsts))
        found = kept[numbers]
        if _UNKNOWN_BYTE in found.tobytes():  # a third of the time that NumPy takes to compare and to look for one
            for number in {*numbers[found == UNKNOWN].tolist()}:
                kept[number] = self._condition(self._firsts[number], resource)
            found = kept[numbers]
        return found.view(np.bool_)

    def _kept(self, said: object, length: int) -> NDArray[np.int8]:
        kept = self._by_said.get(said)
        if kept is None or len(kept) < length:
            if kept is None and len(self._by_said) >= MOST_SAID:
                self._by_said.clear()
            longer = np.full(length + length // 2, UNKNOWN, np.int8)
            if kept is not None:
                longer[: len(kept)] = kept
            kept = self._by_said[said] = longer
        return kept


class Verdicts:
    """Which resources suit the task queues that were seen at a computing queue, kept while these come and go.

    What a task queue requires never changes. `parts`: what is known of their requirements, of this and of other queues. Kept are
    the verdicts of each condition on what resources say, a bit for each task queue: resources differ in how they combine things
    that many of them say, and to combine the bits costs next to nothing.
    """

    def __init__(self, parts: Parts | None = None) -> None:
        self._parts = Parts() if parts is None else parts
        self._places: dict[int, int] = {}
        self._numbers = self._parts.numbers(())
        self._by_said: list[dict[object, _Bits]] = [{} for _ in self._parts.conditions]

    def __len__(self) -> int:
        return len(self._places)

    def places(self, needs: Mapping[int, Requirement]) -> NDArray[np.intp]:
        """Where each of these task queues (id -> what it requires) is in the verdicts; new ones are taken up."""
        if new := [id_ for id_ in needs if id_ not in self._places]:
            numbers = np.concatenate((self._numbers, self._parts.numbers([needs[id_] for id_ in new])), axis=1)
            self._places.update((id_, place) for place, id_ in enumerate(new, start=len(self)))
            self._numbers = numbers  # last: another thread may ask meanwhile
        return np.fromiter((self._places[id_] for id_ in needs), np.intp, len(needs))

    def of(self, resource: Resource) -> Flags:
        """Whether the resource suits each, amounts apart."""
        numbers = self._numbers
        length = numbers.shape[1]
        suits = (1 << length) - 1
        for (row, condition), by_said in zip(self._parts.conditions, self._by_said, strict=True):
            said = condition.said_by(resource)
            known = by_said.get(said, _NO_BITS)
            if known.length < length:
                later = _Bits.of(condition.verdicts(resource, numbers[row, known.length :]))
                known = _Bits(length, known.bits | later.bits << known.length)
                if len(by_said) >= MOST_SAID_AT_QUEUE:
                    by_said.clear()
                by_said[said] = known
            suits &= known.bits
        packed = np.frombuffer(suits.to_bytes((length + 7) // 8, "little"), np.uint8)
        return np.unpackbits(packed, count=length, bitorder="little").view(np.bool_)


class _Bits(NamedTuple):
    """Verdicts on the first so many task queues, the first in the lowest bit."""

    length: int
    bits: int

    @classmethod
    def of(cls, flags: Flags) -> _Bits:
        return cls(len(flags), int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little"))


_NO_BITS = _Bits(0, 0)
