"""Work queues take tasks, shares divide what there is: nothing is lost, nothing is given twice."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workqueues.rules.shares.tree import BadTree, Node, check, entitlements, order, sums, targets
from workqueues.rules.work_queues.criteria import parse
from workqueues.rules.work_queues.mapping import Queue, choose
from workqueues.rules.work_queues.queue_shares import QueueShare, percentages

QUEUES = (
    Queue("rest"),
    Queue("many", 2, parse("coreCount > 1"), partition="P"),
    Queue("P", 1, is_partition=True),
    Queue("users", 1, None, label="user"),
    Queue("other", 0, None, vo="cms"),
)


def test_the_first_queue_whose_criteria_hold_takes_the_task_and_the_story_is_told() -> None:
    mapping = choose(QUEUES, {"corecount": 8}, "atlas", "managed")
    assert (mapping.queue, mapping.partition) == ("many", "P")
    assert [(t.queue, t.verdict, t.out_of_scope) for t in mapping.trials] == [
        ("other", False, "is for the VO cms"),
        ("users", False, "is for prodSourceLabel user"),
        ("many", True, ""),
    ]
    assert choose(QUEUES, {"corecount": None}, "atlas", "managed").queue == "rest"
    assert choose(QUEUES, {}, "atlas", "user").queue == "users"
    assert choose(QUEUES[1:2], {}, "atlas", "managed").queue is None


def test_the_worked_example_of_the_facts() -> None:
    def queues(*, stretchable: bool, q: bool) -> list[QueueShare]:
        return [
            QueueShare("P", 60, is_partition=True),
            QueueShare("Q", 40, active=q),
            QueueShare("s1", 50, active=True, partition="P"),
            QueueShare("s2", 30, active=True, stretchable=stretchable, partition="P"),
            QueueShare("s3", 20, partition="P"),
        ]

    assert percentages(queues(stretchable=False, q=True)) == {"P": 60, "Q": 40, "s1": 37.5, "s2": 22.5, "s3": 0}
    assert percentages(queues(stretchable=True, q=True)) == {"P": 60, "Q": 40, "s1": 30, "s2": 30, "s3": 0}
    assert percentages(queues(stretchable=False, q=False)) == {"P": 100, "Q": 0, "s1": 62.5, "s2": 37.5, "s3": 0}


def test_a_queue_without_share_gets_only_what_is_left() -> None:
    assert percentages([QueueShare("a", 100, active=True), QueueShare("b", None, active=True)]) == {"a": 100, "b": 0}
    assert percentages([QueueShare("a", 100), QueueShare("b", None, active=True)]) == {"a": 0, "b": 100}
    assert percentages([QueueShare("a", None, active=True), QueueShare("b", None, active=True)]) == {"a": 50, "b": 50}
    assert percentages([QueueShare("a", 100)]) == {"a": 0}


amounts = st.integers(0, 100)
shared = st.lists(
    st.tuples(st.none() | amounts, st.booleans(), st.booleans(), st.sampled_from(["", "P0", "P1"])), min_size=1, max_size=9
)


@given(shared, amounts, amounts)
@example([(None, True, False, "P0"), (None, True, False, "P1"), (None, True, True, ""), (2, True, False, "")], 17, 62)
def test_active_queues_share_all_there_is_and_sub_queues_all_of_their_partition(
    rows: list[tuple[int | None, bool, bool, str]], p0: int, p1: int
) -> None:
    queues = [QueueShare("P0", p0, is_partition=True), QueueShare("P1", p1, is_partition=True)]
    queues += [
        QueueShare(f"q{i}", share, active, stretch, partition=into) for i, (share, active, stretch, into) in enumerate(rows)
    ]
    found = percentages(queues)
    assert found.keys() == {q.name for q in queues}
    assert all(value >= 0 for value in found.values())
    alive = any(q.active for q in queues)
    assert sum(found[q.name] for q in queues if not q.partition) == pytest.approx(100 if alive else 0)
    for name in ("P0", "P1"):
        assert sum(found[q.name] for q in queues if q.partition == name) == pytest.approx(found[name])
    assert all(found[q.name] == 0 for q in queues if not q.active and not q.is_partition)


TREE = (Node("production", 80, (Node("MC", 60), Node("Data", 40))), Node("analysis", 20))


def test_targets_and_sums_go_down_and_up_the_tree() -> None:
    assert targets(TREE, 1000) == {"production": 800, "MC": 480, "Data": 320, "analysis": 200}
    assert sums(TREE, {"MC": 3, "analysis": 2}, 0) == {"production": 3, "MC": 3, "Data": 0, "analysis": 2}
    assert order(TREE, {}) == ["MC", "Data", "analysis"]


def test_a_share_of_zero_gets_nothing_and_its_wish_does_not_count_for_its_parent() -> None:
    tree = (Node("production", 80, (Node("MC", 60), Node("Paused", 0))), Node("analysis", 20))
    found = entitlements(tree, 1000, {"MC": 300, "Paused": 10_000, "analysis": 10_000})
    assert found == {"production": 300, "MC": 300, "Paused": 0, "analysis": 700}


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ((Node("a", -1), Node("b", 2)), "a: a share of -1 is negative"),
        ((Node("a", 1, (Node("b", 0), Node("c", 0))),), "a: all its shares are zero"),
        ((Node("a", 0),), "the root: all its shares are zero"),
        ((Node("a", 1, (Node("a", 1),)),), "a: the name stands twice"),
    ],
)
def test_trees_that_cannot_be_used_are_refused(tree: tuple[Node, ...], why: str) -> None:
    with pytest.raises(BadTree, match=why):
        check(tree)
    check(TREE)


def tree_of(rows: list[bytes]) -> tuple[tuple[Node, ...], dict[str, float]]:
    """A tree and an amount for each node, three bytes a node: which earlier node (or the root) it is below, value, amount."""
    below: dict[int, list[int]] = {i: [] for i in range(len(rows) + 1)}
    for i, (parent, _, _) in enumerate(rows):
        below[parent % (i + 1)].append(i + 1)

    def nodes(parent: int) -> tuple[Node, ...]:
        return tuple(Node(f"n{i}", rows[i - 1][1] % 101 * (rows[i - 1][1] < 202), nodes(i)) for i in below[parent])

    return nodes(0), {f"n{i}": amount * 8.0 for i, (_, _, amount) in enumerate(rows, 1)}


trees = st.lists(st.binary(min_size=3, max_size=3), min_size=1, max_size=20).map(tree_of)
"""Drawn by the node: drawn number by number, trees take longer than what is tested with them."""


@given(trees, st.integers(0, 5000))
def test_what_leaves_may_use_is_all_that_is_wanted_or_all_there_is(
    tree_and_wishes: tuple[tuple[Node, ...], dict[str, float]], total: int
) -> None:
    tree, wishes = tree_and_wishes
    leaves = [leaf for node in tree for leaf in node.leaves()]
    demand = {leaf.name: wishes[leaf.name] for leaf in leaves}
    found = entitlements(tree, total, demand)

    def open_to(nodes: tuple[Node, ...]) -> float:
        return sum((open_to(n.children) if n.children else demand[n.name]) for n in nodes if n.value > 0)

    assert found.keys() == wishes.keys()
    assert all(found[leaf.name] <= demand[leaf.name] + 1e-9 for leaf in leaves)
    assert sum(found[leaf.name] for leaf in leaves) == pytest.approx(min(total, open_to(tree)))
    summed = sums(tree, found, 0.0)
    assert all(found[name] == pytest.approx(summed[name], abs=1e-6) for name in wishes)


@given(trees)
def test_the_order_has_every_leaf_once(tree_and_uses: tuple[tuple[Node, ...], dict[str, float]]) -> None:
    tree, uses = tree_and_uses
    leaves = [leaf.name for node in tree for leaf in node.leaves()]
    assert sorted(order(tree, {name: uses[name] for name in leaves})) == sorted(leaves)
