"""Priorities of task queues from the shares of groups, and how what was used corrects shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.dispatch.group_shares import (
    LEAST_PRIORITY,
    QueueJobs,
    TimeSlice,
    corrected,
    owner_shares,
    queue_priorities,
)
from brokerage.rules.dispatch.groups import JOB_SHARING, Group

SHARING = Group(properties=(JOB_SHARING,))


def queue(owner: str, *real_priorities: float, alike: str = "") -> QueueJobs:
    return QueueJobs(owner, len(real_priorities), sum(real_priorities), alike or (owner, real_priorities))


def test_the_default_share_is_a_thousand() -> None:
    assert queue_priorities({"a": queue("u", 1)}) == {"a": 1000.0}
    assert queue_priorities({}) == {}


def test_a_group_that_shares_divides_by_weight_among_all() -> None:
    queues = {"a": queue("u", 5), "b": queue("v", 3), "c": queue("v", 2, 2)}
    assert queue_priorities(queues, SHARING) == {"a": 500.0, "b": 300.0, "c": 200.0}


def test_another_group_divides_first_among_owners() -> None:
    queues = {"a": queue("u", 5), "b": queue("v", 3), "c": queue("v", 2, 2)}
    assert queue_priorities(queues) == {"a": 500.0, "b": 300.0, "c": 200.0}
    assert queue_priorities(queues | {"d": queue("w", 9)}, Group(share=300)) == {"a": 100.0, "b": 60.0, "c": 40.0, "d": 100.0}


def test_task_queues_that_differ_only_in_places_have_their_sum_together_within_an_owner() -> None:
    queues = {
        "a": queue("u", 1, alike="x"),
        "b": queue("u", 1, alike="x"),
        "c": queue("u", 2, alike="y"),
        "d": queue("v", 4, alike="x"),
    }
    assert queue_priorities(queues, SHARING) == {"a": 250.0, "b": 250.0, "c": 250.0, "d": 500.0}


def test_background_gets_what_is_least_and_takes_nothing() -> None:
    queues = {"bg": queue("u", 0.1), "n": queue("u", 0.3)}
    assert queue_priorities(queues, Group(background=True)) == {"bg": LEAST_PRIORITY, "n": 1000.0}
    assert queue_priorities(queues)["bg"] == pytest.approx(250)


def test_nobody_has_less_than_the_least() -> None:
    assert queue_priorities({"a": queue("u", 1e-5), "b": queue("u", 1e6)}, Group(share=10))["a"] == LEAST_PRIORITY
    assert queue_priorities({"a": queue("u", 1)}, Group(share=0)) == {"a": LEAST_PRIORITY}


def test_a_task_queue_that_ran_empty_takes_nothing_but_its_owner_counts() -> None:
    queues = {"a": queue("u", 1, alike="x"), "empty": queue("u", alike="x"), "gone": queue("v")}
    assert queue_priorities(queues, SHARING) == {"a": 1000.0, "empty": LEAST_PRIORITY, "gone": LEAST_PRIORITY}
    assert queue_priorities(queues)["a"] == 500.0


def test_corrected_shares_of_owners_are_taken_as_they_are() -> None:
    assert owner_shares(Group(), ["u", "v"]) == {"u": 500.0, "v": 500.0}
    assert owner_shares(Group(), []) == {}
    queues = {"a": queue("u", 1), "b": queue("v", 1)}
    assert queue_priorities(queues, shares={"u": 100.0, "v": 700.0}) == {"a": 100.0, "b": 700.0}


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.sampled_from("uvw"), st.integers(1, 9)), min_size=1), st.booleans()
)
def test_the_whole_share_is_given_and_no_more(given_: dict[str, tuple[str, int]], sharing: bool) -> None:
    queues = {name: queue(owner, weight, alike=name) for name, (owner, weight) in given_.items()}
    assert sum(queue_priorities(queues, SHARING if sharing else Group()).values()) == pytest.approx(1000)


def test_who_used_more_than_its_part_gets_less() -> None:
    assert corrected({"a": 1000, "b": 1000}, [TimeSlice({"a": 90, "b": 30})]) == {"a": pytest.approx(2000 / 3), "b": 2000}


def test_slices_count_by_weight_and_are_bounded_each_and_together() -> None:
    slices = [TimeSlice({"a": 100}, 80, 2), TimeSlice({"a": 50, "b": 50}, 20, 5)]
    assert corrected({"a": 1000, "b": 1000}, slices) == {"a": pytest.approx(600), "b": pytest.approx(2200)}
    assert corrected({"a": 1, "b": 1}, [TimeSlice({"a": 1})] * 3) == {"a": 0.5, "b": 5}
    assert corrected({"a": 1, "b": 1}, [TimeSlice({"a": 1})] * 3, most=2) == {"a": 0.5, "b": 2}


@pytest.mark.parametrize("slices", [[], [TimeSlice({})], [TimeSlice({"c": 5}), TimeSlice({"a": 0})], [TimeSlice({"a": 5}, 0)]])
def test_without_use_nothing_is_corrected(slices: list[TimeSlice]) -> None:
    assert corrected({"a": 1000, "b": 500}, slices) == {"a": 1000, "b": 500}


def test_a_share_of_nothing_stays_nothing() -> None:
    assert corrected({"a": 0, "b": 1}, [TimeSlice({"a": 5, "b": 5})]) == {"a": 0, "b": 2}
    assert corrected({"a": 0}, [TimeSlice({"a": 5})]) == {"a": 0}
    assert corrected({}, [TimeSlice({"a": 5})]) == {}


used = st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**6))


@given(st.dictionaries(st.sampled_from("abc"), st.integers(1, 10**6), min_size=1), st.lists(used.map(TimeSlice), max_size=3))
def test_a_correction_stays_within_its_bounds(shares: dict[str, int], slices: list[TimeSlice]) -> None:
    for name, share in corrected(shares, slices).items():
        assert 0.2 - 1e-9 <= share / shares[name] <= 5 + 1e-9
