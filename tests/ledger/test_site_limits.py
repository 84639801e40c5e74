"""Advertisements of sites and the room that follows: never more than a site takes, and all of it where there is demand."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.utils.timezone import now

from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.site_limits import BLOCK, RefusedAdvertisement, SiteCount, advertise
from brokerage.ledger.site_room import SiteRoom
from brokerage.models import RoomBlock, SiteAdvertisement
from brokerage.rules.dispatch.site_limits import Advertisement
from tests.builders import grid
from tests.locks import locked

pytestmark = pytest.mark.django_db(transaction=True)

SITE = "SITE_ALPHA"
MATCHERS = 8
GIVES_UP_S = 1.5
"""A matcher of the races ends when there was no room for so long."""


@pytest.fixture(autouse=True)
def site() -> Iterator[None]:
    """A site that counts exactly, by our own clock."""
    grid("ALPHA")
    configure("SITE_CLOCK_ERROR", "0s")
    yield


@pytest.fixture
def room() -> Iterator[SiteRoom]:
    """What a process that has just begun knows."""
    fresh = SiteRoom()
    yield fresh
    fresh.hand_back()


def configure(key: str, text: str) -> None:
    set_override("dispatch", key, text, who="ada", why="test")


def ad(max_jobs: int | None, max_submitting: int | None, current: int, submitting: int, ago_s: float = 0.0, **more: Any) -> None:
    said = Advertisement(
        max_jobs=max_jobs, max_submitting_jobs=max_submitting, current_jobs=current, current_submitting_jobs=submitting
    )
    advertise(SITE, SiteCount(said, now() - timedelta(seconds=ago_s), **more), "enrolment 1")


def matched() -> int:
    return SiteAdvertisement.objects.get(site_id=SITE).matched


def take_all(room: SiteRoom, most: int = 1000) -> int:
    """One match after the other until there is no room."""
    taken = 0
    while taken < most and room.take(SITE):
        taken += 1
    return taken


def later(seconds: float) -> None:
    """Blocks were taken and closed so much earlier, and so was the last count."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE brokerage_roomblock SET taken_at = taken_at - make_interval(secs => %(s)s), "
            "closed_at = closed_at - make_interval(secs => %(s)s)",
            {"s": seconds},
        )
        cursor.execute("UPDATE brokerage_siteadvertisement SET counted_at = counted_at - make_interval(secs => %s)", [seconds])


def test_a_site_that_never_advertised_has_no_limits(room: SiteRoom) -> None:
    assert room.take(SITE) is None
    assert room.reason(SITE) == ""
    assert room.stations(SITE) == frozenset()


def test_the_story_of_five_minutes(room: SiteRoom) -> None:
    ad(100, 10, 80, 0)
    assert take_all(room) == 10
    assert "0 jobs being submitted and 10 matched since, of at most 10 (MaxSubmittingJobs)" in room.reason(SITE)
    for current, submitting, expected in ((87, 6, 4), (91, 0, 9), (100, 5, 0)):
        room.hand_back()
        later(300)
        ad(100, 10, current, submitting)
        room.forget()
        assert take_all(room) == expected
    assert "100 jobs there and 0 matched since, of at most 100 (MaxJobs)" in room.reason(SITE)


@pytest.mark.parametrize(
    ("numbers", "n"),
    [
        ((100, 10, 103, 0), 0),
        ((0, 10, 0, 0), 0),
        ((1, 1, 0, 0), 1),
        ((None, 10, 0, 0), 0),
        ((100, None, 0, 0), 0),
        ((50, 30, 8, 8), 22),
    ],
)
def test_the_database_gives_what_the_rule_gives(room: SiteRoom, numbers: tuple[Any, ...], n: int) -> None:
    ad(*numbers)
    assert take_all(room) == n


def test_jobs_that_came_after_the_count_stay_counted_when_it_arrives_late(room: SiteRoom) -> None:
    ad(100, 100, 0, 0, ago_s=400)
    assert take_all(room, 60) == 60
    room.hand_back()
    ad(100, 100, 0, 0, ago_s=100)  # counted before the 60 came, arrives after them
    assert matched() == 60
    assert SiteAdvertisement.objects.get().current_jobs == 0
    room.forget()
    assert take_all(room) == 40


