"""Blocks of matches under limits with much room: they save waiting, and never let a limit be passed, whoever dies or sleeps."""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import cast
from uuid import uuid4

import pytest
from django.db import OperationalError, connection, connections, transaction

from broker_site.foundation.sql.prepared import Call
from brokerage.ledger import limited_handing_out, match_blocks
from brokerage.ledger.lease import Ask, HeldAtMost, lease, leasing
from brokerage.ledger.limited_handing_out import SiteTurn
from brokerage.ledger.match_blocks import BLOCKS, Block, MatchBlocks
from brokerage.ledger.match_gauges import Passing
from brokerage.ledger.match_limits import LIMITS, Limits
from brokerage.models import ComputingQueue, Job, MatchGauge
from brokerage.queries.held_slots import forget_tasks
from brokerage.queries.job_document import LeasedJob, Untold
from brokerage.rules.dispatch.waiting_list import WaitingQueue
from tests.builders import grid, pilot
from tests.ledger.test_match_limits import PROCESSES, SITE, VO, _match_for, configure, jobs, match

pytestmark = pytest.mark.django_db(transaction=True)
SEVERAL = HeldAtMost()


@pytest.fixture
def queue() -> Iterator[ComputingQueue]:
    (made,) = grid("ALPHA")
    forget_tasks()
    BLOCKS.forget()
    yield made
    BLOCKS.forget()


@pytest.fixture
def limits(queue: ComputingQueue) -> Limits:
    """What a process knows that has looked at the site."""
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 9000}}}')
    known = Limits()
    known.at(SITE)
    return known


def with_block(limits: Limits) -> Passing:
    """What the second of two matches has to pass that come at once: the first is counted by itself, this one takes a block."""
    first, second = limits.passing(SITE, VO), limits.passing(SITE, VO)
    assert first is not None
    assert second is not None
    assert (len(first.blocks), len(second.blocks)) == (0, 1)
    return second


def with_block_again(limits: Limits) -> Passing:
    """What a match has to pass that comes at once after another."""
    asked = limits.passing(SITE, VO)
    assert asked is not None
    assert asked.blocks
    return asked


def counted(limits: Limits) -> MatchGauge:
    """The gauge, after the jobs were counted anew."""
    MatchGauge.objects.update(counted_at="2020-01-01T00:00:00Z")
    limits.at(SITE)
    Limits().at(SITE)
    return MatchGauge.objects.get()


def end_all_blocks() -> None:
    gauge = MatchGauge.objects.get()
    MatchGauge.objects.update(blocks={id_: [n, 1.0] for id_, (n, _) in gauge.blocks.items()})


def try_match(asked: Passing, groups: list[int], queue: ComputingQueue, most: HeldAtMost = SEVERAL) -> bool:
    request, holder = uuid4(), pilot(queue, str(uuid4()))
    return lease([Ask(group, holder, request, 60.0, most, limits=asked) for group in groups], holder, request, 60) is not None


by_statement = pytest.mark.parametrize("most", [SEVERAL, HeldAtMost(leases=1)], ids=["several", "only one"])
"""Pilots that may hold several jobs, and one: their leases are different statements."""


def test_matches_of_a_block_do_not_touch_the_row_of_the_limit(queue: ComputingQueue, limits: Limits) -> None:
    groups, holders = jobs(20), [pilot(queue, str(n)) for n in range(20)]
    limits.not_matched(with_block(limits))
    before = MatchGauge.objects.get()

    assert all(match(limits, groups, holder, VO) for holder in holders)

    after = MatchGauge.objects.get()
    assert (after.matched, after.blocks) == (before.matched, before.blocks), "twenty matches were counted as one block"
    assert after.matched == 32
    assert [n for n, _ in after.blocks.values()] == [32]
    assert Job.objects.filter(status="sent").count() == 20


@by_statement
@pytest.mark.parametrize("opened", [(), (1, "HERE", True)], ids=["bound", "open"])
@pytest.mark.parametrize("window", [0, 5])
def test_a_lease_under_blocks_alone_asks_no_gauge(
    queue: ComputingQueue, limits: Limits, most: HeldAtMost, opened: tuple[int, str, bool], window: int
) -> None:
    first = limits.passing(SITE, VO)
    for asked, reads in ((first, True), (with_block_again(limits), False)):
        ask = Ask(1, uuid4(), uuid4(), 60.0, most, 1, (0, 1), window, *opened)._replace(limits=asked)
        calls = leasing([ask])
        assert ["matchgauge" in call.statement.sql for call in calls if call.statement.name != "place_outputs"] == (
            [True, True] if reads else [False]
        )
        assert calls[0].run() == []


