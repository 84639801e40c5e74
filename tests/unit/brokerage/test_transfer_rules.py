"""The rules of transfers: who begins, how long one rests, what follows from failures."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.transfers.attempts import Attempt, after_failure
from brokerage.rules.transfers.backoff import backoff_s, silent_s
from brokerage.rules.transfers.link_health import judge_link
from brokerage.rules.transfers.reasons import ENDS, REASONS
from brokerage.rules.transfers.room import Active, Room, Waiting, Way, pick

LINK = Way("A", "B")
CONFIG = {
    "MAX_ATTEMPTS": 4, "BACKOFF": 120.0, "BACKOFF_MAX": 3600.0, "LINK_JUDGED_FROM": 20, "LINK_FAILED_PART": 0.5
}  # fmt: skip
KEY = UUID(int=5000)


def waiting(n: int, share: str = "", express: bool = False, first: int = 0, to: str = "B1", way: Way = LINK) -> list[Waiting]:
    return [Waiting(first + i, way, express, share, "A1", to) for i in range(n)]


def test_express_ones_begin_first_and_have_slots_that_others_never_take() -> None:
    room = Room(10, 200, 0.2)
    assert len(pick(waiting(50), room, {}, 1000).begin) == 8
    express = waiting(50, express=True, first=100)
    assert len(pick(express, room, {}, 1000).begin) == 2
    both = pick([*waiting(50), *express], Room(10, 200, 0.2), {}, 1000).begin
    assert [one.express for one in both] == [True] * 10


def test_shares_get_what_the_tree_gives_them_counting_what_is_under_way() -> None:
    room = Room(100, 200, 0.0)
    room.count([Active(LINK, False, "small", "A1", "B1", 20)])
    begun = pick([*waiting(100, "big"), *waiting(100, "small", first=500)], room, {"big": 75.0, "small": 25.0}, 1000).begin
    assert Counter(one.share for one in begun) == {"big": 75, "small": 5}


def test_what_a_share_does_not_use_goes_to_the_others() -> None:
    begun = pick([*waiting(3, "big"), *waiting(100, "small", first=500)], Room(60, 200, 0.0), {"big": 99.0, "small": 1.0}, 1000)
    assert Counter(one.share for one in begun.begin) == {"big": 3, "small": 57}


def test_a_share_that_the_tree_does_not_know_is_not_left_out() -> None:
    begun = pick([*waiting(100, "known"), *waiting(100, "", first=500)], Room(60, 200, 0.0), {"known": 50.0}, 1000).begin
    assert Counter(one.share for one in begun) == {"known": 30, "": 30}


def test_an_endpoint_without_room_hinders_its_own_transfers_only() -> None:
    room = Room(60, 10, 0.0)
    picked = pick([*waiting(30), *waiting(30, first=100, to="B2")], room, {}, 1000)
    assert Counter(one.destination for one in picked.begin) == {"B1": 10}, "the source has no more room either"
    room = Room(60, 10, 0.0)
    room.count([Active(LINK, False, "", "other", "B1", 10)])
    picked = pick([*waiting(30), *waiting(30, first=100, to="B2")], room, {}, 1000)
    assert Counter(one.destination for one in picked.begin) == {"B2": 10}
    assert not picked.hindered
    assert len(pick(waiting(30), room, {}, 1000).hindered) == 30


@given(
    st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from("XY"), st.booleans(), st.sampled_from("pq")), max_size=60),
    st.integers(0, 8),
    st.integers(0, 8),
    st.floats(0, 1),
)
def test_no_limit_is_ever_exceeded(rows: list[tuple[str, str, bool, str]], link: int, storage: int, part: float) -> None:
    due = [Waiting(i, Way(a, b), x, share, f"{a}1", f"{b}1") for i, (a, b, x, share) in enumerate(rows)]
    begun = pick(due, Room(link, storage, part), {}, 1000).begin
    assert max(Counter(one.way for one in begun).values(), default=0) <= link
    assert max(Counter(one.destination for one in begun).values(), default=0) <= storage
    assert max(Counter(one.source for one in begun).values(), default=0) <= storage
    plain = Counter(one.way for one in begun if not one.express)
    assert max(plain.values(), default=0) <= link - int(link * part)
    assert len({one.id for one in begun}) == len(begun)


def test_rests_double_up_to_the_longest() -> None:
    rests = [backoff_s(n, None, 120, 3600) for n in range(1, 9)]
    assert rests == [120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert {round(backoff_s(1, UUID(int=n), 120, 3600)) for n in range(10_000)} == set(range(96, 145))


def test_a_large_file_may_take_longer_but_not_for_ever() -> None:
    assert silent_s(0, 3600, 1, 86400) == 3600
    assert silent_s(10**9, 3600, 1, 86400) == 4600
    assert silent_s(10**15, 3600, 1, 86400) == 86400


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_has_a_next_step(reason: str) -> None:
    step = after_failure(Attempt(1, KEY, "A1"), reason, CONFIG)
    assert step.over == (reason in ENDS)
    assert after_failure(Attempt(4, KEY, "A1"), reason, CONFIG).over
    if step.wait_s is not None:
        assert 96 <= step.wait_s <= 144


def test_a_source_is_blamed_and_rests_only_when_it_failed_before() -> None:
    first = after_failure(Attempt(1, KEY, "A1"), "source_missing", CONFIG)
    assert (first.failed_source, first.wait_s, first.bad_source) == ("A1", None, False)
    again = after_failure(Attempt(2, KEY, "A1", ["A1"]), "source_corrupt", CONFIG)
    assert again.wait_s is not None and again.bad_source


@pytest.mark.parametrize(
    ("done", "failed", "halved", "step"),
    [(0, 19, False, ""), (10, 10, False, ""), (9, 11, False, "halve"), (9, 11, True, "block"), (11, 9, True, "")],
)
def test_a_link_is_judged_by_what_most_attempts_came_to(done: int, failed: int, halved: bool, step: str) -> None:
    assert judge_link(done, failed, halved, CONFIG) == step
