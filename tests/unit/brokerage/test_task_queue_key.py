"""Jobs wait in one task queue exactly where they require the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.dispatch.requirement import SETS, Requirement
from brokerage.rules.dispatch.resource import listed, names
from brokerage.rules.dispatch.task_queue_key import PLACES, SINGLE, digest, key, key_but_for_places


def requirement(lists: list[tuple[str, Any]]) -> Requirement:
    return Requirement(**dict(lists))


values = st.lists(st.sampled_from(["A", "B", "A,B", '"', "é"]), max_size=3)
said = st.lists(st.tuples(st.sampled_from(SETS), values.map(names)), max_size=2).map(requirement)


def test_the_digest_is_the_same_on_every_machine() -> None:
    need = Requirement(sites=frozenset({"CERN", "IN2P3", "BNL", "RAL", "FNAL", "DESY"}), tags=frozenset({"GPU"}))
    assert digest(need) == "7a6fb8a080a2ac7fdc535f7ed592de6b9caeea4eec07498cb2df18c9c112f8c6"


def test_without_lists_the_digest_is_empty() -> None:
    assert digest(Requirement("Q", 8, owner="anna")) == ""


@pytest.mark.parametrize("lists", [["A", "B"], ["B", "A"], ["A", "A", "B", " "], [" A ", "", "B"]])
def test_order_repetitions_and_blanks_do_not_count(lists: list[str]) -> None:
    assert digest(Requirement(sites=names(lists))) == digest(Requirement(sites=frozenset("AB")))


def test_any_is_no_list_where_one_value_is_enough_and_nothing_beside_others_elsewhere() -> None:
    assert listed("platforms", ["ANY", "slc6"]) == listed("sites", [" "]) == frozenset()
    assert listed("tags", ["any", "GPU"]) == {"GPU"}
    assert listed("banned_sites", ["CERN", "Any"]) == {"CERN"}


@given(said, said)
def test_equal_digests_mean_equal_lists(one: Requirement, other: Requirement) -> None:
    assert (digest(one) == digest(other)) is (one == other)
    assert (key(one) == key(other)) is (one == other)
    assert len(digest(one)) in (0, 64)


OTHERWISE: dict[str, Any] = {name: 7 for name, value in Requirement._field_defaults.items() if isinstance(value, int)}


@pytest.mark.parametrize("name", Requirement._fields)
def test_any_single_difference_makes_another_task_queue(name: str) -> None:
    value = OTHERWISE.get(name, frozenset({"x"}) if name in SETS else "x")
    need, other = Requirement(), Requirement(**{name: value})
    assert key(need) != key(other)
    assert (key_but_for_places(need) == key_but_for_places(other)) is (name in PLACES)


def test_the_key_has_every_attribute_once() -> None:
    assert set(SINGLE) | set(SETS) == set(Requirement._fields)
    assert len(key(Requirement())) == len(SINGLE) + 1
