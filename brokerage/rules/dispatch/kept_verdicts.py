"""Which kinds of resources suit what task queues require, amounts apart, kept while task queues come and go (row D2).

Task queues differ in few ways and pilots say few things, so that nearly every verdict was made before, at this queue or another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.dispatch.requirement import BY_ATTRIBUTES, Condition, Conditions, Requirement, Resource, offered_for

MOST_KINDS = 200
"""Kinds of resources for which a list keeps which task queues suit them; amounts do not make a kind."""
MOST_SAID = 500
"""So much of what resources say of the attributes of a condition is kept."""
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
        self._lock = Lock()

    def __len__(self) -> int:
        return max(map(len, self._parts))

    def numbers(self, needs: Sequence[Requirement]) -> Numbers:
        """The number of the combination that each requirement has, a row for each part."""
        with self._lock:
            found = [[part.number(need) for need in needs] for part in self._parts]
        return np.array(found, dtype=np.int32).reshape(len(self._parts), len(needs))

    def suits(self, kind: Resource, numbers: Numbers) -> Flags:
        """Whether the kind suits those whose combinations have these numbers."""
        flags = np.ones(numbers.shape[1], dtype=np.bool_)
        for part, mine in zip(self._parts, numbers, strict=True):
            for condition in part.conditions:
                flags &= condition.verdicts(kind, part.firsts, mine)
        return flags


class _Part:
    """Some attributes of the requirements, with the conditions that read no others; `firsts`: who first had each combination."""

    def __init__(self, attributes: Sequence[str], conditions: Conditions) -> None:
        self._of, self.conditions = attrgetter(*attributes), [_KeptVerdicts(condition) for condition in conditions]
        self._numbers: dict[object, int] = {}
        self.firsts: list[Requirement] = []

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

    def __init__(self, condition: Condition) -> None:
        self._condition, self._said = condition, attrgetter(*offered_for(condition))
        self._by_said: dict[object, NDArray[np.int8]] = {}

    def verdicts(self, kind: Resource, firsts: Sequence[Requirement], numbers: NDArray[np.int32]) -> Flags:
        """Whether it lets the kind have the combinations with these numbers."""
        kept = self._kept(self._said(kind), len(firsts))
        found = kept[numbers]
        if _UNKNOWN_BYTE in found.tobytes():  # a third of the time that NumPy takes to compare and to look for one
            for number in {*numbers[found == UNKNOWN].tolist()}:
                kept[number] = self._condition(firsts[number], kind)
            found = kept[numbers]
        return found.view(np.bool_)

    def _kept(self, said: object, length: int) -> NDArray[np.int8]:
        kept = self._by_said.get(said)
        if kept is None or len(kept) < length:
            if kept is None and len(self._by_said) >= MOST_SAID:
                self._by_said.pop(next(iter(self._by_said)), None)
            longer = np.full(length + length // 2, UNKNOWN, np.int8)
            if kept is not None:
                longer[: len(kept)] = kept
            kept = self._by_said[said] = longer
        return kept


class Verdicts:
    """Which kinds of resources suit the task queues that were seen at a computing queue, kept while these come and go.

    What a task queue requires never changes. `parts`: what is known of their requirements, of this and of other queues.
    """

    def __init__(self, parts: Parts | None = None) -> None:
        self._parts = Parts() if parts is None else parts
        self._places: dict[int, int] = {}
        self._numbers = self._parts.numbers(())
        self._suits: dict[Resource, Flags] = {}

    def __len__(self) -> int:
        return len(self._places)

    def places(self, needs: Mapping[int, Requirement]) -> NDArray[np.intp]:
        """Where each of these task queues (id -> what it requires) is in the verdicts; new ones are taken up."""
        if new := [id_ for id_ in needs if id_ not in self._places]:
            numbers = np.concatenate((self._numbers, self._parts.numbers([needs[id_] for id_ in new])), axis=1)
            self._places.update((id_, place) for place, id_ in enumerate(new, start=len(self)))
            self._numbers = numbers  # last: another thread may ask meanwhile
        return np.fromiter((self._places[id_] for id_ in needs), np.intp, len(needs))

    def of_kind(self, kind: Resource) -> Flags:
        """Whether the kind suits each, amounts apart."""
        numbers = self._numbers
        flags = self._suits.get(kind)
        known = 0 if flags is None else len(flags)
        if flags is None and len(self._suits) >= MOST_KINDS:
            self._suits.pop(next(iter(self._suits)), None)
        if flags is None or known < numbers.shape[1]:
            later = self._parts.suits(kind, numbers[:, known:])
            flags = self._suits[kind] = later if flags is None else np.concatenate((flags, later))
        return flags