def test_a_count_has_the_jobs_and_what_a_block_may_still_become(queue: ComputingQueue, limits: Limits) -> None:
    groups, holders = jobs(5), [pilot(queue, str(n)) for n in range(5)]
    assert all(match(limits, groups, holder, VO) for holder in holders)
    gauge = counted(limits)
    assert (gauge.running, gauge.matched) == (5, 32)


def test_the_block_of_a_process_that_died_is_dropped_once_it_has_ended(queue: ComputingQueue, limits: Limits) -> None:
    with_block(limits)
    BLOCKS.forget()
    assert counted(limits).matched == 32
    end_all_blocks()
    gauge = counted(limits)
    assert (gauge.matched, gauge.blocks) == (0, {})


@by_statement
def test_a_match_under_way_keeps_its_block_until_it_is_committed(queue: ComputingQueue, limits: Limits, most: HeldAtMost) -> None:
    """The process that makes it may have been asleep for long: its job is seen by no count before."""
    groups = jobs(1)
    asked = with_block(limits)

    def count_elsewhere() -> MatchGauge:
        try:
            return counted(Limits())
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        assert try_match(asked, groups, queue, most)
        pool.submit(end_all_blocks).result(10)
        meanwhile = pool.submit(count_elsewhere).result(10)
        pool.submit(connections.close_all).result(10)
    assert (meanwhile.running, meanwhile.matched) == (0, 32)
    after = counted(limits)
    assert (after.running, after.matched) == (1, 0)


@by_statement
def test_a_block_that_has_ended_lets_no_match_pass(queue: ComputingQueue, limits: Limits, most: HeldAtMost) -> None:
    groups = jobs(2)
    asked = with_block(limits)
    (block,) = asked.blocks
    assert try_match(asked, groups, queue, most)
    block.until = time.time() - 0.1
    assert not try_match(asked, groups, queue, most)


def test_after_the_clock_was_set_back_a_block_goes_on_no_longer(queue: ComputingQueue, limits: Limits) -> None:
    groups, asked = jobs(1), with_block(limits)
    asked.blocks[0].until += 3600
    gauge = MatchGauge.objects.get()
    MatchGauge.objects.update(blocks={id_: [n, until + 3600] for id_, (n, until) in gauge.blocks.items()})
    assert not try_match(asked, groups, queue), "the next count does not know of it"
    after = counted(limits)
    assert (after.running, after.matched, after.blocks) == (0, 0, {})


@by_statement
def test_a_block_that_a_count_is_dropping_lets_no_match_pass(queue: ComputingQueue, limits: Limits, most: HeldAtMost) -> None:
    groups = jobs(1)
    asked = with_block(limits)
    with transaction.atomic(), connection.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [asked.blocks[0].id])

        def elsewhere() -> bool:
            try:
                return try_match(asked, groups, queue, most)
            finally:
                connection.close()

        assert not pool.submit(elsewhere).result(10)


def test_what_a_block_has_left_goes_back_when_the_next_is_taken(queue: ComputingQueue, limits: Limits) -> None:
    (block,) = (first := with_block(limits)).blocks
    limits.matched(SITE, first)
    block.ends_at = 0.0
    asked = limits.passing(SITE, VO)
    assert asked is not None
    (following,) = asked.blocks
    gauge = MatchGauge.objects.get()
    assert (gauge.matched, list(gauge.blocks)) == (1 + 32, [str(following.id)]), "one match of the first, and the second block"


def test_a_match_of_which_nobody_knows_how_it_ended_keeps_its_block(queue: ComputingQueue, limits: Limits) -> None:
    """Its connection broke, and the database goes on with it: the thread takes another block, and does not give this one back."""
    groups, made, over = jobs(1), threading.Event(), threading.Event()
    asked = with_block(limits)

    def goes_on() -> None:
        with transaction.atomic():
            assert try_match(asked, groups, queue)
            made.set()
            over.wait(10)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        going_on = pool.submit(goes_on)
        assert made.wait(10)
        asked.blocks[0].ends_at = 0.0
        limits.passing(SITE, VO)
        following = limits.passing(SITE, VO)
        assert following is not None
        assert [block.id for block in following.blocks] != [asked.blocks[0].id]
        end_all_blocks()
        meanwhile = counted(limits)
        over.set()
        going_on.result(10)
    assert (meanwhile.running, list(meanwhile.blocks)) == (0, [str(asked.blocks[0].id)])
    after = counted(limits)
    assert (after.running, after.matched) == (1, 0)


