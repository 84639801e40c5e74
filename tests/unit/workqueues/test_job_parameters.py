"""What a payload gets on its command line, and how its outputs are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.jobs.job_parameters import JobFill, UnresolvedPlaceholder, compiled_name, file_list, fill
from workqueues.rules.jobs.placeholders import MalformedText, pieces

JOB = JobFill(
    task_id=42,
    serial=17,
    attempt_nr=2,
    streams={
        "IN": ["hits.000002.root", "hits.000001.root"],
        "LOW": ["low.a.root", "low.b.root"],
        "OUTPUT0": ["out.000017.root"],
        "LOG0": ["log.000017.tgz"],
        "SEQNUMBER": ["9"],
    },
    seed=7005,
    n_events=500,
    skip_events=100,
    first_event=1001,
)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("--out=${OUTPUT0} --log ${LOG0}", "--out=out.000017.root --log log.000017.tgz"),
        ("${IN}", "hits.[000001,000002].root"),
        ("${IN/L}", "hits.000001.root,hits.000002.root"),
        ("${IN/S}", "hits.000001.root hits.000002.root"),
        ("${LOW}", "low.a.root,low.b.root"),
        ("${IN[0:1]}", "hits.000001.root"),
        ("${IN[1:]}", "hits.000002.root"),
        ("${IN[:-1]}", "hits.000001.root"),
        ("${IN,LOW/L}", "hits.000001.root,hits.000002.root,low.a.root,low.b.root"),
        ("${SN} ${SN/P} ${SN:08d}", "17 000017 00000017"),
        ("--seed ${RNDMSEED} --run ${SEQNUMBER}", "--seed 7005 --run 9"),
        ("${MAXEVENTS} ${SKIPEVENTS} ${FIRSTEVENT} ${ATTEMPTNR}", "500 100 1001 2"),
        ("task $JEDITASKID, 100 %, %s, {}", "task 42, 100 %, %s, {}"),
        ("$HOME $$ $JEDITASKIDS", "$HOME $$ $JEDITASKIDS"),
        ("", ""),
    ],
)
def test_filling(template: str, text: str) -> None:
    assert fill(template, JOB) == text


def test_unknown_numbers_of_events_are_minus_one() -> None:
    assert fill("${MAXEVENTS} ${SKIPEVENTS}", JobFill(1)) == "-1 0"


@pytest.mark.parametrize("template", ["${IN}", "${SEQNUMBER}", "${RNDMSEED}", "${OUTPUT0}", "${IN[3:4]}"])
def test_a_job_without_the_value_is_never_made(template: str) -> None:
    empty = JobFill(1, streams={"IN": []} if template == "${IN}" else {})
    with pytest.raises(UnresolvedPlaceholder):
        fill(template, JOB if "[" in template else empty)


@pytest.mark.parametrize("template", ["${IN", "${}", "${IN[0]}", "${IN/X}", "${SN[0:1]}", "${RNDMSEED/P}", "${IN[-:]}", "${a b}"])
def test_a_text_that_cannot_be_read_is_refused(template: str) -> None:
    with pytest.raises(MalformedText):
        fill(template, JOB)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a.1.root"], "a.1.root"),
        (["a.1.root", "a.1.root"], "a.1.root"),
        (["a_09.root", "a_10.root", "a_11.root"], "a_[09,10,11].root"),
        (["run1_f2.root", "run1_f3.root"], "run1_f[2,3].root"),
        (["f_001.pool.3", "f_002.pool.1"], "f_[001,002].pool"),
        (["f_001.pool.3", "f_001.pool.4"], "f_001.pool.3,f_001.pool.4"),
        (["x.root", "y.root"], "x.root,y.root"),
        (["a1", "a12"], "a[1,12]"),
        (["a", "a1"], "a,a1"),
        (["1", "2"], "[1,2]"),
    ],
)
def test_several_files(names: list[str], text: str) -> None:
    assert file_list(names) == text


@given(st.lists(st.text("ab01._", min_size=1, max_size=8), min_size=2, max_size=5))
def test_a_compact_list_says_all_its_names(names: list[str]) -> None:
    text = file_list(names)
    kept = sorted(set(names))
    if "[" in text:
        head, _, rest = text.partition("[")
        middle, _, tail = rest.partition("]")
        shown = [head + number + tail for number in middle.split(",")]
        assert len(shown) == len(kept)
        assert all(name == s or name.startswith(s + ".") for name, s in zip(kept, sorted(shown), strict=True))
    else:
        assert text.split(",") == kept


@pytest.mark.parametrize(
    ("template", "serial", "name"),
    [
        ("EVT.42._${SN}.root", 7, "EVT.42._000007.root"),
        ("EVT._${SN/P}.root", 1234567, "EVT._1234567.root"),
        ("EVT.${SN:08d}", 7, "EVT.00000007"),
        ("u.$JEDITASKID.${SN}.log", 1, "u.99.000001.log"),
        ("histogram.root", 1, "histogram.root"),
        ("histogram.root", 2, "histogram.root.2"),
    ],
)
def test_output_names(template: str, serial: int, name: str) -> None:
    assert compiled_name(template).name(serial, 99) == name


@given(st.sets(st.integers(1, 9_999_999), max_size=30), st.sampled_from(["a.${SN}.b", "a${SN:08d}", "${SN/P}", "h.root"]))
def test_output_names_never_collide(serials: set[int], template: str) -> None:
    assert len({compiled_name(template).name(serial, 5) for serial in serials}) == len(serials)


@given(st.text("${}INSOUTPL01,/[]:d% x", max_size=30))
def test_every_text_is_either_filled_or_refused_with_a_reason(text: str) -> None:
    try:
        filled = fill(text, JOB)
    except (MalformedText, UnresolvedPlaceholder) as reason:
        assert str(reason)
    else:
        assert "${" not in filled


@given(st.text("ab ${}IN/L", max_size=20))
def test_cutting_loses_nothing(text: str) -> None:
    try:
        parts = pieces(text)
    except MalformedText:
        return
    assert "".join(part if isinstance(part, str) else part.text for part in parts) == text
