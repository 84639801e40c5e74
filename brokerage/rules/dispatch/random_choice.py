"""Which task queue and which of its jobs a resource gets by chance (row D3; seed 002, "Resource matching"; facts on matching a5).

Of the task queues that suit it those of the highest CPU class, of these the first by RAND() / priority ascending; in it the user
priority of the job that is first by RAND() / user priority; of the jobs of that priority the oldest ten, of those one at random.
RAND() / w, as it is written, is no proportional share: of weights 3 and 1 the first wins 5 of 6 times. -ln(U) / w, an option, is
proportional. Dice are passed in; what suits a resource is not looked at here (`brokerage.rules.dispatch.requirement`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, nsmallest
from math import expm1, inf, log1p
from random import Random
from typing import NamedTuple, TypeVar

from brokerage.rules.dispatch.real_priority import real_priority

K = TypeVar("K", bound=Hashable)

WINDOW = 10
"""So many of the oldest jobs of the priority that wins have the same chance."""


class QueueChance(NamedTuple):
    """What decides the turn of a task queue: the CPU class (s) and the priority (from shares, see `group_shares`)."""

    cpu_time_s: int
    priority: float


def place(uniform: float, weight: float, *, n: int = 1, proportional: bool = False) -> float:
    """Where somebody of this weight stands, the least is first; without weight last. `uniform`: in [0, 1), drawn anew for each.

    Of `n` with the same weight the place of the first of them, in one draw: the least of n uniforms is 1 - (1 - U)^(1/n).
    """
    if weight <= 0:
        return inf
    if proportional:
        return -log1p(-uniform) / (n * weight)
    return (uniform if n == 1 else -expm1(log1p(-uniform) / n)) / weight


def queues_in_turn(
    queues: Mapping[K, QueueChance],
    draw: Callable[[K], float],
    *,
    highest_cpu_first: bool = True,
    proportional: bool = False,
) -> Iterator[K]:
    """Task queues in the order in which a resource tries them: the first is the choice, the next are for when its jobs are taken.

    `draw` gives a uniform number in [0, 1) for each (`fresh`); lower CPU classes come after all of a higher one, and are
    not drawn for before. Without `highest_cpu_first` classes do not count.
    """
    classes: dict[int, list[K]] = defaultdict(list)
    for queue, chance in queues.items():
        classes[chance.cpu_time_s if highest_cpu_first else 0].append(queue)
    for cpu_time_s in sorted(classes, reverse=True):
        heap = [
            (place(draw(queue), queues[queue].priority, proportional=proportional), number, queue)
            for number, queue in enumerate(classes[cpu_time_s])
        ]
        heapify(heap)
        while heap:
            yield heappop(heap)[2]


def fresh(dice: Random) -> Callable[[object], float]:
    """A uniform number in [0, 1) from the dice for whatever is asked about."""
    return lambda _asked: dice.random()


def winning_priority(
    jobs: Mapping[K, float], draw: Callable[[K], float], *, real: bool = False, proportional: bool = False
) -> float | None:
    """The user priority that is served: that of the first of the jobs, each of which counts by itself. None without jobs.

    `jobs`: job -> user priority; `real`: weights as `real_priority` has them, else the priority itself. The rule as written:
    an oracle for conformance and tests; matches use `winning_priority_of`.
    """
    weight = real_priority if real else float
    places = ((place(draw(job), weight(priority), proportional=proportional), priority) for job, priority in jobs.items())
    return min(places, key=lambda each: each[0], default=(inf, None))[1]


def winning_priority_of(
    counts: Mapping[float, int], dice: Random, *, real: bool = False, proportional: bool = False
) -> float | None:
    """The same with the same chances, in one draw a priority instead of one a job. `counts`: user priority -> jobs that wait."""
    weight = real_priority if real else float
    places = (
        (place(dice.random(), weight(priority), n=n, proportional=proportional), priority)
        for priority, n in counts.items()
        if n > 0
    )
    return min(places, key=lambda each: each[0], default=(inf, None))[1]


def oldest(jobs: Iterable[int], window: int = WINDOW) -> list[int]:
    """The jobs of the winning priority among which one is taken at random: the lowest ids, ascending. An oracle for conformance
    and tests; at a match the statement of the lease looks at no more of them.
    """
    return nsmallest(window, jobs)
