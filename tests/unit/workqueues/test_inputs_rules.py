"""Attributes of inputs, the order and the events of their files, middle names, arithmetic on command lines."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.jobs import feeding
from workqueues.rules.jobs.arithmetic import MalformedFormula, formula
from workqueues.rules.jobs.dataset_attributes import Attributes, read_attributes
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.file_names import bad_middle_name, fields_of, middle_name
from workqueues.rules.jobs.job_parameters import JobFill, NameTemplate, UnresolvedPlaceholder, compiled_name, fill
from workqueues.rules.jobs.placeholders import MalformedText
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.rules.refine.attributes import input_attributes
from workqueues.rules.refine.name_shapes import shape_of


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, ""),
        ({"attributes": "repeat, nosplit"}, "repeat,nosplit"),
        ({"attributes": "manytime,cvmfs"}, "manytime,cvmfs"),
        ({"ratio": 2, "attributes": "repeat"}, "repeat,ratio=2"),
        ({"attributes": "ratio=0.5"}, "ratio=0.5"),
        ({"ratio": 2, "attributes": "ratio=2.0"}, "ratio=2"),
        ({"ratio": 1}, ""),
        ({"ratio": 1, "eventRatio": 0.25}, "er=0.25"),
        ({"nFilesPerJob": 3, "random": True}, "rd,np=3"),
        ({"reusable": True, "usedup": True, "indexConsistent": True}, "ru,ud,ic"),
        ({"attributes": "reusable,random,usedup,eventRatio=2"}, "ru,rd,ud,er=2"),
        ({"random": False, "attributes": ""}, ""),
    ],
)
def test_attributes_of_an_input(values: dict[str, Any], text: str) -> None:
    assert input_attributes("x", values) == (text, [])


@pytest.mark.parametrize(
    ("values", "rule", "part"),
    [
        ({"attributes": "repaet"}, "unknown", "the nearest known one is repeat"),
        ({"attributes": "repeat=1"}, "unknown", "repeat=1"),
        ({"attributes": "ratio"}, "type", "a number"),
        ({"attributes": "ratio=nan"}, "type", "a number"),
        ({"attributes": "ratio=-2"}, "range", "above 0"),
        ({"attributes": "eventRatio=0"}, "range", "above 0"),
        ({"attributes": "nFilesPerJob=1.5"}, "range", "whole number"),
        ({"attributes": "ratio=2,nosplit"}, "contradiction", "one way only"),
        ({"ratio": 2, "attributes": "ratio=3"}, "contradiction", "2 and 3"),
    ],
)
def test_attributes_that_cannot_be(values: dict[str, Any], rule: str, part: str) -> None:
    _, [fault] = input_attributes("x", values)
    assert fault.rule == rule
    assert part in fault.message


@given(
    st.sets(st.sampled_from(["repeat", "manytime", "cvmfs", "reusable", "random", "usedup", "indexConsistent"])),
    st.one_of(st.none(), st.floats(1e-6, 1e6, allow_nan=False)),
)
def test_what_is_written_is_read_again(flags: set[str], ratio: float | None) -> None:
    words = [*flags, *([f"ratio={ratio!r}"] if ratio is not None else [])]
    text, problems = input_attributes("x", {"attributes": ",".join(words)})
    read = read_attributes(text)
    assert not problems
    assert read.ratio == (1.0 if ratio is None else ratio)
    assert (read.repeat, read.reusable, read.random) == ("repeat" in flags, "reusable" in flags, "random" in flags)
    assert isinstance(read, Attributes)


def made(*events: int | None) -> list[NewFile]:
    return [NewFile(f"f.{i}", n_events=n) for i, n in enumerate(events)]


def test_events_that_count() -> None:
    files = made(10, None)
    assert [f.n_events for f in feeding.counted(files, None, real=True)] == [10, None]
    assert [f.n_events for f in feeding.counted(files, 25, real=False)] == [25, 25]
    assert [f.n_events for f in feeding.counted(files, 25, real=True)] == [10, 25]
    assert [f.n_events for f in feeding.counted(made(0), 25, real=True)] == [0], "an empty file gets no job"


def test_first_events_follow_the_files_before_until_one_is_not_known() -> None:
    assert [f.first_event for f in feeding.numbered(made(10, 5, None, 3), 100)] == [101, 111, 116, None]
    assert [f.first_event for f in feeding.numbered(made(10), None)] == [None]
    assert feeding.events_after(made(10, 5), 100) == 115
    assert feeding.events_after(made(10, None), 100) is None
    assert feeding.events_after(made(1), None) is None


@given(st.lists(st.integers(1, 50), max_size=20), st.integers(1, 300), st.integers(1, 20))
def test_a_wanted_part_has_as_many_events_as_wanted_or_all_there_are(events: list[int], wanted: int, per_job: int) -> None:
    used = feeding.used_part(events, None, wanted)
    cut = feeding.cut_to(made(*events)[:used], wanted)
    assert sum(f.n_events or 0 for f in cut) == min(wanted, sum(events))
    whole = feeding.whole_jobs(cut, per_job)
    assert all(f.n_events and f.n_events % per_job == 0 for f in whole)
    assert sum(f.n_events or 0 for f in cut) - sum(f.n_events or 0 for f in whole) < per_job * max(len(cut), 1)


def test_files_of_one_boundary_and_block_stand_together_those_without_last() -> None:
    files = [
        NewFile(str(i), boundary_id=b, lumi_block_nr=n) for i, (b, n) in enumerate([(2, 1), (None, 1), (1, 2), (1, 1), (2, None)])
    ]
    assert [f.lfn for f in feeding.ordered(files, SplitRules())] == ["0", "1", "2", "3", "4"]
    assert [f.lfn for f in feeding.ordered(files, SplitRules(boundary=3))] == ["2", "3", "0", "4", "1"]
    assert [f.lfn for f in feeding.ordered(files, SplitRules(order_by_lb=True))] == ["0", "1", "3", "2", "4"]
    assert [f.lfn for f in feeding.ordered(files, SplitRules(boundary=1, respect_lb=True))] == ["3", "2", "0", "4", "1"]


@given(st.lists(st.integers(), max_size=20, unique=True), st.integers(0, 100))
def test_a_shuffle_loses_nothing_and_can_be_repeated(numbers: list[int], seed: int) -> None:
    files = [NewFile(str(n)) for n in numbers]
    once, again = (feeding.ordered(files, SplitRules(), Random(seed)) for _ in range(2))
    assert once == again
    assert sorted(once) == sorted(files)


@pytest.mark.parametrize(
    ("lfn", "index"),
    [
        ("EVNT.01206750._000017.pool.root", "17"),
        ("EVNT.01206750._000017.pool.root.3", "17"),
        ("hits.000005.root", "5"),
        ("hits.000005", "5"),
        ("run7_f_004.root.2", "4"),
        ("x.3", "3"),
        ("EVNT._000000.root", "0"),
        ("plain.root", ""),
    ],
)
def test_the_number_of_a_file(lfn: str, index: str) -> None:
    assert feeding.index_of(lfn) == index


def test_only_shared_numbers_are_consistent() -> None:
    a, b = ([NewFile(f"d._{i}.root") for i in numbers] for numbers in ([1, 2, 3], [2, 3, 4]))
    assert feeding.shared_indexes([a, b]) == {"2", "3"}


def test_jobs_there_can_be_at_one_time() -> None:
    assert feeding.most_jobs(made(10, None), SplitRules()) == 2
    assert feeding.most_jobs(made(10, 5), SplitRules(events_per_job=4)) == 10


def test_middle_names() -> None:
    of_dataset, of_file = parse("AN=2,1,NF=3"), parse("UF=1,GB=1,AN=3,US=1")
    assert of_dataset.name_fields == (2, 1)
    assert middle_name(of_dataset, "data.007.raw", "f.1.x") == "007.data"
    assert middle_name(of_file, "data.007.raw", "f.1.x") == "x"
    assert middle_name(SplitRules(), "data.007.raw", "f.1.x") == ""
    assert compiled_name("u.${MIDDLENAME}._${SN}.root").name(3, 1, "007") == "u.007._000003.root"
    assert fill("--tag ${MIDDLENAME}", JobFill(1, middle_name="007")) == "--tag 007"
    assert fields_of("a.b", (2, 5)) == "b"


@pytest.mark.parametrize(
    ("source", "numbers", "part"),
    [
        ("a.b.c", (2,), ""),
        ("a.b", (3,), "a.b has 2 fields between dots, field 3 is asked for"),
        ("a.b/c", (2,), "only letters"),
        ("a." + "b" * 250, (2,), "the limit is 256"),
    ],
)
def test_middle_names_that_make_no_good_file_name(source: str, numbers: tuple[int, ...], part: str) -> None:
    wrong = bad_middle_name("u.${MIDDLENAME}.${SN}.root", source, numbers)
    assert part in wrong
    assert bool(part) == bool(wrong)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a.${SN}", "a.${SN/P}", True),
        ("a.${SN}", "a.${SN:06d}", True),
        ("a.${SN}", "a.${SN:08d}", False),
        ("a.${SN}", "b.${SN}", False),
        ("u.${MIDDLENAME}.${SN}.root", "u.log.${SN}.root", True),
        ("u.${MIDDLENAME}.${SN}.root", "u.log.${SN}.tgz", False),
        ("u.${MIDDLENAME}.${SN}.root", "v.${MIDDLENAME}.${SN}.root", False),
    ],
)
def test_templates_that_may_give_one_name(one: str, other: str, same: bool) -> None:
    a, b = shape_of(one), shape_of(other)
    assert a.meets(b) == b.meets(a) == same


@given(st.integers(1, 10**7), st.integers(1, 10**9), st.text("ab.1", max_size=5))
def test_a_template_knows_the_names_that_it_gives(serial: int, task: int, middle: str) -> None:
    plain = ("a.${SN}.b", "a.${SN:08d}", "h.root", "$JEDITASKID.h", "a${SN}${SN}0.7${SN}")
    for text in (*plain, "$JEDITASKID.${MIDDLENAME}.${SN/P}", "${MIDDLENAME}.1${SN}.${MIDDLENAME}.h"):
        template = NameTemplate(text)
        assert template.may_be(template.name(serial, task, middle))
        assert not template.may_be("other")
        assert template.may_have(template.name(serial, task, middle), serial - 1, serial + 1)
    for text in ("a.${SN}.b", "a.${SN:08d}", "$JEDITASKID.${MIDDLENAME}.${SN/P}", "h${SN}.${MIDDLENAME}.${SN}"):
        template = NameTemplate(text)
        assert not template.may_have(template.name(serial, task, middle), serial + 1, serial + 9)
        assert not template.may_have(template.name(serial, task, middle), 0, serial - 1)


def test_a_template_of_many_numbers_is_compared_in_no_time() -> None:
    template = NameTemplate("${SN}" * 40 + "${MIDDLENAME}" * 40 + "${SN}.x")
    begun = perf_counter()
    assert not template.may_be("1" * 250 + ".y")
    assert template.may_have("1" * 250 + "a1.x", 2, 2), "which number is which cannot be told"
    assert perf_counter() - begun < 1


@pytest.mark.parametrize(
    ("text", "value", "result"),
    [
        ("#", 7, "7"),
        ("#+1", 7, "8"),
        ("#*2-1", 7, "13"),
        ("-#", 7, "-7"),
        ("2*(#+3)", 7, "20"),
        ("#/2", 7, "3.5"),
        ("#/7", 7, "1"),
        ("#//2", 7, "3"),
        ("# % 4", 7, "3"),
        ("10-#-1", 7, "2"),
        ("-7//2", 0, "-4"),
    ],
)
def test_arithmetic(text: str, value: int, result: str) -> None:
    assert formula(text)(value) == result


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "#+",
        "(#",
        "#)",
        "##",
        "# #",
        "2**3",
        "a",
        "#;1",
        "1.5",
        "#/0",
        "#%(2-2)",
        "#/(#-#)",
        "1//(0*#)",
        "3//0+#",
        "#" * 101,
        "(" * 30 + "#" + ")" * 30,
    ],
)
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(MalformedFormula):
        formula(text)


@given(
    st.recursive(
        st.sampled_from(["#", "3", "10"]),
        lambda s: st.tuples(s, st.sampled_from("+-*"), s).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        max_leaves=6,
    ),
    st.integers(-99, 99),
)
def test_arithmetic_is_that_of_whole_numbers(text: str, value: int) -> None:
    assert Fraction(formula(text)(value)) == eval(text.replace("#", f"({value})"))  # noqa: S307 - the text is ours


def test_numbers_of_a_job_may_be_calculated_with() -> None:
    job = JobFill(1, serial=4, streams={"SEQNUMBER": ["9"], "IN": ["a.root"]}, seed=100)
    assert fill("${SEQNUMBER/M[#-1]} ${SN/M[#*10]} ${RNDMSEED/M[#//3]}", job) == "8 40 33"
    with pytest.raises(UnresolvedPlaceholder, match="division by zero"):
        fill("${SEQNUMBER/M[1/(#-9)]}", job)
    with pytest.raises(UnresolvedPlaceholder, match="no number"):
        fill("${IN/M[#]}", job)
    with pytest.raises(MalformedText, match="one number"):
        fill("${IN,SEQNUMBER/M[#]}", job)


def test_quoted_listed_and_decoded_names() -> None:
    job = JobFill(1, streams={"IN": ["b.root", "a%2Bx.root"], "ONE": ["it's"], "BAD": ["a%00"], "LOW": ["c"]})
    assert fill("${IN/A}", job) == "'a%2Bx.root','b.root'"
    assert fill("${IN/T}", job) == "['a%2Bx.root','b.root']"
    assert fill("${IN/E}", job) == "a+x.root,b.root"
    assert fill("${ONE/T} ${ONE/A}", job) == "['it\\'s'] 'it\\'s'"
    assert fill("${IN,LOW/T} ${IN[0:1]/T}", job) == "['a%2Bx.root','b.root','c'] ['a%2Bx.root']"
    with pytest.raises(UnresolvedPlaceholder, match="cannot stand"):
        fill("${BAD/E}", job)
