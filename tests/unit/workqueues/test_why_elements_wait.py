"""Why an element waits: told by the rules that give elements to children, so that both always agree."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.elements.acquisition import Element, acquire
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.site_slots import SiteSlots, slots
from workqueues.rules.elements.why_waiting import REASONS, ChildStand, why_waiting

NORTH = SiteSlots("Normal", 5, 5)
EVERYWHERE = SiteWishes(included=["NORTH", "SOUTH"], inputs={"mc.EVNT": ["NORTH", "SOUTH"]})
ELEMENT = Element("1", 500, 0.0, 3, EVERYWHERE, task="7")
CHILD = ChildStand(sites={"NORTH": NORTH})


def wishes(**said: Any) -> Element:
    return replace(ELEMENT, wishes=replace(EVERYWHERE, **said))


@pytest.mark.parametrize(
    ("element", "child", "kind", "words"),
    [
        (ELEMENT, replace(CHILD, is_revoked=True), "revoked", "Its token was revoked."),
        (ELEMENT, replace(CHILD, heard_s=None), "silent", "not been heard of yet"),
        (ELEMENT, replace(CHILD, heard_s=7300.0), "silent", "for 2 hours"),
        (ELEMENT, replace(CHILD, drained_here=True), "drained", "an operator of this broker"),
        (ELEMENT, replace(CHILD, is_draining=True), "drained", "it said that it pulls nothing more"),
        (ELEMENT, replace(CHILD, free_jobs=0), "full", "hard limit"),
        (ELEMENT, replace(CHILD, negotiating=2), "confirming", "2 elements of its last pull"),
        (ELEMENT, replace(CHILD, held=3, most_held=3), "holds", "It has 3 elements, as many as one child broker may have."),
        (ELEMENT, replace(CHILD, vo="cms"), "vo", "elements of cms only; this is one of demo"),
        (replace(ELEMENT, team="higgs"), replace(CHILD, team="top"), "team", "for the team higgs; the child is of top"),
        (ELEMENT, replace(CHILD, refused_tasks=["7"]), "refused", "elements of task 7"),
        (ELEMENT, replace(CHILD, sites={}), "sites", "no site"),
        (wishes(included=["SOUTH"]), CHILD, "list", "leave NORTH out"),
        (wishes(excluded=["NORTH"]), CHILD, "list", "leave NORTH out"),
        (wishes(inputs={"mc.EVNT": ["SOUTH"]}), CHILD, "data", "NORTH does not have mc.EVNT."),
        (ELEMENT, replace(CHILD, sites={"NORTH": replace(NORTH, state="Draining")}), "site", "NORTH drains"),
        (ELEMENT, replace(CHILD, sites={"NORTH": replace(NORTH, state="Down")}), "site", "NORTH is Down."),
        (ELEMENT, replace(CHILD, sites={"NORTH": SiteSlots("Normal", 0, 0)}), "slot", "NORTH has no slot."),
        (
            ELEMENT,
            replace(CHILD, jobs={"NORTH": {500: 8, 900: 4, 100: 50}}),
            "slot",
            "its 10 slots are taken by 12 jobs of priority 500 or higher",
        ),
    ],
)
def test_each_reason_is_told_with_its_numbers(element: Element, child: ChildStand, kind: str, words: str) -> None:
    (reason,) = why_waiting(element, "demo", child)
    assert reason.kind == kind
    assert words in reason.why


def test_every_kind_of_reason_is_tried_above() -> None:
    (table,) = test_each_reason_is_told_with_its_numbers.pytestmark  # type: ignore[attr-defined]
    assert {row[2] for row in table.args[1]} == set(REASONS)


def test_nothing_keeps_it_from_a_child_with_an_empty_slot_at_one_of_its_sites() -> None:
    child = replace(CHILD, sites={"NORTH": SiteSlots("Down", 5, 5), "SOUTH": NORTH}, jobs={"SOUTH": {100: 99}})
    assert why_waiting(ELEMENT, "demo", child) == []
    assert why_waiting(wishes(included=["NORTH"]), "demo", child) != []


SITES = st.sampled_from(["A", "B", "C"])
PRIORITIES = st.integers(0, 3)
WISHES = st.builds(
    SiteWishes,
    included=st.sets(SITES),
    excluded=st.sets(SITES, max_size=1),
    inputs=st.dictionaries(st.sampled_from("xy"), st.sets(SITES), max_size=1),
    parents=st.dictionaries(st.just("p"), st.sets(SITES), max_size=1),
    pileup=st.dictionaries(st.just("u"), st.sets(SITES), max_size=1),
    needs_parents=st.booleans(),
    trusts_sites=st.booleans(),
    trusts_pileup_sites=st.booleans(),
)
TEAMS = st.sampled_from(["", "red", "blue"])
ELEMENTS = st.builds(
    Element, st.uuids().map(str), PRIORITIES, st.floats(0, 9), st.integers(1, 3), WISHES, TEAMS, task=st.sampled_from("78")
)
CHILDREN = st.builds(
    ChildStand,
    team=TEAMS,
    is_draining=st.sampled_from([False, False, True]),
    drained_here=st.sampled_from([False, False, True]),
    sites=st.dictionaries(
        SITES,
        st.builds(SiteSlots, st.sampled_from(["Normal", "Normal", "Draining", "Down"]), st.integers(0, 3), st.integers(0, 3)),
    ),
    jobs=st.dictionaries(SITES, st.dictionaries(PRIORITIES, st.integers(0, 4))),
    free_jobs=st.sampled_from([None, None, -1, 0, 1]),
    negotiating=st.sampled_from([0, 0, 1]),
    held=st.sampled_from([0, 0, 1]),
    most_held=st.sampled_from([None, 1]),
    refused_tasks=st.sampled_from([(), (), ("7",)]),
)


@given(ELEMENTS, CHILDREN)
def test_an_element_alone_is_acquired_exactly_where_nothing_keeps_it(element: Element, child: ChildStand) -> None:
    got = acquire([element], slots(child.sites, "pull"), Random(1), counts=child.jobs, puller=child.puller)
    assert bool(got.elements) == (why_waiting(element, "", child) == [])


@given(st.lists(ELEMENTS, max_size=6, unique_by=lambda element: element.id), CHILDREN, st.randoms(use_true_random=False))
def test_what_a_whole_pull_leaves_has_a_reason_by_the_jobs_that_count_then(
    elements: list[Element], child: ChildStand, dice: Random
) -> None:
    got = acquire(elements, slots(child.sites, "pull"), dice, counts=child.jobs, puller=child.puller)
    taken = {element.id for element, _ in got.elements}
    later = replace(child, jobs=got.counts)
    assert all(why_waiting(element, "", later) for element in elements if element.id not in taken)
