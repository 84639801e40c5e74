"""Requests that are worked on together: who goes with whom, what each is given, and who is kept waiting by nobody."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from broker_site.roof.web import joint_lane
from broker_site.roof.web.joint_lane import JOIN_S, JointLane, Unfinished
from broker_site.roof.web.joint_lane import MOST as MOST_AT_ONCE
from broker_site.roof.web.lane import Lane
from brokerage.api.joint_verbs import MOST, Joint, Wish, carry_out


@dataclass(slots=True)
class Begun(Unfinished):
    number: int


def begin(number: int) -> Callable[[], Any]:
    return partial(Begun, number)


@dataclass
class Ends:
    """Ends what it is given once it is let; `groups`: the numbers that it was given together."""

    groups: list[list[int]] = field(default_factory=list)
    let: threading.Event = field(default_factory=threading.Event)

    def __call__(self, begun: Sequence[Begun]) -> Iterator[tuple[int, str]]:
        self.groups.append([each.number for each in begun])
        assert self.let.wait(10)
        if any(each.number == 13 for each in begun):
            raise RuntimeError("the database is away")
        yield from ((place, f"end of {each.number}") for place, each in enumerate(begun))


async def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.002)


async def first_of(lane: JointLane, ends: Ends) -> asyncio.Future[Any]:
    """A request that is being ended, and will be until it is let."""
    first = asyncio.ensure_future(lane.run(begin(1)))
    await until(lambda: ends.groups == [[1]])
    return first


def in_a_lane(script: Callable[[JointLane, Ends], Any], threads: int = 4) -> list[list[int]]:
    """Run the script with a lane; the groups that ended together."""
    ends = Ends()
    lane = JointLane("joint", threads, 50, 60.0, end=ends)
    try:
        asyncio.run(script(lane, ends))
    finally:
        ends.let.set()
        lane.close()
    assert lane.inside == 0
    return ends.groups


def test_what_comes_while_another_ends_goes_together_next() -> None:
    async def script(lane: JointLane, ends: Ends) -> None:
        first = await first_of(lane, ends)
        others = [asyncio.ensure_future(lane.run(begin(n))) for n in (2, 3, 4)]
        await asyncio.sleep(0)
        ends.let.set()
        assert list(await asyncio.gather(first, *others)) == [f"end of {n}" for n in (1, 2, 3, 4)]

    assert in_a_lane(script) == [[1], [2, 3, 4]]


def test_who_is_done_at_once_waits_for_no_company() -> None:
    async def script(lane: JointLane, ends: Ends) -> None:
        assert await lane.run(lambda: "done") == "done"
        with pytest.raises(ZeroDivisionError):
            await lane.run(lambda: 1 // 0)

    assert in_a_lane(script) == []


def test_a_fault_is_told_to_those_who_went_together_and_to_nobody_else() -> None:
    async def script(lane: JointLane, ends: Ends) -> None:
        first = await first_of(lane, ends)
        others = [asyncio.ensure_future(lane.run(begin(n))) for n in (2, 13)]
        await asyncio.sleep(0)
        ends.let.set()
        assert await first == "end of 1"
        faults = await asyncio.gather(*others, return_exceptions=True)
        assert [str(fault) for fault in faults] == ["the database is away"] * 2
        assert await lane.run(begin(6)) == "end of 6"

    assert in_a_lane(script) == [[1], [2, 13], [6]]


def test_one_that_waits_for_a_lock_keeps_those_who_come_later_waiting_for_a_moment_only() -> None:
    async def script(lane: JointLane, ends: Ends) -> None:
        first = await first_of(lane, ends)
        began = time.monotonic()
        second = asyncio.ensure_future(lane.run(begin(2)))
        await until(lambda: ends.groups == [[1], [2]])
        assert JOIN_S * 0.5 < time.monotonic() - began < 5
        third = asyncio.ensure_future(lane.run(begin(3)))
        await until(lambda: ends.groups == [[1], [2], [3]])
        assert not first.done()
        ends.let.set()
        assert list(await asyncio.gather(first, second, third)) == ["end of 1", "end of 2", "end of 3"]

    assert in_a_lane(script) == [[1], [2], [3]]


def test_with_all_threads_waiting_the_next_is_served_when_one_is_free() -> None:
    async def script(lane: JointLane, ends: Ends) -> None:
        first = await first_of(lane, ends)
        second = asyncio.ensure_future(lane.run(begin(2)))
        await asyncio.sleep(3 * JOIN_S)
        assert ends.groups == [[1]]
        ends.let.set()
        assert list(await asyncio.gather(first, second)) == ["end of 1", "end of 2"]

    assert in_a_lane(script, threads=1) == [[1], [2]]


@pytest.mark.parametrize("fault", [RuntimeError, MemoryError])
def test_where_no_thread_can_be_started_an_ask_fails_and_the_next_are_served(
    monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    async def script(lane: Lane) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            for _ in range(3):
                with pytest.raises(fault, match="no thread more"):
                    await lane.run(lambda: "done")
        assert [await asyncio.wait_for(lane.run(lambda: "done"), 10) for _ in range(3)] == ["done"] * 3

    def refuse(thread: threading.Thread) -> None:
        raise fault("no thread more")

    for lane in (JointLane("joint", 2, 50, 60.0, end=Ends()), Lane("single", 2, 50, 60.0)):
        asyncio.run(script(lane))
        lane.close()
        assert lane.inside == 0


def test_those_that_are_too_many_for_the_second_thread_wait_for_no_other_ask() -> None:
    """Where the first two wait for locks."""

    async def script(lane: JointLane, ends: Ends) -> None:
        first = await first_of(lane, ends)
        others = [asyncio.ensure_future(lane.run(begin(100 + n))) for n in range(MOST_AT_ONCE + 1)]
        await until(lambda: len(ends.groups) == 3)
        assert ends.groups[2] == [100 + MOST_AT_ONCE]
        ends.let.set()
        await asyncio.gather(first, *others)

    in_a_lane(script)


def test_those_for_whom_no_thread_could_be_started_are_served_when_one_can(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(lane: JointLane, ends: Ends) -> None:
        first, start, faults = await first_of(lane, ends), threading.Thread.start, [RuntimeError("no thread more")]

        def refuse_once(thread: threading.Thread) -> None:
            if faults:
                raise faults.pop()
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse_once)
        second = asyncio.ensure_future(lane.run(begin(2)))
        await until(lambda: ends.groups == [[1], [2]])
        assert not faults
        ends.let.set()
        await asyncio.gather(first, second)

    in_a_lane(script)


def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    async def script(lane: Lane) -> None:
        let, begun = threading.Event(), list[int]()
        first = asyncio.ensure_future(lane.run(lambda: let.wait(10)))
        await asyncio.sleep(0.05)
        others = [asyncio.ensure_future(lane.run(partial(begun.append, n))) for n in range(3)]
        await asyncio.sleep(0)
        others[1].cancel()
        await asyncio.sleep(0)
        let.set()
        assert await first
        await until(lambda: begun == [0, 2])
        lane.give_nothing()
        await asyncio.sleep(0)

    for lane in (JointLane("joint", 1, 50, 60.0, end=Ends()), Lane("single", 1, 50, 60.0)):
        asyncio.run(script(lane))
        lane.close()
        assert lane.inside == 0


def test_a_connection_that_cannot_be_let_go_of_costs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MemoryError

    async def script(lane: JointLane, ends: Ends) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(joint_lane, "close_old_connections", fail)
            assert await asyncio.wait_for(lane.run(lambda: "done"), 10) == "done"

    in_a_lane(script)


@pytest.mark.parametrize("kind", [StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_a_fault_that_would_end_the_loop_or_be_lost_in_it_is_told_as_another(kind: type[BaseException]) -> None:
    async def script(lane: Lane) -> None:
        def work() -> None:
            raise kind

        with pytest.raises(RuntimeError, match=kind.__name__):
            await asyncio.wait_for(lane.run(work), 10)
        assert await lane.run(lambda: "done") == "done"

    for lane in (JointLane("joint", 2, 50, 60.0, end=Ends()), Lane("single", 2, 50, 60.0)):
        asyncio.run(script(lane))
        lane.close()
        assert lane.inside == 0


def test_one_ask_after_the_other_goes_to_one_thread() -> None:
    async def script(lane: Lane) -> None:
        all_here = threading.Barrier(3)
        await asyncio.gather(*(lane.run(lambda: all_here.wait(10)) for _ in range(3)))
        threads = set[int]()
        for _ in range(20):
            await until(lambda: len(lane._idle) == 3)
            threads.add(await lane.run(threading.get_ident))
        assert len(threads) == 1

    lane = Lane("single", 3, 50, 60.0)
    asyncio.run(script(lane))
    lane.close()


def test_wishes_of_one_kind_go_together_but_never_two_of_one_key() -> None:
    done: list[tuple[str, list[int]]] = []

    def doing(kind: str) -> Callable[[Sequence[int]], list[str]]:
        def do(matters: Sequence[int]) -> list[str]:
            done.append((kind, list(matters)))
            if 13 in matters:
                raise RuntimeError("the database is away")
            return [f"{kind} {matter}" for matter in matters]

        return do

    beats, ends = Joint(doing("beat"), key=int), Joint(doing("end"), key=int)
    wishes: list[Wish[int, str, Any]] = [
        *(Wish(beats, 1, str.upper), Wish(ends, 1, str.upper), Wish(beats, 2, str.upper), Wish(beats, 1, str.title)),
        *(Wish(ends, 13, str.upper), Wish(beats, 3, lambda told: told[99])),
    ]
    told = dict(carry_out(wishes))
    assert done == [("beat", [1, 2, 3]), ("beat", [1]), ("end", [1, 13])]
    assert [told[place] for place in (0, 2, 3)] == ["BEAT 1", "BEAT 2", "Beat 1"]
    assert [type(told[place]) for place in (1, 4, 5)] == [RuntimeError, RuntimeError, IndexError]


@pytest.mark.parametrize(
    ("weights", "groups"),
    [
        ([1] * (MOST + 1), [list(range(MOST)), [MOST]]),
        ([MOST - 1, 1, 1], [[0, 1], [2]]),
        ([1, 1000, 1, 1], [[0], [1], [2, 3]]),
        ([1000, 1000], [[0], [1]]),
        ([], []),
    ],
)
def test_heavy_matters_go_with_fewer_others_and_nobody_is_passed(weights: list[int], groups: list[list[int]]) -> None:
    joint: Joint[Any, Any] = Joint(lambda matters: [], key=lambda matter: matter[0], weight=lambda matter: matter[1])
    assert list(joint.groups(list(enumerate(weights)))) == groups


def test_of_one_key_the_first_goes_first_however_heavy_it_is() -> None:
    joint: Joint[Any, Any] = Joint(lambda matters: [], key=lambda matter: matter[0], weight=lambda matter: matter[1])
    matters = [("b", 1), ("a", MOST), ("a", 1), ("b", 1), ("c", 1)]
    assert list(joint.groups(matters)) == [[0], [1], [2, 3, 4]]
