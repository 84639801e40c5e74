"""The words of filters: what they say, and what says nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.kernel.filter_words import Unreadable, Word, ages, numbers, quoted, texts, times

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_texts_are_joined_negated_and_quoted() -> None:
    wanted = texts('a*, !b,-c,"d,e"')
    assert wanted.any_of == (Word("a*"), Word("d,e", quoted=True))
    assert wanted.none_of == (Word("b", negated=True), Word("c", negated=True))
    assert [word.wild for word in texts('a?,"a?"').any_of] == [True, False]


@given(st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1, max_size=60))
def test_a_quoted_text_stands_for_itself(text: str) -> None:
    (word,) = texts(quoted(text)).any_of
    assert (word.text, word.negated, word.wild) == (text, False, False)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (
        texts,
        lambda said: numbers(said, -5, 1 << 63),
        lambda said: times(said, NOW),
        lambda said: ages(said, NOW),
    ):
        try:
            read(text)
        except Unreadable as bad:
            assert bad.rule in ("form", "range", "length", "number")


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("5", [("exact", 5)]),
        ("100..200", [("gte", 100), ("lte", 200)]),
        ("100..", [("gte", 100)]),
        ("..200", [("lte", 200)]),
        (">5", [("gt", 5)]),
        ("<=5", [("lte", 5)]),
    ],
)
def test_numbers_have_ranges(text: str, bounds: list[tuple[str, int]]) -> None:
    assert list(numbers(text, 0, 1000).any_of[0]) == bounds
    assert list(numbers(f"-{text}", 0, 1000).none_of[0]) == bounds


def test_where_numbers_may_be_negative_a_minus_is_theirs() -> None:
    wanted = numbers("-5,!-7", -10, 10)
    assert (wanted.any_of, wanted.none_of) == (((("exact", -5),),), ((("exact", -7),),))


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("-2h", [("gte", NOW - 2 * HOUR)]),
        ("2h", [("gte", NOW - 2 * HOUR)]),
        ("<2h", [("lt", NOW - 2 * HOUR)]),
        ("-7d..-1d", [("gte", NOW - 168 * HOUR), ("lte", NOW - 24 * HOUR)]),
        ("2026-11-26", [("gte", NOW - 36 * HOUR), ("lt", NOW - 12 * HOUR)]),
        (">2026-11-26", [("gte", NOW - 12 * HOUR)]),
        ("2026-11-27T10:00", [("gte", NOW - 2 * HOUR), ("lt", NOW - 2 * HOUR + HOUR / 60)]),
    ],
)
def test_times_are_relative_or_spans(text: str, bounds: list[tuple[str, datetime]]) -> None:
    assert list(times(text, NOW).any_of[0]) == bounds


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("2h", [("gte", NOW - 2 * HOUR)]),
        (">2h", [("lt", NOW - 2 * HOUR)]),
        ("1h..2h", [("lte", NOW - HOUR), ("gte", NOW - 2 * HOUR)]),
    ],
)
def test_ages_are_turned_into_times(text: str, bounds: list[tuple[str, datetime]]) -> None:
    assert list(ages(text, NOW).any_of[0]) == bounds


@pytest.mark.parametrize("text", ["a,,b", "a,", '"a', '"a"b', "!", ",".join("a" * 101), "a" * 257, "a\0b"])
def test_what_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        texts(text)


@pytest.mark.parametrize("text", ["x", "1..x", "..", "9..1", "1001", "1.5", "999999999999999999999"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        numbers(text, 0, 1000)


@pytest.mark.parametrize("text", ["x", "2026-02-30", "2026-11-27..2026-11-01", "2 years", "999999w"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        times(text, NOW)
