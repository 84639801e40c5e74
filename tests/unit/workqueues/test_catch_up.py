"""What a share ran too much or too little of late is made up for, within bounds, and is forgotten."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.shares.catch_up import MOST_COUNTED, Lately
from workqueues.rules.shares.serving import ServingOrder, UnitTree
from workqueues.rules.shares.tree import Node, order, targets
from workqueues.rules.shares.usage import Use, of_tree

TREE = (Node("A", 50, (Node("a1", 50), Node("a2", 50))), Node("B", 50))


def counted(times: int, used: float, entitled: float, *, ahead: float = 0.0, memory_s: float = 300.0) -> float:
    """What is remembered after so many counts, ten seconds apart."""
    for _ in range(times):
        ahead = Lately({"x": ahead}, 10.0, memory_s).now("x", used, entitled)
    return ahead


def test_an_error_that_lasts_is_remembered_whole_and_fades_to_a_third_in_the_time_of_the_memory() -> None:
    assert counted(300, 110.0, 100.0) == pytest.approx(10.0, abs=0.01)
    assert counted(300, 95.0, 100.0) == pytest.approx(-5.0, abs=0.01)
    assert counted(30, 100.0, 100.0, ahead=10.0) == pytest.approx(10.0 / 2.71828, rel=1e-3)


def test_a_large_error_counts_as_a_bounded_one() -> None:
    """A site that starts, or a share that comes back, is no debt of many times its share."""
    assert counted(300, 900.0, 100.0) == pytest.approx(MOST_COUNTED * 100.0, abs=0.01)
    assert counted(300, 0.0, 100.0) == pytest.approx(-MOST_COUNTED * 100.0, abs=0.01)


def test_a_share_that_wants_nothing_is_owed_nothing() -> None:
    assert counted(300, 0.0, 0.0) == 0.0
    standings = {s.name: s for s in of_tree(TREE, {"B": Use(hs06_running=100)}, Lately({}, 10.0, 300.0))}
    assert {name: standing.ahead for name, standing in standings.items()} == dict.fromkeys(standings, 0.0)


def test_without_memory_only_what_runs_now_counts() -> None:
    assert counted(300, 110.0, 100.0, memory_s=0.0) == 0.0
    assert Lately({"x": 50.0}, 0.0, 300.0).now("x", 0.0, 100.0) == pytest.approx(50.0)


def test_a_count_after_a_long_pause_stands_for_a_minute_and_what_was_before_is_forgotten() -> None:
    after = Lately({"x": -20.0}, 86400.0, 300.0).now("x", 110.0, 100.0)
    assert after == pytest.approx(Lately({}, 60.0, 300.0).now("x", 110.0, 100.0))


def test_who_ran_too_much_of_late_stands_behind_who_runs_as_much_at_its_level_of_the_tree() -> None:
    used = {"a1": 25.0, "a2": 25.0, "B": 50.0}
    assert order(TREE, used) == ["a1", "a2", "B"]
    assert order(TREE, used, {"a1": 2.0}) == ["B", "a2", "a1"]
    assert order(TREE, used, {"a1": 2.0, "a2": -2.0}) == ["a2", "a1", "B"], "A as a whole ran what it should"
    assert ServingOrder({"vo": UnitTree(TREE, used, ahead={"B": -1.0})}, {}).place("vo", "B", 0) == 0.0


def test_it_counts_for_half_of_the_target_at_most() -> None:
    assert order(TREE, {"a1": 10.0, "a2": 10.0, "B": 80.0}, {"B": -900.0}) == ["a1", "a2", "B"]


@given(st.lists(st.floats(0, 1000), min_size=3, max_size=3), st.lists(st.floats(-200, 200), min_size=3, max_size=3))
def test_every_leaf_has_a_place_whatever_is_remembered(used: list[float], ahead: list[float]) -> None:
    names = ("a1", "a2", "B")
    assert sorted(order(TREE, dict(zip(names, used, strict=True)), dict(zip(names, ahead, strict=True)))) == sorted(names)


def test_what_is_counted_anew_replaces_what_was_handed_out() -> None:
    """Of shares and of work queues, each by its VO; a unit that runs nothing any more has nothing."""
    serving = ServingOrder({"vo": UnitTree(TREE, {"a1": 50.0})}, {"other": UnitTree((Node("7", 50), Node("8", 50)), {"7": 10.0})})
    assert (serving.place("vo", "B", 0), serving.place("other", "", 8)) == (0.0, 0.0)
    serving.handed_out("vo", "a2", 0, 30.0)
    serving.recount({("vo", "B", 1): 40.0, ("vo", "B", 2): 40.0, ("other", "", 8): 10.0})
    assert (serving.place("vo", "B", 0), serving.place("vo", "a1", 0)) == (2 / 3, 0.0)
    assert serving.place("other", "", 7) == 0.0
    assert serving.matters
    assert not ServingOrder({}, {"vo": UnitTree((Node("7", 50),), {}, equal=True)}).matters


SITE = (
    Node("P", 60, (Node("M", 50, (Node("sim", 70), Node("gen", 30))), Node("R", 50, (Node("data", 80), Node("val", 20))))),
    Node("A", 40, (Node("users", 75), Node("groups", 25))),
)
RUN_S = {"sim": 960.0, "gen": 20.0, "data": 480.0, "val": 40.0, "users": 12.0, "groups": 240.0}
"""How long jobs of the leaves run, half as long or half as long again by chance."""


def farthest(memory_s: float, slots: int = 100, end: float = 3600.0) -> float:
    """How far the farthest leaf is from its target over the last two thirds, in parts of it.

    What runs is counted every 2 s by who hands out jobs and every 10 s by the agent; each leaf has more work than it can run.
    """
    dice, now, ends = Random(7), 0.0, list[tuple[float, str]]()
    runs, used, ahead = dict.fromkeys(RUN_S, 0.0), dict.fromkeys(RUN_S, 0.0), dict[str, float]()
    serving, counts = ServingOrder({"vo": UnitTree(SITE, runs)}, {}), 0
    while now < end:
        for _ in range(slots - len(ends)):
            leaf = min(RUN_S, key=lambda name: serving.place("vo", name, 0))
            serving.handed_out("vo", leaf, 0, 1.0)
            runs[leaf] += 1
            heappush(ends, (now + RUN_S[leaf] * dice.uniform(0.5, 1.5), leaf))
        then, ended = min(ends[0], ((counts + 1) * 2.0, ""))
        for leaf, n in runs.items():
            used[leaf] += n * max(0.0, then - max(now, end / 3))
        now = then
        if ended:
            runs[ended] -= 1
            heappop(ends)
            continue
        counts += 1
        if counts % 5 == 0:
            use = {leaf: Use(hs06_running=n, hs06_queued=1e4) for leaf, n in runs.items()}
            ahead = {s.name: s.ahead for s in of_tree(SITE, use, Lately(ahead, 10.0, memory_s))}
            serving = ServingOrder({"vo": UnitTree(SITE, runs, ahead={leaf: ahead[leaf] for leaf in runs})}, {})
        serving.recount({("vo", leaf, 0): n for leaf, n in runs.items()})
    aims = targets(SITE, sum(used.values()))
    return max(abs(used[leaf] / aims[leaf] - 1) for leaf in used)


def test_with_memory_shares_of_short_and_of_long_jobs_come_near_their_targets() -> None:
    letter, remembered = farthest(0.0), farthest(300.0)
    assert letter > 0.05
    assert remembered < letter / 2
