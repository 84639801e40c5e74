"""Elements: the state that follows from them, versions that meet, where they may run, and which ones a broker acquires."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.elements.acquisition import Element, Puller, acquire
from workqueues.rules.elements.course import Conflict, ElementVersion, inbox_state, merged
from workqueues.rules.elements.element_sites import SiteWishes, possible_sites
from workqueues.rules.elements.slices import event_slices, jobs_of_dataset
from workqueues.states.elements import ELEMENT

STATES = st.sampled_from(ELEMENT.course)
SITES = st.sets(st.sampled_from("ABCD"))
PLACES = st.dictionaries(st.sampled_from(["x", "y"]), SITES, max_size=2)


@pytest.mark.parametrize(
    ("elements", "own", "state"),
    [
        (["Negotiating", "Negotiating"], "Acquired", "Acquired"),
        (["Negotiating", "Done"], None, "Acquired"),
        (["Running", "Done", "Available"], "Acquired", "Running"),
        (["CancelRequested", "Running"], "Running", "CancelRequested"),
        (["Available", "Available"], "Running", "Running"),
        ([], None, None),
    ],
)
def test_the_inbox_element_follows_its_elements(elements: list[str], own: str | None, state: str | None) -> None:
    assert inbox_state(elements, own) == state


def test_a_state_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="'Splitting'"):
        inbox_state(["Splitting"], None)


@given(st.lists(STATES, min_size=1), STATES)
def test_the_inbox_element_never_goes_back_and_ends_only_with_all(elements: list[str], own: str) -> None:
    state = inbox_state(elements, own)
    assert state is not None
    assert ELEMENT.course.index(state) >= ELEMENT.course.index(own)
    if own not in ELEMENT.final and state in ELEMENT.final:
        assert all(each in ELEMENT.final for each in elements)


VERSIONS = st.builds(ElementVersion, STATES, st.integers(0, 100), st.integers(0, 100), st.integers(0, 9), inputs=PLACES)


@given(VERSIONS, VERSIONS, VERSIONS)
def test_versions_merge_to_one_in_any_grouping(a: ElementVersion, b: ElementVersion, c: ElementVersion) -> None:
    one = merged([a, merged([b, c])])
    assert one == merged([merged([a, b]), c]) == merged([a, b, c])
    assert merged([one, a, b, c]) == one
    assert one.percent_complete == max(a.percent_complete, b.percent_complete, c.percent_complete)


def test_versions_that_differ_in_what_never_changes_are_in_conflict() -> None:
    one, other = (ElementVersion("Available", fixed={"Jobs": n, "Task": 7}) for n in (3, 4))
    with pytest.raises(Conflict, match="Jobs is 3 in one version and 4 in another"):
        merged([one, other])


@given(st.integers(0, 10**6), st.integers(0, 5000), st.integers(1, 300), st.integers(1, 7))
def test_event_slices_have_each_event_once(first: int, events: int, per_job: int, jobs: int) -> None:
    slices = list(event_slices(first, events, per_job, jobs))
    assert [n for cut in slices for n in range(cut.first, cut.last + 1)] == list(range(first, first + events))
    assert all(cut.jobs <= jobs and cut.jobs == jobs_of_dataset(cut.last - cut.first + 1, per_job) for cut in slices)


@pytest.mark.parametrize("size", [0, -1])
def test_jobs_of_nothing_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        jobs_of_dataset(10, size)
    with pytest.raises(ValueError, match="at least one"):
        list(event_slices(0, 10, size, 1))


WISHES = st.builds(
    SiteWishes, SITES, SITES, PLACES, PLACES, PLACES, needs_parents=st.booleans(), trusts_sites=st.booleans(),
    trusts_pileup_sites=st.booleans(),
)  # fmt: skip


@given(WISHES)
def test_an_element_goes_where_its_lists_and_all_of_its_data_are(wishes: SiteWishes) -> None:
    local = list(wishes.inputs.values()) * (not wishes.trusts_sites)
    local += list(wishes.parents.values()) * (wishes.needs_parents and not wishes.trusts_sites)
    local += list(wishes.pileup.values()) * (not wishes.trusts_pileup_sites)
    assert possible_sites(wishes) == {
        site for site in "ABCD" if site in wishes.included and site not in wishes.excluded and all(site in each for each in local)
    }


ELEMENTS = st.builds(
    Element, st.uuids().map(str), st.integers(0, 3), st.integers(0, 3), st.integers(1, 20), st.builds(SiteWishes, SITES),
    team=st.sampled_from(["", "a", "b"]), state=st.sampled_from(["Available", "Available", "Running"]),
)  # fmt: skip
COUNTS = st.dictionaries(st.sampled_from("ABCD"), st.dictionaries(st.integers(0, 3), st.integers(0, 30), max_size=2), max_size=3)


@given(
    st.lists(ELEMENTS, max_size=12), st.dictionaries(st.sampled_from("ABCD"), st.integers(-5, 40)), COUNTS,
    st.sampled_from(["", "a"]), st.none() | st.integers(0, 5), st.randoms(use_true_random=False),
)  # fmt: skip
def test_acquisition_is_the_walk_of_the_document(
    elements: list[Element],
    slots: dict[str, int],
    counts: dict[str, dict[float, float]],
    team: str,
    most: int | None,
    dice: Random,
) -> None:
    got = acquire(elements, slots, dice, counts=counts, puller=Puller(team), most=most)

    jobs = [(site, priority, n) for site, some in counts.items() for priority, n in some.items()]
    taken = {element.id: site for element, site in got.elements}
    order = []
    for priority in sorted({one.priority for one in elements}, reverse=True):
        for one in sorted((one for one in elements if one.priority == priority), key=lambda one: one.created):
            if one.state != "Available" or {one.team, team} == {"a", "b"}:
                assert one.id not in taken
                continue
            free = [
                s
                for s in one.wishes.included
                if s in slots and sum(n for at, p, n in jobs if at == s and p >= priority) < slots[s]
            ]
            if one.id in taken:
                assert taken[one.id] in free
                order.append(one.id)
                jobs.append((taken[one.id], priority, one.jobs))
            else:
                assert not free or len(order) == most
    assert list(taken) == order


@pytest.mark.parametrize("puller", [Puller(is_draining=True), Puller(negotiating=1), Puller(free_jobs=0), Puller(free_jobs=-3)])
def test_a_broker_that_drains_or_has_unconfirmed_elements_or_is_full_gets_nothing(puller: Puller) -> None:
    element = Element("e", 9, 0, 1, SiteWishes(["A"]))
    assert acquire([element], {"A": 10}, Random(0)).elements == [(element, "A")]
    assert acquire([element], {"A": 10}, Random(0), puller=puller).elements == []
