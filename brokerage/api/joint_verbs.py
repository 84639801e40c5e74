"""What requests that reach a process together want, done in one transaction: one for ten costs as much as three alone.

A view says what it wishes and how it tells the result. Our web server carries that out with the wishes of others; whoever asks
Django without it gets the answer at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.http import HttpRequest, HttpResponse

TOGETHER = "gridbroker.together"
"""In the environ of a request whose wish the server carries out with others: no header can bring it."""
MOST = 32
"""How much the wishes in one transaction weigh together."""

Matter = TypeVar("Matter")
Result = TypeVar("Result")
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True, eq=False)
class Joint(Generic[Matter, Result]):
    """What is done with matters of one kind: a result for each, in their order. Those of one `key` never go together.

    `weight`: for how many usual ones a matter counts, by what there is to do for it.
    """

    do: Callable[[Sequence[Matter]], Sequence[Result]]
    key: Callable[[Matter], Hashable]
    weight: Callable[[Matter], int] = lambda matter: 1

    def groups(self, matters: Sequence[Matter]) -> Iterator[list[int]]:
        """Which go together: their places. Of one key the first goes first."""
        left = list(range(len(matters)))
        while left:
            group: dict[Hashable, int] = {}
            weight = 0
            for place in left:
                if (key := self.key(matters[place])) in group:
                    continue
                weight += self.weight(matters[place])
                if weight > MOST and group:
                    break
                group[key] = place
            taken = set(group.values())
            left = [place for place in left if place not in taken]
            yield sorted(taken)


@dataclass(frozen=True, slots=True, eq=False)
class Wish(Generic[Matter, Result, Told]):
    """One matter, and what is told of its result; `tell` may raise Refused.

    `fail`: called with the fault in its place where nothing was done, to give back what was reserved for it; it raises nothing.
    """

    joint: Joint[Matter, Result]
    matter: Matter
    tell: Callable[[Result], Told]
    fail: Callable[[Exception], None] | None = None


def carry_out(wishes: Sequence[Wish[Any, Any, Told]]) -> Iterator[tuple[int, Told | Exception]]:
    """The place of each wish with what is told of it, or the fault, as soon as it is known."""
    kinds: dict[int, list[int]] = {}
    for place, wish in enumerate(wishes):
        kinds.setdefault(id(wish.joint), []).append(place)
    for places in kinds.values():
        joint = wishes[places[0]].joint
        for group in joint.groups([wishes[place].matter for place in places]):
            together = [places[i] for i in group]
            try:
                results: Sequence[Any] = joint.do([wishes[place].matter for place in together])
            except Exception as fault:  # noqa: BLE001 - it belongs to all whose matters these were
                for place in together:
                    if (fail := wishes[place].fail) is not None:
                        fail(fault)
                yield from ((place, fault) for place in together)
                continue
            for place, result in zip(together, results, strict=True):
                try:
                    yield place, wishes[place].tell(result)
                except Exception as fault:  # noqa: BLE001 - it is the answer to this one
                    yield place, fault


class Pending(Exception):
    """There is no answer to a request before its wish is carried out."""

    def __init__(self, wish: Wish[Any, Any, HttpResponse]) -> None:
        self.wish = wish


def jointly(request: HttpRequest, wish: Wish[Any, Any, HttpResponse]) -> HttpResponse:
    """The answer to a request with this wish. Raises Pending where the server carries it out with others, else the fault."""
    if request.META.get(TOGETHER):
        raise Pending(wish)
    ((_, told),) = carry_out([wish])
    if isinstance(told, Exception):
        raise told
    return told