def test_who_slept_until_its_block_was_over_tries_again(
    queue: ComputingQueue, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    LIMITS.forget()
    (group,), hand_out = jobs(2), limited_handing_out.hand_out
    slept: list[Block] = []
    turn, waiting = SiteTurn(SITE), cast("WaitingQueue", SimpleNamespace(values=lambda name: VO.get(name, frozenset())))
    asks = [Ask(group, pilot(queue, str(n)), uuid4(), 60.0, HeldAtMost()) for n in range(2)]

    def hand_out_late(asks: Sequence[Ask], noting: Sequence[Call] = ()) -> list[list[LeasedJob] | Untold]:
        blocks = asks[0].limits.blocks if asks[0].limits and not slept else ()
        for block in blocks:
            block.until = block.ends_at = 0.0
        slept.extend(blocks)
        return hand_out(asks, noting)

    assert turn.hand_out(asks[0], waiting)
    monkeypatch.setattr(limited_handing_out, "hand_out", hand_out_late)
    assert turn.hand_out(asks[1], waiting)
    assert slept


def test_a_block_that_was_perhaps_given_back_is_used_no_more(
    queue: ComputingQueue, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of the database was lost, and the limit is what it was before."""
    limits.not_matched(asked := with_block(limits))
    gauge, take = MatchGauge.objects.get().id, match_blocks._TAKE

    class Broken:
        def run(self, *values: object) -> None:
            take.run(*values)
            raise OperationalError

    with monkeypatch.context() as broken, pytest.raises(OperationalError):
        broken.setattr(match_blocks, "_TAKE", Broken())
        BLOCKS.take(gauge, 8000)
    following = BLOCKS.take(gauge, 9000)
    assert following is not None
    assert following.id != asked.blocks[0].id


def test_a_limit_that_is_configured_again_knows_of_the_blocks_that_it_had(queue: ComputingQueue, limits: Limits) -> None:
    """A process that saw neither change, or was asleep meanwhile, goes on with its block."""
    groups, other = jobs(1), Limits()
    asked = with_block(limits)
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"cms": 3}}}')
    other.at(SITE)
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 9000, "cms": 3}}}')
    assert not other.at(SITE)
    if try_match(asked, groups, queue):
        gauge = MatchGauge.objects.get(value="demo")
        assert gauge.counted_at is not None
        assert gauge.running + gauge.matched >= 1


def test_a_limit_that_is_configured_no_more_goes_with_its_last_block(queue: ComputingQueue, limits: Limits) -> None:
    with_block(limits)
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"cms": 3}}}')
    limits.at(SITE)
    gauge = MatchGauge.objects.get(value="demo")
    assert gauge.counted_at is None, "nobody counts what is matched meanwhile"
    MatchGauge.objects.filter(value="demo").update(blocks={id_: [n, 1.0] for id_, (n, _) in gauge.blocks.items()})
    limits.at(SITE)
    assert [gauge.value for gauge in MatchGauge.objects.all()] == ["cms"]


def test_where_jobs_are_counted_seldom_no_blocks_are_taken(queue: ComputingQueue, limits: Limits) -> None:
    """What a thread that ended had left would count as used until the next count."""
    configure("RUNNING_COUNT_PERIOD", "10min")
    assert not any(asked.blocks for _ in range(3) if (asked := limits.passing(SITE, VO)))
    assert MatchGauge.objects.get().matched == 0


def test_a_child_process_does_not_go_on_with_the_blocks_of_its_parent(queue: ComputingQueue, limits: Limits) -> None:
    with_block(limits)
    gauge = MatchGauge.objects.get().id
    connections.close_all()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_first_of, (gauge,)) is None


def _first_of(gauge: int) -> Block | None:
    return BLOCKS.take(gauge, 9000)


@pytest.mark.parametrize(("most", "n"), [(127, 0), (128, 2), (640, 10), (100_000, 32)])
def test_a_block_is_a_small_part_of_the_room(queue: ComputingQueue, limits: Limits, most: int, n: int) -> None:
    gauge, blocks = MatchGauge.objects.get(), MatchBlocks()
    taken = [block for _ in range(2) if (block := blocks.take(gauge.id, most)) is not None]
    assert [block.left + 1 for block in taken] == ([n] if n else [])
    assert MatchGauge.objects.get().matched == n


def test_who_matches_seldom_takes_no_block(queue: ComputingQueue, limits: Limits) -> None:
    blocks = MatchBlocks()
    gauge = MatchGauge.objects.get().id
    assert blocks.take(gauge, 9000) is None
    time.sleep(0.15)
    assert blocks.take(gauge, 9000) is None


def test_processes_with_blocks_never_pass_a_limit_and_reach_it(queue: ComputingQueue) -> None:
    configure("RUNNING_COUNT_PERIOD", "20ms")
    configure("RUNNING_LIMITS", json.dumps({SITE: {"vo": {"demo": 300}, "owner": {"ada": 340}}}))
    groups = jobs(400)
    holders = [[pilot(queue, f"{n}-{i}") for i in range(100)] for n in range(PROCESSES)]
    connections.close_all()  # a forked process must not share them
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        made = pool.starmap(_match_for, [(groups, mine, 6.0) for mine in holders])
    assert sum(made) == 300
    assert Job.objects.filter(status="sent").count() == 300
