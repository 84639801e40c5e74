"""The random choices have the distribution of the document (chi-square on 100,000 draws with a fixed seed)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import inf
from random import Random

import numpy as np
import pytest

from brokerage.rules.dispatch.random_choice import (
    WINDOW,
    QueueChance,
    fresh,
    oldest,
    place,
    queues_in_turn,
    winning_priority,
    winning_priority_of,
)
from brokerage.rules.dispatch.real_priority import real_priority

DRAWS = 100_000
CRITICAL = {1: 10.83, 2: 13.82, 9: 27.88}
"""Degrees of freedom -> the chi-square that right chances exceed once in a thousand times."""


def law(weights: Sequence[float]) -> list[float]:
    """How probable it is that each is first by RAND() / weight: the integral, in the middle of 100,000 small steps.

    P(i first) = integral over x in [0, 1/w_i] of w_i * prod over j != i of max(0, 1 - w_j x) dx (facts on matching a5).
    """
    chances = []
    for i, weight in enumerate(weights):
        x = (np.arange(DRAWS) + 0.5) / DRAWS / weight
        others = [np.maximum(0, 1 - other * x) for j, other in enumerate(weights) if j != i]
        chances.append(float(np.mean(np.prod(others, axis=0))) if others else 1.0)
    return chances


def chi_square(seen: Mapping[Hashable, int], chances: Mapping[Hashable, float]) -> float:
    assert sum(chances.values()) == pytest.approx(1, abs=1e-6)
    draws = sum(seen.values())
    return sum((seen.get(name, 0) - draws * chance) ** 2 / (draws * chance) for name, chance in chances.items())


def follows(one: Callable[[], Hashable], chances: Mapping[Hashable, float]) -> bool:
    seen = Counter(one() for _ in range(DRAWS))
    assert seen.keys() <= chances.keys()
    return chi_square(seen, chances) < CRITICAL[len(chances) - 1]


def queue_by(priorities: Mapping[Hashable, float], *, proportional: bool = False) -> Callable[[], Hashable]:
    queues = {name: QueueChance(500, priority) for name, priority in priorities.items()}
    draw = fresh(Random(15))
    return lambda: next(queues_in_turn(queues, draw, proportional=proportional))


def test_the_law_has_the_values_that_are_known() -> None:
    assert law([3, 1]) == pytest.approx([5 / 6, 1 / 6], abs=1e-6)
    assert law([10, 1]) == pytest.approx([0.95, 0.05], abs=1e-6)
    assert law([1, 1, 2]) == pytest.approx([5 / 24, 5 / 24, 14 / 24], abs=1e-6)


@pytest.mark.parametrize("priorities", [{"a": 1000.0, "b": 333.0}, {"a": 1.0, "b": 1.0, "c": 2.0}])
def test_task_queues_are_chosen_by_rand_over_priority_as_written(priorities: dict[Hashable, float]) -> None:
    assert follows(queue_by(priorities), dict(zip(priorities, law(list(priorities.values())), strict=True)))


def test_the_option_is_proportional_and_what_is_written_is_not() -> None:
    assert follows(queue_by({"a": 3, "b": 1}, proportional=True), {"a": 0.75, "b": 0.25})
    assert not follows(queue_by({"a": 3, "b": 1}), {"a": 0.75, "b": 0.25})


def test_of_user_priorities_each_job_counts_by_itself_in_one_draw_a_priority() -> None:
    """Two jobs of priority 5 and three of 2: the same chances as of five drawn one by one."""
    chances = law([5, 5, 2, 2, 2])
    dice = Random(15)
    assert follows(lambda: winning_priority_of({5: 2, 2: 3}, dice), {5: sum(chances[:2]), 2: sum(chances[2:])})


def test_of_user_priorities_each_job_counts_by_itself_in_a_draw_a_job() -> None:
    chances, draw = law([5, 2, 2]), fresh(Random(15))
    jobs = {1: 5, 2: 2, 3: 2}
    assert follows(lambda: winning_priority(jobs, draw), {5: chances[0], 2: sum(chances[1:])})


def test_proportional_user_priorities_count_by_their_sum() -> None:
    dice = Random(15)
    assert follows(lambda: winning_priority_of({5: 2, 2: 5}, dice, proportional=True), {5: 0.5, 2: 0.5})


def test_the_least_of_many_draws_in_one() -> None:
    """Half of the time the least of n uniforms is below the n-th root's complement, also for a million of them."""
    assert place(0.75, 2, n=2) == pytest.approx(0.25)
    assert place(0.5, 1, n=10**6) == pytest.approx(6.9314695e-7, rel=1e-6)
    assert place(0.5, 1, n=1) == 0.5
    assert place(0.5, 0.5, proportional=True, n=2) == pytest.approx(0.693147, rel=1e-5)


def test_without_weight_one_is_last() -> None:
    assert place(0.0, 0) == place(0.0, -1, proportional=True) == inf
    assert winning_priority_of({0: 1000, 1: 1}, Random(1)) == 1
    assert winning_priority_of({0: 1000, 1: 0}, Random(1)) == 0


def test_nothing_wins_where_nothing_waits() -> None:
    assert winning_priority({}, fresh(Random(1))) is None
    assert winning_priority_of({}, Random(1)) is None
    assert list(queues_in_turn({}, fresh(Random(1)))) == []
    assert oldest([]) == []


QUEUES = {
    "short": QueueChance(500, 1000),
    "long": QueueChance(50_000, 1),
    "longer": QueueChance(300_000, 1),
    "other": QueueChance(300_000, 2),
}


def test_the_longest_jobs_go_first_and_the_rest_is_drawn_only_when_they_are_taken() -> None:
    drawn = []

    def draw(queue: str) -> float:
        drawn.append(queue)
        return 0.5

    turn = queues_in_turn(QUEUES, draw)
    assert next(turn) == "other"
    assert drawn == ["longer", "other"]
    assert list(turn) == ["longer", "long", "short"]


def test_without_that_step_priority_alone_counts() -> None:
    assert list(queues_in_turn(QUEUES, lambda _: 0.5, highest_cpu_first=False)) == ["short", "other", "long", "longer"]


def test_the_same_dice_give_the_same_order() -> None:
    orders = {tuple(queues_in_turn(QUEUES, fresh(Random(seed)), highest_cpu_first=False)) for seed in (7, 7, 7)}
    assert len(orders) == 1


def test_priority_ten_is_before_all_and_zero_only_when_nothing_else_waits() -> None:
    assert [real_priority(p) for p in (-3, 0, 0.9, 1, 5.5, 9, 10, 99)] == [1e-5, 1e-5, 1e-5, 1, 5, 9, 1e6, 1e6]
    dice = Random(15)
    assert {winning_priority_of({10: 1, 9: 3, 0: 5}, dice, real=True) for _ in range(500)} == {10}
    assert {winning_priority_of({1: 1, 0: 5}, dice, real=True) for _ in range(500)} == {1}
    assert winning_priority_of({0: 5}, dice, real=True) == 0


def test_the_window_is_of_the_lowest_ids() -> None:
    assert oldest([9, 3, 12, 1], window=3) == [1, 3, 9]
    assert oldest(range(1000, 0, -1)) == list(range(1, WINDOW + 1))