def test_an_advertisement_that_goes_back_in_time_changes_nothing(room: SiteRoom) -> None:
    ad(10, 10, 9, 0)
    before = SiteAdvertisement.objects.values().get()
    with pytest.raises(RefusedAdvertisement, match="not newer") as refused:
        ad(10, 10, 0, 0, ago_s=60)
    assert refused.value.stale
    with pytest.raises(RefusedAdvertisement, match="in the future") as refused:
        ad(10, 10, 0, 0, ago_s=-60)
    assert not refused.value.stale
    assert SiteAdvertisement.objects.values().get() == before
    assert take_all(room) == 1


def test_the_same_advertisement_again_is_no_fault_and_changes_nothing() -> None:
    count = SiteCount(Advertisement(max_jobs=5, max_submitting_jobs=5, current_jobs=1, current_submitting_jobs=0), now())
    advertise(SITE, count, "enrolment 1")
    before = SiteAdvertisement.objects.values().get()
    advertise(SITE, count, "enrolment 1")
    assert SiteAdvertisement.objects.values().get() == before


def test_an_old_advertisement_gives_no_room_and_that_is_the_reason(room: SiteRoom) -> None:
    configure("SITE_AD_MAX_AGE", "10min")
    ad(100, 100, 0, 0, ago_s=599)
    assert take_all(room, 5) == 5
    later(10)
    room.forget()
    assert room.take(SITE) == 0
    assert room.reason(SITE).startswith("its last advertisement is 10 min old")


def test_what_a_process_does_not_use_it_hands_back_by_itself(room: SiteRoom) -> None:
    configure("SITE_BLOCK_LIFE", "200ms")
    ad(100, 100, 0, 0)
    assert room.take(SITE, 7) == 7
    room.give_back(SITE, 3)
    assert matched() == 7
    eventually(lambda: matched() == 4)
    assert [(block.n, block.used) for block in RoomBlock.objects.all()] == [(7, 4)]
    room.give_back(SITE, 1)  # a match whose failure is known only now
    assert matched() == 3
    assert room.hand_back() is None


def test_a_matching_process_waits_for_no_block_that_is_handed_back(room: SiteRoom) -> None:
    """A database that does not answer who hands back would hold up matches that are long cut off from it."""
    configure("SITE_BLOCK_LIFE", "50ms")
    ad(100, 100, 0, 0)
    assert room.take(SITE, 5) == 5
    with locked(f"SELECT FROM brokerage_siteadvertisement WHERE site_id = '{SITE}' FOR UPDATE"):
        time.sleep(0.5)  # the block is being handed back
        began = time.monotonic()
        room.give_back(SITE, 0)
        assert time.monotonic() - began < 0.5
    eventually(lambda: matched() == 5)


def test_a_block_is_small_for_who_matches_seldom_and_at_most_ten(room: SiteRoom) -> None:
    ad(1000, 1000, 0, 0)
    sizes = []
    for _ in range(40):
        before = matched()
        assert room.take(SITE) == 1
        if (size := matched() - before) > 0:
            sizes.append(size)
    assert sizes == [1, 2, 4, 8, 10, 10, 10]
    assert room.take(SITE, 50) == 5
    assert room.take(SITE, 50) == BLOCK


@pytest.mark.parametrize("age", ["1h", "1s"], ids=["there is room", "the count is too old for more"])
def test_a_block_that_is_used_up_is_closed_when_the_next_is_asked_for(room: SiteRoom, age: str) -> None:
    ad(100, 100, 0, 0)
    assert take_all(room, 3) == 3  # of one match, and of two
    first, second = RoomBlock.objects.order_by("id")
    assert (first.n, first.used, first.closed_at is not None) == (1, 1, True)
    assert (second.n, second.used, second.closed_at) == (2, None, None)
    later(100)
    configure("SITE_AD_MAX_AGE", age)
    more = int(age == "1h")
    assert bool(room.take(SITE)) == bool(more)
    closed = RoomBlock.objects.get(id=second.id)
    assert closed.used == 2
    assert closed.closed_at is not None
    assert closed.closed_at > now() - timedelta(seconds=10)
    assert [block.n for block in RoomBlock.objects.filter(used=None)] == [4] * more
    assert matched() == 3 + 4 * more
    room.give_back(SITE, 1)
    room.hand_back()
    assert matched() == (3 if more else 2)


