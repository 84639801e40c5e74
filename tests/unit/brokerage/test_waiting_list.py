"""What a pilot is offered of what waits at its queue, and in which order."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.dispatch import waiting_list
from brokerage.rules.dispatch.dispatch_policy import FIRST_JOB, DispatchPolicy, Turn, dispatch_order
from brokerage.rules.dispatch.policies import Dirac, Panda
from brokerage.rules.dispatch.requirement import AMOUNTS, CONDITIONS, NO_HITS, NONE, Hits, Requirement, Resource, fits
from brokerage.rules.dispatch.requirement_index import ON_BITS, ON_BITS_OF_PLACE, RequirementIndex
from brokerage.rules.dispatch.resource import NO_TIME, Amounts, Described, Description, InvalidResource, Place, described, names
from brokerage.rules.dispatch.waiting_list import Unit, WaitingList, WaitingQueue
from brokerage.rules.dispatch.why_nothing import why_nothing

PILOT = Resource("Q", cores=4, memory_mb=8000, disk_mb=10_000, walltime_s=3600, vo="atlas")
NEED = Requirement("Q", vo="atlas")


def ids(waiting: list[WaitingQueue], pilot: Resource = PILOT, **hits: frozenset[str]) -> list[int]:
    return [one.id for one in WaitingList(waiting).fitting(pilot, hits)]


@pytest.mark.parametrize(
    ("requirement", "fitting"),
    [
        (Requirement("Q", 4, 8000, 10_000, 3600, "atlas"), True),
        (Requirement("Q", 0, 0, 0, 0, "atlas"), True),
        (Requirement("R", 4, 8000, 10_000, 3600, "atlas"), False),
        (Requirement("Q", 5, 8000, 10_000, 3600, "atlas"), False),
        (Requirement("Q", 4, 8001, 10_000, 3600, "atlas"), False),
        (Requirement("Q", 4, 8000, 10_001, 3600, "atlas"), False),
        (Requirement("Q", 4, 8000, 10_000, 3601, "atlas"), False),
        (Requirement("Q", 4, 8000, 10_000, 3600, "belle"), False),
        (Requirement("", vo="atlas", queues=frozenset("QR")), True),
        (Requirement("", vo="atlas", queues=frozenset("RS")), False),
    ],
)
def test_a_job_runs_only_where_everything_it_needs_is_left(requirement: Requirement, fitting: bool) -> None:
    assert ids([WaitingQueue(1, requirement, 500)]) == ([1] if fitting else [])


def test_what_a_pilot_does_not_know_sets_no_condition() -> None:
    huge = Requirement("Q", 64, 999_999, 999_999, 999_999, "belle")
    assert ids([WaitingQueue(1, huge, 500)], Resource("Q", cores=0)) == [1]


SIZES = st.sampled_from([0, 1, 3999, 4000, 4001, 10**9])
VOS = st.sampled_from(["", "atlas", "belle"])
SETS = st.frozensets(st.sampled_from(["a", "b", "c"]), max_size=2)
NAMES = st.sampled_from(["", "a", "b"])
needs = st.builds(
    Requirement, st.sampled_from(["", "Q", "R"]), SIZES, SIZES, SIZES, SIZES, VOS, cpu_time_s=SIZES, owner=NAMES,
    owner_group=NAMES, setup=NAMES, queues=st.frozensets(st.sampled_from("QR")), sites=SETS, banned_sites=SETS, grid_ces=SETS,
    platforms=SETS, pilot_types=SETS, job_types=SETS, tags=SETS, stations=SETS,
)  # fmt: skip
maybe = st.none() | SETS
pilots = st.builds(
    Resource, st.sampled_from("QR"), SIZES, SIZES, SIZES, SIZES, VOS,
    cpu_time_s=SIZES | st.just(NO_TIME), owners=SETS, owner_groups=SETS,
    sharing_groups=SETS, setup=NAMES, sites=maybe, grid_ces=maybe, platforms=maybe, pilot_types=maybe, job_types=maybe,
    tags=maybe, stations=maybe, required_tags=SETS, banned_sites=SETS, banned_tags=SETS, banned_platforms=SETS,
    banned_grid_ces=SETS, banned_job_types=SETS,
)  # fmt: skip
limits = st.dictionaries(st.sampled_from(["owner", "tags", "job_types", "colour"]), SETS, max_size=2)


@given(st.lists(needs, max_size=12), pilots, limits)
def test_a_pilot_is_offered_just_the_work_that_suits_it(
    requirements: list[Requirement], pilot: Resource, hits: Mapping[str, frozenset[str]]
) -> None:
    waiting = [WaitingQueue(i, requirement, 1) for i, requirement in enumerate(requirements)]
    assert sorted(ids(waiting, pilot, **hits)) == [one.id for one in waiting if fits(one.requirement, pilot, hits)]


@pytest.mark.parametrize("name", [name for name in CONDITIONS if name not in AMOUNTS])
@given(data=st.data())
def test_each_condition_says_of_many_at_once_what_it_says_of_each(name: str, data: st.DataObject) -> None:
    requirements, pilot = data.draw(st.lists(needs, max_size=12)), data.draw(pilots)
    index = RequirementIndex()
    index.places(dict(enumerate(requirements)))
    bits = (ON_BITS_OF_PLACE if name in ON_BITS_OF_PLACE else ON_BITS)[name](index, pilot)
    assert [bool(bits >> place & 1) for place in range(12)] == [
        CONDITIONS[name](requirements[place], pilot) if place < len(requirements) else False for place in range(12)
    ]


@given(st.lists(needs, max_size=12), st.lists(pilots, min_size=1, max_size=3), st.integers(0, 12))
def test_what_is_kept_of_earlier_readings_changes_no_offer(
    requirements: list[Requirement], some_pilots: list[Resource], before: int
) -> None:
    index = RequirementIndex()
    waiting = [WaitingQueue(i, requirement, 1) for i, requirement in enumerate(requirements)]
    for reading in (waiting[:before], waiting, waiting[before:], waiting[::-1]):
        read = WaitingList(reading, index)
        for pilot in some_pilots:
            offered = sorted(one.id for one in read.fitting(pilot))
            assert offered == sorted(one.id for one in reading if fits(one.requirement, pilot))


@given(st.lists(st.tuples(st.lists(needs, max_size=12), pilots, pilots), min_size=2, max_size=4))
def test_lists_of_several_queues_share_what_they_know(of_queues: list[tuple[list[Requirement], Resource, Resource]]) -> None:
    index, number, lists = RequirementIndex(), count(), list[tuple[list[WaitingQueue], WaitingList]]()
    for requirements, *some_pilots in of_queues:
        rows = [WaitingQueue(next(number), requirement, 1) for requirement in requirements]
        lists.append((rows, WaitingList(rows, index)))
        for pilot in some_pilots:
            for asked, read in lists:
                offered = sorted(one.id for one in read.fitting(pilot))
                assert offered == [one.id for one in asked if fits(one.requirement, pilot)]
                elsewhere = pilot._replace(queue="", sites=None, stations=None)
                offered = sorted(one.id for one in read.fitting(elsewhere))
                assert offered == [one.id for one in asked if fits(one.requirement, elsewhere)]


@given(
    st.lists(needs, min_size=1, max_size=12),
    st.lists(pilots, min_size=1, max_size=3),
    st.lists(st.sets(st.integers(0, 11), max_size=4), max_size=5),
)
def test_a_list_that_follows_another_tells_what_one_made_anew_tells(
    requirements: list[Requirement], some_pilots: list[Resource], gone: list[set[int]]
) -> None:
    """Task queues run out of jobs, come back with others, and a few of them at a time are drained between two readings."""
    index, before = RequirementIndex(), None
    units = [Unit("atlas"), Unit("belle", "leaf"), Unit("belle", "")]
    for number, without in enumerate([set[int](), *gone]):
        reading = [
            WaitingQueue(i, requirement, (i * 7 + number) % 5, i + number, units[i % 3])
            for i, requirement in enumerate(requirements)
            if i not in without
        ]
        follows, anew = WaitingList(reading, index, before), WaitingList(reading)
        assert follows.rows == anew.rows
        for pilot in some_pilots:
            assert follows.suits(pilot) == anew.suits(pilot)
            assert why_nothing(follows, pilot, [], closely=True) == why_nothing(anew, pilot, [], closely=True)
            one, other = follows.fitting(pilot), anew.fitting(pilot)
            assert [*one] == [*other]
            assert {*other.units()} <= {*one.units()}
            for asked in (units, units[:1], units[1:]):
                here = [unit for unit in asked if unit in one.units()]
                there = [unit for unit in asked if unit in other.units()]
                assert [*one.of_units(here)] == [*other.of_units(there)]
                assert [*one.only([unit.vo for unit in asked])] == [*other.only([unit.vo for unit in asked])]
            assert [row for some in one.by_cpu_class(int) for row in some] == [
                row for some in other.by_cpu_class(int) for row in some
            ]
        for row in reading[number : number + 1]:
            follows.drained(row)
        before = follows


def test_what_suits_whom_is_known_still_when_a_few_task_queues_have_no_job_any_more() -> None:
    index, rows = RequirementIndex(), [WaitingQueue(n, NEED, 500, n) for n in range(8)]
    first = WaitingList(rows, index)
    few_gone = WaitingList(rows[2:], index, first)
    many_gone = WaitingList(rows[3:], index, few_gone)
    one_new = WaitingList([*rows, WaitingQueue(8, NEED, 500, 8)], index, first)
    moved = WaitingList([rows[0]._replace(unit=Unit("atlas", "leaf")), *rows[1:]], index, first)
    assert few_gone.members is first.members
    assert all(one.members is not first.members for one in (many_gone, one_new, moved))


LIMITS = st.just(NO_HITS) | limits


@given(
    st.lists(needs, max_size=12), st.lists(st.tuples(pilots, SIZES, LIMITS), min_size=1, max_size=6), st.sets(st.integers(0, 11))
)
def test_pilots_that_ask_one_list_are_offered_what_they_would_be_offered_alone(
    requirements: list[Requirement], asked: list[tuple[Resource, int, Hits]], drained: set[int]
) -> None:
    """Also where they differ only in what is left of their slots, and task queues are drained between two asks."""
    waiting = [WaitingQueue(i, requirement, i % 3) for i, requirement in enumerate(requirements)]
    one_list, gone = WaitingList(waiting), set[int]()
    asks = [(each, hits) for pilot, size, hits in asked for each in (pilot, pilot._replace(walltime_s=size, cpu_time_s=size))]
    for number, (pilot, hits) in enumerate(asks + asks):
        suiting = {one.id for one in waiting if one.id not in gone and fits(one.requirement, pilot, hits)}
        fitting = one_list.fitting(pilot, hits)
        assert {one.id for one in fitting} == suiting
        assert [one.id for one in fitting.of_units(fitting.units())] == [
            one.id for one in sorted(waiting, key=lambda one: one.turn) if one.id in suiting
        ]
        for one in waiting:
            if one.id in drained and one.id <= number:
                one_list.drained(one)
                gone.add(one.id)


@given(st.lists(pilots, min_size=1, max_size=4))
def test_a_kind_of_resource_is_settled_once_and_its_amounts_at_every_ask(some: list[Resource]) -> None:
    known = Described()
    for number, pilot in enumerate(some + some):
        told: dict[str, Any] = {name: value for name, value in pilot._asdict().items() if isinstance(value, frozenset)}
        told["required_tags"] = NONE
        told.pop("sites", None)
        here: dict[str, Any] = {"queue": f"Q{number}", "sites": {f"SITE{number}"}, "stations": told.pop("stations", NONE)}
        said = Description(cpu_time_s=number % 3, cores=number, memory_mb=pilot.memory_mb, **told, **here)
        amounts = Amounts(number, pilot.memory_mb, 0, 0, number % 3)
        place = Place(here["queue"], frozenset(here["sites"]), names(here["stations"]))
        assert known.resource(tuple(told.items()), partial(Description, **told), amounts, place) == described(said)
    with pytest.raises(InvalidResource, match="negative"):
        known.resource("new", Description, Amounts(1, 0, 0, 0, -1))


def turn(places: Mapping[str, float], seed: int = 1) -> Turn:
    return Turn(lambda unit: places.get(unit.gshare, 1.0), Random(seed), {})


def order(waiting: list[WaitingQueue], policy: DispatchPolicy, places: Mapping[str, float]) -> list[int]:
    fitting = WaitingList(waiting).fitting(PILOT)
    return [one.id for one, _ in dispatch_order(fitting, lambda vo: policy, turn(places))]


def test_the_share_comes_first_then_the_priority_then_the_oldest() -> None:
    first, later = Unit("atlas", "first"), Unit("atlas", "later")
    waiting = [
        WaitingQueue(1, NEED, 500, 72, later),
        WaitingQueue(2, NEED, 400, 74, first),
        WaitingQueue(3, NEED, 900, 73, later),
        WaitingQueue(4, NEED, 500, 71, later),
    ]
    assert order(waiting, Panda(), {"first": 0.0, "later": 0.5}) == [2, 3, 4, 1]


def test_shares_that_stand_equally_are_served_by_priority_and_age_together() -> None:
    one, other = Unit("atlas", "one"), Unit("atlas", "other")
    waiting = [
        WaitingQueue(1, NEED, 500, 5, one),
        WaitingQueue(2, NEED, 700, 9, other),
        WaitingQueue(3, NEED, 500, 4, other),
        WaitingQueue(4, NEED, 600, 8, one),
    ]
    assert order(waiting, Panda(), {"one": 0.5, "other": 0.5}) == [2, 4, 3, 1]


def test_nobody_asks_where_a_single_unit_stands() -> None:
    """After each job that may put its whole tree in order anew."""

    def places(_unit: Unit) -> float:
        raise AssertionError("there is none beside it")

    one = Unit("atlas", "one")
    fitting = WaitingList([WaitingQueue(1, NEED, 500, 5, one), WaitingQueue(2, NEED, 700, 9, one)]).fitting(PILOT)
    assert [waiting.id for waiting in Panda().order(fitting, Turn(places, Random(1), {}))] == [2, 1]


@pytest.mark.parametrize("priority", [1, 500, 900])
def test_vos_take_turns_whatever_their_shares_priorities_and_ages(priority: int) -> None:
    """A VO without shares beside one whose leaf is always served first has every second turn, and so has a VO with shares."""
    waiting = [
        WaitingQueue(1, NEED, 500, 1, Unit("atlas", "leaf")),
        WaitingQueue(2, NEED, 500, 2, Unit("atlas", "last")),
        WaitingQueue(3, NEED._replace(vo="belle"), priority, 3, Unit("belle")),
        WaitingQueue(4, NEED._replace(vo="cms"), 500, 4, Unit("cms", "leaf")),
    ]
    places, fitting = {"leaf": 0.0, "last": 0.5, "": 0.5}, WaitingList(waiting).fitting(PILOT._replace(vo=""))
    dice = Random(15)
    turns = [Turn(lambda unit: places[unit.gshare], dice, {}) for _ in range(3000)]
    firsts = Counter(next(dispatch_order(fitting, lambda vo: Panda(), one))[0].id for one in turns)
    assert set(firsts) == {1, 3, 4}
    assert all(abs(n - 1000) < 100 for n in firsts.values())


def test_a_task_queue_without_a_job_is_offered_once() -> None:
    waiting = WaitingList([WaitingQueue(1, NEED, 500), WaitingQueue(2, NEED, 400)])
    first = next(iter(waiting.fitting(PILOT)))
    waiting.drained(first)
    assert [one.id for one in waiting.fitting(PILOT)] == [2]


def test_a_list_goes_with_the_last_who_uses_it_whoever_asked_it() -> None:
    """In a ring with what it keeps of asks it would stay until the next look for rings, and each reading makes a list."""
    waiting = WaitingList([WaitingQueue(1, NEED, 500), WaitingQueue(2, NEED, 400)])
    fitting = waiting.fitting(PILOT)
    assert len([*fitting.of_units(fitting.units())]) == 2
    used = weakref.ref(waiting), weakref.ref(fitting)
    del waiting, fitting
    assert [each() for each in used] == [None, None]


@pytest.mark.parametrize("at_once", [1, 2, waiting_list.AT_ONCE])
def test_task_queues_that_are_drained_are_not_walked_through_at_every_ask(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(waiting_list, "AT_ONCE", at_once)
    rows = [WaitingQueue(id_, NEED, 500, id_) for id_ in range(50)]
    waiting = WaitingList(rows)
    left = list(range(50))
    for id_ in (0, 1, 7, 2, 3, 49):
        waiting.drained(rows[id_])
        left.remove(id_)
        for _ in range(2):
            fitting = waiting.fitting(PILOT)
            assert [one.id for one in fitting.of_units(fitting.units())] == left
    assert fitting._n_drained == 3, "of those behind the first: 1, 2, 3; 7 comes behind others that wait"


def test_a_list_keeps_less_of_asks_where_many_task_queues_suit_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_list, "MOST_PLACES", 5)
    waiting = WaitingList([WaitingQueue(id_, NEED, 500) for id_ in (1, 2)])
    tagged = [PILOT._replace(tags=frozenset([tag])) for tag in "abc"]
    kept = [weakref.ref(waiting.fitting(pilot)) for pilot in tagged]
    assert [one() is None for one in kept] == [True, True, False]
    assert [len([*waiting.fitting(pilot)]) for pilot in tagged] == [2, 2, 2]


def test_under_dirac_the_highest_class_of_cpu_time_comes_first_and_the_others_after_it() -> None:
    waiting = [
        WaitingQueue(1, NEED._replace(cpu_time_s=500), 1, weight=1000.0),
        WaitingQueue(2, NEED._replace(cpu_time_s=5000), 1, weight=1.0),
        WaitingQueue(3, NEED._replace(cpu_time_s=5000), 1, weight=1.0),
    ]
    orders = {tuple(order_of(waiting, seed)) for seed in range(30)}
    assert orders == {(2, 3, 1), (3, 2, 1)}


def order_of(waiting: list[WaitingQueue], seed: int) -> list[int]:
    fitting = WaitingList(waiting).fitting(PILOT)
    return [one.id for one, _ in dispatch_order(fitting, lambda vo: Dirac(), turn({}, seed))]


def test_under_dirac_one_of_the_ten_oldest_of_a_user_priority_is_taken() -> None:
    waiting = WaitingQueue(1, NEED, 9)
    windows = {Dirac().job_window(waiting, turn({}, seed), lambda id_: {1: 20, 9: 20}) for seed in range(60)}
    assert {(window.priority, window.size) for window in windows} == {(1, 10), (9, 10)}
    assert Dirac().job_window(waiting, turn({}), lambda id_: {}) == FIRST_JOB


def test_policies_of_several_vos_take_turns_and_a_vo_without_policy_waits() -> None:
    waiting = [
        WaitingQueue(1, NEED, 1, unit=Unit("atlas")),
        WaitingQueue(2, NEED._replace(vo="belle"), 1, unit=Unit("belle")),
        WaitingQueue(3, NEED._replace(vo="cms"), 1, unit=Unit("cms")),
    ]
    policies: Mapping[str, DispatchPolicy] = {"atlas": Panda(), "belle": Dirac()}
    fitting = WaitingList(waiting).fitting(PILOT._replace(vo=""))
    orders = {tuple(one.id for one, _ in dispatch_order(fitting, policies.get, turn({}, seed))) for seed in range(20)}
    assert orders == {(1, 2), (2, 1)}
    alone: Mapping[str, DispatchPolicy] = {"belle": Panda()}
    assert [one.id for one, _ in dispatch_order(fitting, alone.get, turn({}))] == [2], "no other policy takes its place"


def test_a_pilot_that_gets_nothing_is_told_what_the_closest_work_needs() -> None:
    gpu = Requirement("Q", 1, vo="atlas", tags=frozenset(["GPU"]))
    far = Requirement("Q", 64, vo="belle", tags=frozenset(["GPU"]))
    waiting = WaitingList([WaitingQueue(7, far, 900), WaitingQueue(8, gpu, 500)])
    told = why_nothing(waiting, PILOT, [], closely=True)
    assert (told.reason, told.task_queue) == ("no_fit", 8)
    assert told.sentence == (
        "jobs wait here, and none suits the pilot; closest is task queue 8: tags: it needs GPU, the pilot has none"
    )
    assert why_nothing(WaitingList([]), PILOT, [], closely=True).reason == "no_job"
    foreign = why_nothing(WaitingList([WaitingQueue(7, far, 900)]), PILOT, [], closely=True)
    assert foreign.reason == "no_job"  # of work of other VOs a pilot is told nothing
    held = waiting.fitting(PILOT._replace(tags=frozenset(["GPU"])), {"tags": frozenset(["GPU"])}).held()
    limited = why_nothing(waiting, PILOT, held, closely=True)
    assert (limited.reason, limited.limits) == ("limits", ["tags GPU"])


def test_of_work_that_is_equally_close_the_first_to_be_served_is_told() -> None:
    gpu, fast = (NEED._replace(tags=frozenset([tag])) for tag in ("GPU", "Fast"))
    waiting = WaitingList([WaitingQueue(1, fast, 500), WaitingQueue(2, gpu, 900), WaitingQueue(3, fast, 100)])
    assert why_nothing(waiting, PILOT, [], closely=True).task_queue == 2


def test_a_long_list_of_which_little_suits_each_keeps_what_suits_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept for resources that differ in amounts has a bound of its own."""
    monkeypatch.setattr(waiting_list, "MOST_PLACES", 50)
    waiting = WaitingList([WaitingQueue(n, NEED._replace(owner=f"user{n}"), 500) for n in range(400)])
    private = [PILOT._replace(owners=frozenset([f"user{n}"])) for n in range(20)]
    first = [waiting.members.suiting(pilot) for pilot in private]
    assert all(waiting.members.suiting(pilot) is known for pilot, known in zip(private, first, strict=True))


def test_what_is_kept_of_resources_that_differ_in_amounts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = WaitingList([WaitingQueue(n, NEED._replace(owner=f"user{n}"), 500) for n in range(100)])
    for most_asked, most_flags, kept in ((7, 100_000, 7), (1000, 1000, 10)):
        monkeypatch.setattr(waiting_list, "MOST_ASKED", most_asked)
        monkeypatch.setattr(waiting_list, "MOST_FLAGS", most_flags)
        for n in range(100):
            pilot = PILOT._replace(owners=frozenset([f"user{n}"]))
            assert [one.id for one in waiting.fitting(pilot)] == [n]
            assert len(waiting.members._described) <= kept
