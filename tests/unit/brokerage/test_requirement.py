"""What suits a resource: every row of the peers' tests, each kind of demand, and that what is told of a misfit is the truth."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerage.rules.dispatch.requirement import (
    AMOUNTS,
    SETS,
    Requirement,
    Resource,
    at_limit,
    closest,
    fits,
    misfits,
    values_of,
)
from brokerage.rules.dispatch.resource import Description, InvalidResource, described, listed
from brokerage.rules.facts.cpu_classes import DOCUMENT, LADDER, classes, cpu_class, cpu_time_of, on_ladder

CERN, IN2P3, TEST = "LCG.CERN.ch", "CLOUD.IN2P3.fr", "DIRAC.Test.org"
MP, SP = "MultiProcessor", "SingleProcessor"


def job(**lists: list[str] | str | int) -> Requirement:
    """A job of 5000 s, which waits in the class of 21600 s, with what it lists."""
    values: dict[str, Any] = {"owner": "userName", "owner_group": "myGroup", "cpu_time_s": 21600}
    values |= {k: listed(k, v) if isinstance(v, list) else v for k, v in lists.items()}
    return Requirement(**values)


SITES = {"cern": job(sites=[CERN]), "in2p3": job(sites=[IN2P3]), "both": job(sites=[CERN, IN2P3])}
BANNED = {"1": job(banned_sites=[CERN, IN2P3]), "2": job(banned_sites=[IN2P3, TEST])}
FOUR = {
    "1": job(platforms=["centos7"]),
    "3": job(platforms=["ubuntu"]),
    "4": job(platforms=["centos7", "slc6"]),
    "5": job(platforms=["debian", "ubuntu"]),
}
FIVE = {**FOUR, "6": job()}
TAGS = {
    "1": job(tags=[MP]),
    "2": job(tags=[SP]),
    "3": job(tags=[SP, MP]),
    "4": job(tags=[MP, "GPU"]),
    "5": job(),
    "6": job(tags=[MP, "17Processors"]),
}
MIXED = {
    "1": job(platforms=["c7"]),
    "2": job(tags=[MP]),
    "3": job(platforms=["c7"], tags=[MP]),
    "4": job(platforms=["slc6"], tags=[MP]),
}
COMPLEX = {
    "1": job(owner_group="admin", sites=["S1", "S2"], platforms=["c7"]),
    "2": job(owner_group="prod", sites=["S1"], platforms=["slc6", "c7"]),
    "3": job(owner_group="user", sites=["S2"], platforms=["slc6", "c7"]),
    "4": job(owner_group="user", sites=["S1", "S2"], platforms=["ubuntu"]),
}
MORE = {**COMPLEX, "5": job(owner_group="user", sites=["S1", "S2"])}
LONG = {"123": job(cpu_time_s=86400)}
APU, PU, ANY = ["admin", "prod", "user"], ["prod", "user"], ["ANY"]
OLD, ALL_DAY = ["slc6", "c7"], 9_999_999

ROWS: list[tuple[dict[str, Requirement], dict[str, Any], str]] = [
    (SITES, {}, "cern in2p3 both"),
    (SITES, {"sites": [CERN]}, "cern both"),
    (SITES, {"sites": [IN2P3]}, "in2p3 both"),
    (BANNED, {}, "1 2"),
    (BANNED, {"platforms": ["centos7"]}, "1 2"),
    (BANNED, {"sites": [TEST]}, "1"),
    (BANNED, {"sites": [CERN]}, "2"),
    (BANNED, {"sites": [IN2P3]}, ""),
    (FOUR, {"platforms": ["centos7"]}, "1 4"),
    (FOUR, {"platforms": ["ubuntu"]}, "3 5"),
    (FOUR, {"platforms": ["slc6"]}, "4"),
    (FOUR, {"platforms": ["slc5"]}, ""),
    (FOUR, {"platforms": ANY}, "1 3 4 5"),
    (FIVE, {"platforms": ANY}, "1 3 4 5 6"),
    (FIVE, {}, "1 3 4 5 6"),
    (FIVE, {"platforms": ["slc5"]}, "6"),
    (FIVE, {"platforms": ["slc6"]}, "4 6"),
    (FIVE, {"platforms": ["slc5", "slc6"]}, "4 6"),
    (FIVE, {"platforms": ["slc5", "slc6", "ubuntu"]}, "3 4 5 6"),
    (FIVE, {"platforms": ["centos8"]}, "6"),
    (TAGS, {"tags": ANY}, "1 2 3 4 5 6"),
    (TAGS, {"tags": ["aNy"]}, "1 2 3 4 5 6"),
    (TAGS, {"tags": [MP, "aNy"]}, "1 2 3 4 5 6"),
    (TAGS, {}, "5"),
    (TAGS, {"tags": [""]}, "5"),
    (TAGS, {"tags": []}, "5"),
    (TAGS, {"tags": [MP]}, "1 5"),
    (TAGS, {"tags": [MP, "GPU"]}, "1 4 5"),
    (TAGS, {"tags": [MP], "required_tags": [MP]}, "1"),
    (TAGS, {"tags": [MP, "GPU"], "required_tags": [MP]}, "1 4"),
    (TAGS, {"tags": [MP, "17Processors", "20Processors", "4Processors"], "required_tags": [MP]}, "1 6"),
    (TAGS, {"tags": ["4Processors"]}, "5"),
    (MIXED, {"platforms": ANY}, "1"),
    (MIXED, {"platforms": ANY, "tags": ANY}, "1 2 3 4"),
    (MIXED, {"platforms": ["c7"], "tags": [MP]}, "1 2 3"),
    (COMPLEX, {"cpu_time_s": ALL_DAY, "platforms": OLD, "owner_groups": APU, "sites": ANY}, "1 2 3"),
    (COMPLEX, {"cpu_time_s": ALL_DAY, "platforms": ["ubuntu"], "tags": [], "owner_groups": APU, "sites": ANY}, "4"),
    (COMPLEX, {"cpu_time_s": ALL_DAY, "platforms": [*OLD, "ubuntu"], "owner_groups": PU, "sites": ANY}, "2 3 4"),
    (COMPLEX, {"cpu_time_s": ALL_DAY, "platforms": OLD, "owner_groups": PU, "sites": ANY}, "2 3"),
    (COMPLEX, {"cpu_time_s": ALL_DAY, "platforms": OLD, "owner_groups": PU}, "2 3"),
    (COMPLEX, {"cpu_time_s": ALL_DAY, "platforms": OLD, "owner_groups": PU, "sites": ["S1", "S2"]}, "2 3"),
    (COMPLEX, {"cpu_time_s": ALL_DAY, "platforms": OLD, "owner_groups": PU, "sites": ["S1"]}, "2"),
    (COMPLEX, {"cpu_time_s": 10, "platforms": OLD, "owner_groups": PU, "sites": ["S1"]}, ""),
    (COMPLEX, {"cpu_time_s": ALL_DAY, "platforms": ANY, "owner_groups": APU, "sites": ANY}, "1 2 3 4"),
    (MORE, {"cpu_time_s": ALL_DAY, "platforms": OLD, "owner_groups": APU, "sites": ANY}, "1 2 3 5"),
    (MORE, {"cpu_time_s": ALL_DAY, "platforms": ["ubuntu"], "owner_groups": APU, "sites": ["Any"]}, "4 5"),
    (MORE, {"cpu_time_s": ALL_DAY, "platforms": ["ubuntu"], "tags": [], "owner_groups": APU, "sites": ["Any"]}, "4 5"),
    (MORE, {"cpu_time_s": ALL_DAY, "platforms": ["ubuntu"], "owner_groups": APU, "sites": ["Any", "S1"]}, "4 5"),
    (MORE, {"cpu_time_s": ALL_DAY, "platforms": ["ubuntu"], "owner_groups": APU, "sites": ANY, "tags": ["SomeTAG"]}, "4 5"),
    (LONG, {"cpu_time_s": 300_000}, "123"),
    (LONG, {}, ""),
]
"""Task queues, what a pilot offers (50000 s if not said), and those that suit it: facts on matching a10, row for row."""


@pytest.mark.parametrize(("waiting", "offer", "suiting"), ROWS)
def test_a_pilot_is_suited_by_what_the_peers_tests_say(
    waiting: dict[str, Requirement], offer: dict[str, Any], suiting: str
) -> None:
    pilot = described(Description(**{"cpu_time_s": 50_000} | offer))
    assert [name for name, need in waiting.items() if fits(need, pilot)] == suiting.split()


@pytest.mark.parametrize(
    ("offer", "field"),
    [
        ({"cpu_time_s": None}, "cpu_time_s"),
        ({"cpu_time_s": -1}, "cpu_time_s"),
        ({"required_tags": [MP]}, "required_tags"),
        ({"required_tags": [MP, "GPU"], "tags": [MP]}, "required_tags"),
        ({"required_tags": [MP], "tags": ANY}, "required_tags"),
        ({"required_tags": [MP], "processors": 1}, "required_tags"),
    ],
)
def test_a_description_that_cannot_be_matched_says_which_field_is_wrong(offer: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidResource) as refused:
        described(Description(**{"cpu_time_s": 1} | offer))
    assert refused.value.field == field


NEED = Requirement(
    "Q", 8, 16_000, 10_000, 3600, "atlas", 5000, "anna", "physics", "prod", **{name: frozenset({"A"}) for name in SETS[1:]}
)
HAS = Resource(
    "Q",
    8,
    16_000,
    10_000,
    3600,
    "atlas",
    5000,
    setup="prod",
    **dict.fromkeys(("grid_ces", "platforms", "pilot_types", "job_types", "tags", "stations"), frozenset({"A"})),
    sites=frozenset({"A", "B"}),
)


@pytest.mark.parametrize(
    ("lacks", "told"),
    [
        ({"queue": "R"}, ("queue", "Q", "R")),
        ({"cores": 7}, ("cores", "8", "7")),
        ({"memory_mb": 15_999}, ("memory_mb", "16000", "15999")),
        ({"disk_mb": 1}, ("disk_mb", "10000", "1")),
        ({"walltime_s": 3599}, ("walltime_s", "3600", "3599")),
        ({"cpu_time_s": -1}, ("cpu_time_s", "5000", "0")),
        ({"vo": "belle"}, ("vo", "atlas", "belle")),
        ({"setup": "test"}, ("setup", "prod", "test")),
        ({"owners": frozenset({"bert"})}, ("owner", "anna of physics", "bert")),
        ({"owner_groups": frozenset({"b", "a"})}, ("owner", "anna of physics", "a, b")),
        ({"sites": frozenset({"B"})}, ("sites", "A", "B")),
        ({"grid_ces": frozenset()}, ("grid_ces", "A", "none")),
        ({"platforms": frozenset({"B"})}, ("platforms", "A", "B")),
        ({"pilot_types": frozenset()}, ("pilot_types", "A", "none")),
        ({"job_types": frozenset({"B"})}, ("job_types", "A", "B")),
        ({"tags": frozenset()}, ("tags", "A", "none")),
        ({"stations": frozenset({"B"})}, ("stations", "A", "B")),
        ({"required_tags": frozenset({"B"})}, ("tags", "A", "only jobs with B")),
        ({"banned_sites": frozenset({"A"})}, ("sites", "A", "not A")),
        ({"banned_tags": frozenset({"A"})}, ("tags", "A", "not A")),
        ({"banned_job_types": frozenset({"A", "B"})}, ("job_types", "A", "not A, B")),
    ],
)
def test_a_misfit_says_what_is_needed_and_what_there_is(lacks: dict[str, Any], told: tuple[str, str, str]) -> None:
    assert misfits(NEED, HAS) == []
    assert misfits(NEED, HAS._replace(**lacks)) == [told]


def test_a_banned_site_is_told_as_the_job_says_it() -> None:
    assert misfits(job(banned_sites=["A"]), Resource(sites=frozenset({"A"}))) == [("sites", "not A", "A")]


def test_an_open_job_goes_to_the_queues_it_may_go_to() -> None:
    two = Requirement(queues=frozenset({"Q", "R"}))
    assert [fits(two, Resource(queue)) for queue in "QRS"] == [True, True, False]
    assert misfits(two, Resource("S")) == [("queue", "Q, R", "S")]
    assert fits(Requirement(), Resource("S"))


def test_the_closest_lacks_the_fewest_things() -> None:
    pilot = described(Description(queue="Q", cpu_time_s=400, tags=["GPU"]))
    far, near, later = job(queue="Q", tags=["NPU"]), job(queue="Q"), job(queue="Q", setup="x")
    assert closest([far, near, later], pilot) == (near, [("cpu_time_s", "21600", "400")])
    assert closest([], pilot) is None


LIMITED = job(owner="anna", job_types=["Merge", "MC"], setup="prod", memory_mb=1)


@pytest.mark.parametrize(
    ("hits", "told"),
    [
        ({}, ()),
        ({"owner": frozenset({"bert"})}, ()),
        ({"owner": frozenset({"bert", "anna"})}, ("owner anna",)),
        ({"job_types": frozenset({"MC", "Merge", "X"})}, ("job_types MC", "job_types Merge")),
        ({"owner": frozenset({"anna"}), "setup": frozenset({"prod"})}, ("owner anna", "setup prod")),
        ({"platforms": frozenset({"slc6"}), "setup": frozenset({"prod"})}, ("setup prod",)),
        ({"JobGroup": frozenset({"7"}), "memory_mb": frozenset({"1"})}, ()),
    ],
)
def test_a_limit_holds_back_the_task_queues_with_its_value(hits: dict[str, frozenset[str]], told: tuple[str, ...]) -> None:
    pilot = Resource(tags=None)
    assert at_limit(partial(values_of, LIMITED), hits) == told
    assert fits(LIMITED, pilot, hits) is not bool(told)


def test_an_attribute_that_is_empty_or_not_there_has_no_values() -> None:
    assert [values_of(job(), name) for name in ("setup", "sites", "colour", "cores")] == [frozenset()] * 4


@pytest.mark.parametrize(
    ("processors", "suit"),
    [(0, []), (1, ["1"]), (4, ["1", "4", "many"]), (8, ["1", "4", "8", "many"]), (5000, ["1", "4", "8", "many"])],
)
def test_processors_are_tags_that_jobs_ask_for(processors: int, suit: list[str]) -> None:
    waiting = {str(n): job(tags=[f"{n}Processors"]) for n in (1, 4, 8)} | {
        "many": job(tags=[MP]),
        "node": job(tags=["WholeNode"]),
    }
    pilot = Description(cpu_time_s=50_000, processors=processors)
    assert [name for name, need in waiting.items() if fits(need, described(pilot))] == suit
    assert fits(waiting["node"], described(Description(cpu_time_s=50_000, whole_node=True)))
    assert len(described(pilot).tags or ()) <= 1025


def test_a_strict_platform_is_a_demand() -> None:
    loose, strict = (described(Description(cpu_time_s=50_000, strict_platform=strict)) for strict in (False, True))
    assert fits(FOUR["1"], loose)
    assert not fits(FOUR["1"], strict)
    assert fits(job(), strict)


def test_who_needs_no_time_may_go_where_none_is_left() -> None:
    spent = described(Description(cpu_time_s=0))
    assert fits(Requirement(), spent)
    assert not fits(Requirement(cpu_time_s=1), spent)


def test_any_as_a_ban_or_a_required_tag_says_nothing() -> None:
    pilot = described(Description(cpu_time_s=50_000, banned_platforms=["slc6", "any"], required_tags=["ANY"]))
    assert (pilot.banned_platforms, pilot.required_tags) == (frozenset(), frozenset())


def test_classes_of_cpu_time() -> None:
    assert [cpu_class(time) for time in (0, 10, 500, 501, 300_001)] == [500, 500, 500, 5000, 300_000]
    assert classes((10, 20)) == (10, 20)
    assert [classes(wrong) for wrong in (None, (), (0, 5), (20, 10), (5, 5))] == [DOCUMENT] * 5


def test_a_step_of_the_ladder_holds_the_time_and_at_most_a_quarter_more() -> None:
    assert on_ladder(0) == 0
    assert on_ladder(1) == LADDER[0] == 60
    for time in (59, 60, 61, 3600, 86_399.5, 10**9):
        assert time <= on_ladder(time) <= max(60, time * 1.25 + 1)
    assert [on_ladder(100, longest) for longest in (0, 1000, 105, 90)] == [118, 118, 105, 100]


def test_the_cpu_time_of_many_cores_for_long_is_one_that_a_pilot_can_offer() -> None:
    assert [cpu_time_of(*job) for job in ((0, 8), (100, 8), (100, 0), (7 * 86_400, 4096))] == [0, 800, 100, 999_999_999]


NAMES = [frozenset(names) for names in ("", "A", "B", "AB")]
POSSIBLE: dict[str, list[Any]] = {name: [0, 1, 2, 3] for name in AMOUNTS}
POSSIBLE |= {name: ["", "A", "B"] for name in ("queue", "vo", "owner", "owner_group", "setup")}


def sparse(kind: Any, most: int) -> st.SearchStrategy[Any]:
    """Most of what could be said is left out: so that some suit each other and others nearly do."""
    said = [(name, value) for name in kind._fields for value in POSSIBLE.get(name, NAMES)]
    said += [(name, None) for name in kind._fields if kind is Resource and kind._field_defaults[name] is None]
    return st.lists(st.sampled_from(said), max_size=most).map(lambda pairs: kind(**dict(pairs)))


needs, offers = sparse(Requirement, 4), sparse(Resource, 6)


def test_of_those_that_are_tried_below_many_suit_each_other_and_many_do_not() -> None:
    seen = {True: 0, False: 0}

    @settings(max_examples=200, derandomize=True, database=None)
    @given(needs, offers)
    def count(need: Requirement, has: Resource) -> None:
        seen[fits(need, has)] += 1

    count()
    assert min(seen.values()) > 40


@given(needs, offers)
def test_what_does_not_suit_has_a_reason_and_what_suits_has_none(need: Requirement, has: Resource) -> None:
    assert fits(need, has) is (misfits(need, has) == [])


@given(needs, offers)
def test_another_tag_of_the_pilot_never_loses_a_job(need: Requirement, has: Resource) -> None:
    more = has._replace(tags=None if has.tags is None else has.tags | {"C"})
    assert fits(need, more) >= fits(need, has)


@given(needs, offers, st.sampled_from(AMOUNTS))
def test_more_room_never_loses_a_job(need: Requirement, has: Resource, name: str) -> None:
    more = has._replace(**{name: getattr(has, name) and getattr(has, name) + 1})
    assert fits(need, more) >= fits(need, has)


@given(needs, offers, st.sampled_from(SETS))
def test_a_job_that_demands_less_never_suits_fewer_pilots(need: Requirement, has: Resource, name: str) -> None:
    nothing: dict[str, Any] = {name: frozenset()}
    less = need._replace(**nothing)
    assert fits(less, has._replace(required_tags=frozenset())) >= fits(need, has)


@given(needs, offers)
def test_a_group_that_shares_its_jobs_never_loses_one(need: Requirement, has: Resource) -> None:
    assert fits(need, has._replace(sharing_groups=has.owner_groups)) >= fits(need, has)


@given(needs, offers, st.dictionaries(st.sampled_from(["owner", "tags", "sites"]), st.sampled_from(NAMES)))
def test_each_limit_holds_by_itself(need: Requirement, has: Resource, hits: dict[str, frozenset[str]]) -> None:
    alone = all(fits(need, has, {name: frozenset(v)}) for name, values in hits.items() for v in values)
    assert fits(need, has, hits) is (fits(need, has) and alone)
