"""A pull gives what the rule of acquisition would give over all that waits, whatever groups, priorities and slots there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.kernel import clock
from broker_site.foundation.outside_data import read
from broker_site.foundation.sql.prepared import Prepared
from tests.builders import grid, parameters, submitted
from tests.tree_of_brokers import CHILD, pull
from workqueues.ledger.child_brokers import add_child
from workqueues.ledger.elements import next_waiting
from workqueues.ledger.elements.groups import GroupKey, groups
from workqueues.ledger.elements.moves import elements_born
from workqueues.ledger.moves import move_task
from workqueues.models import ChildBroker, Dataset, Element, Task
from workqueues.rules.elements.acquisition import Element as Waiting
from workqueues.rules.elements.acquisition import Puller, acquire
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.messages import Pull

SITES = ("A", "B", "C")
PARTS = st.tuples(
    st.integers(0, 2),  # which task
    st.integers(1, 4),  # priority
    st.integers(1, 5),  # jobs
    st.sets(st.sampled_from((*SITES, "ELSEWHERE")), min_size=1),
    st.sampled_from(("", "red", "blue")),
)
SLOTS = st.dictionaries(st.sampled_from(SITES), st.integers(0, 8), min_size=1)
JOBS = st.dictionaries(st.sampled_from(SITES), st.dictionaries(st.integers(1, 4), st.integers(1, 6), max_size=3))


def looking(name: str, front: int, few: int) -> tuple[Prepared, Prepared]:
    """The two statements, as where they look at so many elements at the front, and so many groups."""
    near, beyond = next_waiting.NEXT.sql, next_waiting.BEYOND_FRONT.sql
    limits = f"LIMIT {next_waiting.FRONT}", f"place <= {next_waiting.FEW_GROUPS}", f"place = {next_waiting.FEW_GROUPS} + 1"
    assert limits[0] in near and limits[1] in beyond and limits[2] in beyond
    beyond = beyond.replace(limits[1], f"place <= {few}").replace(limits[2], f"place = {few} + 1")
    return (
        Prepared(f"next_{name}", next_waiting.TYPES, near.replace(limits[0], f"LIMIT {front}")),
        Prepared(f"beyond_{name}", next_waiting.TYPES_BEYOND, beyond),
    )


LOOKS = ((next_waiting.NEXT, next_waiting.BEYOND_FRONT), looking("short_front", 2, 8), looking("no_front", 0, 1))
"""As they are, and as where those at the front are for others."""

Part = tuple[int, int, int, set[str], str]


@pytest.fixture
def tasks(db: None) -> list[Task]:
    return make_tasks()


def make_tasks() -> list[Task]:
    grid("ALPHA")
    made = [submitted(parameters(f"t{i}")) for i in range(3)]
    for task in made:
        Dataset.objects.create(task=task, dataset_name="seq", type="pseudo_input", status="ready", vo="demo")
    for task in made:
        for state in ("defined", "ready", "running"):
            move_task(task, state, "test", "as if it had been refined and fed")
    return made


def wait(tasks: Sequence[Task], parts: Sequence[Part]) -> list[Element]:
    """Elements that wait, one for each part, without files."""
    keys = [GroupKey(tasks[which].vo, team, tuple(sorted(sites))) for which, _, _, sites, team in parts]
    ids = groups(set(keys)) if keys else {}
    rows = [
        Element(
            task=tasks[which], dataset=tasks[which].datasets.get(type="pseudo_input"), group_id=ids[key], status="Available",
            priority=priority, jobs=jobs, n_files=1,
        )
        for (which, priority, jobs, _, _), key in zip(parts, keys, strict=True)
    ]  # fmt: skip
    elements_born(rows, "test", "cut")
    return rows


def asking(slots: Mapping[str, int], jobs: Mapping[str, Mapping[int, int]], most: int, **more: Any) -> Pull:
    said: dict[str, Any] = {
        "protocol": 1, "version": "1", "now": clock.now().isoformat(), **CHILD,
        "key": str(uuid4()), "most": most, "sites": {s: {"pending_slots": n, "running_slots": 0} for s, n in slots.items()},
        "jobs": {site: {str(priority): n for priority, n in of.items()} for site, of in jobs.items()}, **more,
    }  # fmt: skip
    return read(Pull, said)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(PARTS, max_size=25),
    slots=SLOTS,
    jobs=JOBS,
    most=st.integers(0, 12),
    team=st.sampled_from(("", "red")),
    look=st.sampled_from(LOOKS),
)
def test_a_pull_gives_what_the_rule_gives_over_all_that_waits(
    tasks: list[Task],
    parts: list[Part],
    slots: dict[str, int],
    jobs: dict[str, dict[int, int]],
    most: int,
    team: str,
    look: tuple[Prepared, Prepared],
) -> None:
    with transaction.atomic(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(next_waiting, "NEXT", look[0])
        patched.setattr(next_waiting, "BEYOND_FRONT", look[1])
        rows = wait(tasks, parts)
        child = add_child(f"c{uuid4().hex[:8]}", team, "", SYSTEM).child
        ask = asking(slots, jobs, most)
        answer = pull(child, ask)
        waiting = [
            Waiting(str(row.id), row.priority, row.task_id, row.jobs, SiteWishes(sites), of_team)
            for row, (_, _, _, sites, of_team) in zip(rows, parts, strict=True)
        ]
        expected = acquire(waiting, slots, Random(1), counts=jobs, puller=Puller(team), most=most)  # type: ignore[arg-type]
        given = [str(one["id"]) for one in answer["elements"]]
        assert_like(given, [element.id for element, _ in expected.elements], answer["elements"], slots, jobs, rows)
        transaction.set_rollback(True)


def assert_like(
    given: list[str],
    expected: list[str],
    told: list[dict[str, Any]],
    slots: Mapping[str, int],
    jobs: Mapping[str, Mapping[int, int]],
    rows: Sequence[Element],
) -> None:
    """Sites are chosen at random, and later elements hang on that; where each element has one site at most the two are equal."""
    counts = {site: dict(of) for site, of in jobs.items()}
    for one in told:
        there = sum(n for priority, n in counts.get(one["site"], {}).items() if priority >= one["priority"])
        assert there < slots[one["site"]], f"{one} has no slot"
        of = counts.setdefault(one["site"], {})
        of[one["priority"]] = of.get(one["priority"], 0) + one["jobs"]
    assert [(-one["priority"], one["task_id"], one["id"]) for one in told] == sorted(
        (-one["priority"], one["task_id"], one["id"]) for one in told
    )
    open_sites = {row.id: set(row.group.sites) & set(slots) for row in rows if row.group}
    if all(len(sites) <= 1 for sites in open_sites.values()):
        assert given == expected
    else:
        assert bool(given) == bool(expected)


@pytest.mark.django_db(transaction=True)
def test_pulls_at_once_give_no_element_twice_and_leave_none() -> None:
    tasks = make_tasks()
    rows = wait(tasks, [(i % 3, i % 4 + 1, 1, {"A"}, "") for i in range(120)])
    children = [add_child(f"child{i}", "", "", SYSTEM).child for i in range(6)]

    def pulls(child: ChildBroker) -> list[int]:
        got: list[int] = []
        try:
            for _ in range(60):
                answer = pull(child, asking({"A": 1000}, {}, 3))
                if not (given := [one["id"] for one in answer["elements"]]) and not answer["why"].get("in_other_hands"):
                    break
                got += given
                Element.objects.filter(id__in=given).update(child=None, status="Canceled", lease_until=None)
            return got
        finally:
            connection.close()

    with ThreadPoolExecutor(len(children)) as pool:
        got = [id_ for ids in pool.map(pulls, children) for id_ in ids]
    assert sorted(got) == sorted(row.id for row in rows)
    assert len(rows) < next_waiting.FRONT


@pytest.mark.django_db
def test_of_two_looks_together_the_older_element_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another had locked at the first look is free at the second."""
    older, younger = wait(make_tasks(), [(0, 1, 1, {"A"}, ""), (0, 1, 1, {"A"}, "")])
    seen = "NOT e.id IN (SELECT unnest($4))"
    passed_over = next_waiting.NEXT.sql.replace(seen, f"{seen} AND e.id <> {older.id}")
    assert passed_over != next_waiting.NEXT.sql
    monkeypatch.setattr(next_waiting, "NEXT", Prepared("next_but_one", next_waiting.TYPES, passed_over))
    page = next_waiting.next_waiting(["A"], "", "", [], 2)
    assert [one.id for one in page.mine] == [older.id, younger.id]
    child = add_child("west", "", "", SYSTEM).child
    answer = pull(child, asking({"A": 1}, {}, 2))
    assert [one["id"] for one in answer["elements"]] == [older.id]
