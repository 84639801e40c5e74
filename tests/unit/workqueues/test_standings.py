"""Where shares and work queues stand: each unit has target, used, queued and entitled, and none may use what is not there."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workqueues.rules.shares.tree import Node
from workqueues.rules.shares.usage import NO_TREE, UnitStanding, Use, of_queues, of_tree
from workqueues.rules.work_queues.queue_shares import QueueShare

QUEUES = [
    QueueShare("P", 60, is_partition=True),
    QueueShare("Q", 40, active=True),
    QueueShare("s1", 50, active=True, partition="P"),
    QueueShare("s2", 30, active=True, partition="P"),
    QueueShare("s3", 20, partition="P"),
]


def by_name(standings: list[UnitStanding]) -> dict[str, UnitStanding]:
    """Standings by the name of the unit."""
    return {standing.name: standing for standing in standings}


def test_work_queues_stand_by_their_effective_percentages() -> None:
    used = {"s1": Use(hs06_running=600, jobs_running=6, cores_running=60), "Q": Use(hs06_running=400, hs06_queued=1000)}
    found = by_name(of_queues(QUEUES, used))
    assert {name: s.percent for name, s in found.items()} == pytest.approx({"P": 60, "Q": 40, "s1": 37.5, "s2": 22.5, "s3": 0})
    assert {name: s.target for name, s in found.items()} == pytest.approx({"P": 600, "Q": 400, "s1": 375, "s2": 225, "s3": 0})
    assert {name: s.entitled for name, s in found.items()} == pytest.approx({"P": 600, "Q": 400, "s1": 600, "s2": 0, "s3": 0})
    assert (found["P"].value, found["P"].level, found["s1"].parent, found["s1"].level) == (60, 0, "P", 1)
    assert found["P"].use.jobs_running == 6
    assert found["P"].place is None
    # P and Q have what they should, so the order of the queues decides; in P the one that has nothing is first.
    assert found["s2"].place < found["s1"].place < found["Q"].place  # type: ignore[operator]


def test_a_queue_that_uses_what_others_want_is_above_what_it_is_entitled_to() -> None:
    queues = [QueueShare("a", 50, active=True), QueueShare("b", 50, active=True)]
    found = by_name(of_queues(queues, {"a": Use(hs06_running=100), "b": Use(hs06_queued=30)}))
    assert (found["a"].entitled, found["a"].above) == (70, True)
    assert (found["b"].entitled, found["b"].above) == (30, False)
    found = by_name(of_queues(queues, {"a": Use(hs06_running=100)}))
    assert (found["a"].entitled, found["a"].above) == (100, False)


def test_queues_of_which_none_has_a_share_are_served_alike() -> None:
    found = of_queues(
        [QueueShare("a", None, active=True), QueueShare("b", 0, active=True)], {"a": Use(hs06_running=9, hs06_queued=1)}
    )
    assert [(s.place, s.above) for s in found] == [(NO_TREE, False)] * 2


amounts = st.integers(0, 1000).map(float)
rows = st.lists(
    st.tuples(st.none() | st.integers(0, 100), st.booleans(), st.booleans(), amounts, amounts), min_size=1, max_size=8
)


@given(rows)
@example(
    [(None, False, False, 2.0, 0.0), (None, False, True, 0.0, 1.0), (None, True, False, 0.0, 2.0)]
    + [(32, False, False, 1.0, 0.0)] * 3
)
def test_no_queue_is_entitled_to_more_than_it_wants_nor_all_to_more_than_there_is(
    given_rows: list[tuple[int | None, bool, bool, float, float]],
) -> None:
    queues = [QueueShare("P", 30, is_partition=True)]
    used = {}
    for i, (share, stretchable, inside, running, queued) in enumerate(given_rows):
        name = f"q{i}"
        queues.append(QueueShare(name, share, running + queued > 0, stretchable, partition="P" if inside else ""))
        used[name] = Use(hs06_running=running, hs06_queued=queued)
    found = by_name(of_queues(queues, used))
    total = sum(use.hs06_running for use in used.values())
    leaves = [found[name] for name in used]
    assert all(s.entitled <= s.use.hs06_running + s.use.hs06_queued + 1e-6 for s in found.values())
    assert sum(s.entitled for s in leaves) <= total + 1e-6
    assert found["P"].entitled == pytest.approx(sum(s.entitled for s in leaves if s.parent == "P"))
    assert sum(s.target for s in found.values() if not s.parent) == pytest.approx(total)
    assert sum(s.percent for s in found.values() if not s.parent) == pytest.approx(100 if any(q.active for q in queues) else 0)
    places = [s.place for s in leaves if s.place is not None]
    assert len(places) == len(leaves)
    assert all(0 <= place < 1 for place in places)


@given(st.lists(st.tuples(st.integers(1, 100), amounts, amounts), min_size=1, max_size=8))
def test_one_is_above_only_while_another_is_below(given_rows: list[tuple[int, float, float]]) -> None:
    tree = tuple(Node(f"n{i}", value) for i, (value, _, _) in enumerate(given_rows))
    used = {f"n{i}": Use(hs06_running=running, hs06_queued=queued) for i, (_, running, queued) in enumerate(given_rows)}
    found = of_tree(tree, used)
    if any(s.above for s in found):
        assert any(s.entitled > s.use.hs06_running and s.use.hs06_queued for s in found)