def test_room_that_others_hand_back_is_found(room: SiteRoom) -> None:
    ad(5, 5, 0, 0)
    other = SiteRoom()
    assert other.take(SITE, 5) == 5
    assert room.take(SITE) == 0
    other.give_back(SITE, 5)
    other.hand_back()
    eventually(lambda: room.take(SITE) == 1)


def test_a_new_advertisement_while_blocks_are_out_counts_them_and_takes_back_what_was_not_used(room: SiteRoom) -> None:
    ad(20, 20, 0, 0, ago_s=100)
    assert room.take(SITE, 8) == 8
    ad(20, 20, 0, 0, ago_s=1)
    assert matched() == 8
    room.give_back(SITE, 6)
    room.hand_back()
    assert matched() == 2


def test_what_a_dead_process_held_counts_until_a_count_is_newer(room: SiteRoom) -> None:
    ad(30, 30, 0, 0, ago_s=1)
    connections.close_all()
    process = multiprocessing.get_context("fork").Process(target=_dies_with_a_block)
    process.start()
    process.join(30)
    assert process.exitcode == 9
    assert matched() == 15, "1, 2, 4 and 8 were taken, 8 used"
    ad(30, 30, 8, 0)
    assert matched() == 8, "of its last block nobody knows how much of it the count has"
    assert take_all(room) == 30 - 8 - 8
    room.hand_back()
    later(60)
    ad(30, 30, 22, 0)
    assert matched() == 0
    assert not RoomBlock.objects.exists(), "nobody asks for them any more"


def _dies_with_a_block() -> None:
    room = SiteRoom()
    for _ in range(8):
        assert room.take(SITE) == 1
    connection.close()
    os._exit(9)


def test_eight_processes_use_all_of_the_room_and_never_more() -> None:
    configure("SITE_BLOCK_LIFE", "100ms")
    ad(1000, 143, 0, 6)
    assert sum(_race(None)) == 137
    assert matched() == 137


def test_eight_processes_never_pass_the_limit_while_advertisements_come() -> None:
    """Jobs never end here: the site has as many as were ever matched, whatever it tells and when that arrives."""
    configure("SITE_BLOCK_LIFE", "100ms")
    at_site = multiprocessing.get_context("fork").Value("i", 0)
    ad(400, 60, 0, 0)
    advertising = multiprocessing.get_context("fork").Process(target=_advertise_often, args=(at_site, 12))
    connections.close_all()
    advertising.start()
    taken = sum(_race(at_site))
    advertising.join(60)
    assert taken == at_site.value
    assert taken <= 400
    ad(400, 400, at_site.value, 0)
    later(60)
    ad(400, 400, at_site.value, 0)
    assert taken + sum(_race(at_site)) == 400


def _advertise_often(at_site: Any, times: int) -> None:
    for _ in range(times):
        counted_at = now()
        current = at_site.value
        time.sleep(random.uniform(0, 0.15))  # on its way
        said = Advertisement(max_jobs=400, max_submitting_jobs=60, current_jobs=current, current_submitting_jobs=0)
        advertise(SITE, SiteCount(said, counted_at), "enrolment 1")
        time.sleep(0.05)
    connection.close()


def _race(at_site: Any) -> list[int]:
    connections.close_all()  # a forked process must not share them
    context = multiprocessing.get_context("fork")
    numbers = context.Queue()
    processes = [context.Process(target=_match_until_none, args=(seed, at_site, numbers)) for seed in range(MATCHERS)]
    for process in processes:
        process.start()
    got = [numbers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(30)
    return got


def _match_until_none(seed: int, at_site: Any, numbers: Any) -> None:
    """Match one job after the other; one in five finds none and is given back."""
    room, dice, made = SiteRoom(), random.Random(seed), 0
    last = time.monotonic()
    while time.monotonic() - last < GIVES_UP_S:
        wanted = dice.randint(1, 3)
        if taken := room.take(SITE, wanted):
            found = sum(dice.random() < 0.8 for _ in range(taken))
            if at_site is not None:
                with at_site.get_lock():
                    at_site.value += found
            if found < taken:
                room.give_back(SITE, taken - found)
            made += found
            last = time.monotonic() if found else last
        else:
            time.sleep(0.02)
    room.hand_back()
    connection.close()
    numbers.put(made)


def eventually(holds: Callable[[], bool], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.05)
