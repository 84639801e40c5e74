"""What operators may write for a value, and what they are told when they may not. Pure."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker_site.foundation.gdpconfig.texts import INT_HIGH, INT_LOW, KINDS, MAX_DEPTH, MAX_TEXT, InvalidText, thawed

UNICODE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(INT_LOW, INT_HIGH) | st.floats(allow_nan=False, allow_infinity=False) | UNICODE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(UNICODE, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("0.5s", 0.5),
        ("250ms", 0.25),
        ("20min", 1200.0),
        ("12h", 43_200.0),
        ("7d", 604_800.0),
        ("2w", 1_209_600.0),
        ("1h30min", 5400.0),
        (" 1h 30min ", 5400.0),
        ("1.5 h", 5400.0),
        ("0", 0.0),
        ("1e2s", 100.0),
    ],
)
def test_a_duration_is_written_with_its_unit(text: str, seconds: float) -> None:
    assert KINDS["duration"].read(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (90, "90s"),
        (0.25, "250ms"),
        (1200, "20min"),
        (43_200, "12h"),
        (604_800, "7d"),
        (90.5, "90.5s"),
        (0, "0s"),
        (0.0001, "0.0001s"),
    ],
)
def test_a_duration_is_shown_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    kind = KINDS["duration"]
    assert kind.write(kind.accept(seconds)) == text


def test_a_duration_without_unit_is_refused_because_hours_and_seconds_would_be_mixed_up() -> None:
    with pytest.raises(InvalidText, match=r"'2' has no unit, write it as in 90s"):
        KINDS["duration"].read("2")


@pytest.mark.parametrize("text", ["", "h", "1 fortnight", "-1s", "1h,", "1e999s", "9" * 60 + "s", "NaN s", "1..5s", "1d 2", "٣s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        KINDS["duration"].read(text)


@pytest.mark.parametrize(
    ("text", "size"), [("1.5GB", 1_500_000_000), ("2KiB", 2048), ("0", 0), ("1MB 1B", 1_000_001), ("3PB", 3 * 10**15)]
)
def test_a_size_is_written_with_its_unit(text: str, size: int) -> None:
    assert KINDS["size"].read(text) == size


@pytest.mark.parametrize("text", ["5", "0.3B", "1e30PB", "-5GB", "5gb", "GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        KINDS["size"].read(text)


@pytest.mark.parametrize("text", ["", "1.5", "1e3", "0x10", "1_000", "٣", "9223372036854775808", "9" * 5000, "true", "1 2"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        KINDS["int"].read(text)


@pytest.mark.parametrize("text", ["", "nan", "inf", "-Infinity", "1e400", "0x1p3", "1,5", "1_0.0", "--1"])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        KINDS["float"].read(text)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("YES", True), ("on", True), ("1", True), ("False", False), ("off", False), ("0", False)]
)
def test_true_and_false_have_a_few_words_each(text: str, value: bool) -> None:
    assert KINDS["bool"].read(text) is value


def test_another_word_is_neither_true_nor_false() -> None:
    with pytest.raises(InvalidText, match="neither true nor false"):
        KINDS["bool"].read("maybe")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ("NaN", "NaN is no number"),
        ("1e999", "not a finite number"),
        ("1" * 5000, "too many digits"),
        ("10000000000000000000", "64 bits"),
        ("[" * 200 + "]" * 200, "deeper"),
        ("[" * 30_000 + "]" * 30_000, "deeper"),
        (r'"\ud800"', "Unicode"),
        (r'{"\u0000": 1}', "NUL"),
    ],
)
def test_json_that_cannot_be_kept_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidText, match=reason):
        KINDS["json"].read(text)


def test_json_read_once_cannot_be_changed_by_those_who_share_it() -> None:
    value = KINDS["json"].read('{"a": [1, {"b": 2}]}')
    with pytest.raises(TypeError):
        value["a"] = 5
    assert value["a"] == (1, {"b": 2})
    assert thawed(value) == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a, b,c", ("a", "b", "c")),
        ("", ()),
        ("MC 16", ("MC 16",)),
        ('["a, b", " c"]', ("a, b", " c")),
        ('[""]', ("",)),
        ("a,", ("a", "")),
    ],
)
def test_a_list_is_separated_by_commas_or_is_json(text: str, items: tuple[str, ...]) -> None:
    assert KINDS["list"].read(text) == items


@pytest.mark.parametrize("text", ["[1]", '{"a": 1', "[", '["a"', '[["a"]]'])
def test_a_list_of_something_else_than_texts_is_refused(text: str) -> None:
    if text.startswith("{"):
        assert KINDS["list"].read(text) == (text,)
    else:
        with pytest.raises(InvalidText):
            KINDS["list"].read(text)


def test_a_text_that_the_database_cannot_hold_is_refused() -> None:
    for text in ("a\x00b", "\ud800", "x" * (MAX_TEXT + 1)):
        with pytest.raises(InvalidText):
            KINDS["str"].read(text)


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(0.001)
@example(1e16)
@example(-0.0)
def test_every_duration_is_read_back_as_it_was_written(seconds: float) -> None:
    kind = KINDS["duration"]
    assert kind.read(kind.write(kind.accept(seconds))) == seconds


@given(st.integers(0, INT_HIGH))
def test_every_size_is_read_back_as_it_was_written(size: int) -> None:
    assert KINDS["size"].read(KINDS["size"].write(size)) == size


@given(st.integers(INT_LOW, INT_HIGH))
def test_every_whole_number_is_read_back_as_it_was_written(number: int) -> None:
    assert KINDS["int"].read(KINDS["int"].write(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_back_as_it_was_written(number: float) -> None:
    assert KINDS["float"].read(KINDS["float"].write(number)) == number


@given(st.lists(UNICODE, max_size=5))
@example(["unset"])
@example(["[a"])
@example([" a"])
def test_every_list_is_read_back_as_it_was_written(items: list[str]) -> None:
    kind = KINDS["list"]
    assert kind.read(kind.write(kind.accept(items))) == tuple(items)


@given(JSON_VALUES)
def test_every_json_value_is_read_back_as_it_was_written(value: Any) -> None:
    kind = KINDS["json"]
    assert thawed(kind.read(kind.write(kind.accept(value)))) == value


ANYTHING = (
    st.text(max_size=30)
    | st.from_regex(r"[-+]?[0-9.eE_ ]{0,12}(ms|s|min|h|d|w|B|kB|GB|[a-z]{0,3})", fullmatch=True)
    | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))
)
VALUES = (
    ANYTHING
    | JSON_VALUES
    | st.floats()
    | st.integers()
    | st.binary()
    | st.sampled_from([10**5000, math.inf, object(), {1: 2}, {"a": {1}}])
)


@given(st.sampled_from(sorted(KINDS)), ANYTHING)
@example("json", "[" * 100_000)
@example("int", "²")
def test_no_text_crashes_a_reader_and_what_is_read_can_be_written(name: str, text: str) -> None:
    kind = KINDS[name]
    try:
        value = kind.read(text)
    except InvalidText as nonsense:
        assert str(nonsense)
        return
    written = kind.write(value)
    assert kind.read(written) == value
    assert kind.write(kind.read(written)) == written


@given(st.sampled_from(sorted(KINDS)), VALUES)
def test_no_value_crashes_an_acceptor_and_what_is_accepted_is_read_back(name: str, value: object) -> None:
    kind = KINDS[name]
    try:
        accepted = kind.accept(value)
    except InvalidText as nonsense:
        assert str(nonsense)
        return
    assert kind.read(kind.write(accepted)) == accepted


def test_json_may_be_nested_as_deep_as_the_limit_says() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert json.loads(KINDS["json"].write(KINDS["json"].read(text))) == json.loads(text)
