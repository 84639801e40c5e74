"""YAML as people write it: what is read is what stands there, faults have their line, and no text harms the reader."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.yaml_text import YamlFault, read_yaml, written

VALUES = (("overrides", "value"),)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("on", "on"), ("no", "no"), ("True", "True"), ("2026-01-01", "2026-01-01"), ("12:30:00", "12:30:00"),
        ("0x1F", "0x1F"), ("012", "012"), ("1_0", "1_0"), (".inf", ".inf"), ("60", 60), ("-1.5", -1.5), ("1e3", 1000.0),
        ("true", True), ("null", None), ("~", None),
        ("", None), ("'60'", "60"), ('"true"', "true"), ("a # no", "a"), ("[1, on]", [1, "on"]),
    ],
)  # fmt: skip
def test_a_word_is_what_stands_there(word: str, value: object) -> None:
    read = read_yaml(f"rows:\n- column: {word}\n").value["rows"][0]["column"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e3", "1e3"),
        ("1.50", "1.50"),
        ("true", "true"),
        ("on", "on"),
        ("2026-01-01", "2026-01-01"),
        ("null", None),
        ("[1]", [1]),
    ],
)
def test_the_value_of_a_key_stays_as_it_is_written(word: str, value: object) -> None:
    assert read_yaml(f"overrides:\n- key: a.B\n  value: {word}\n", VALUES).value["overrides"][0]["value"] == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &x 1\nb: *x", "line 1: anchors"),
        ("a: 1\nb: *x", "line 2: aliases"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: tags"),
        ("a: !!timestamp 2026-01-01", "line 1: tags"),
        ("a: 1\nb: 2\na: 3", "line 3: the name 'a' stands twice"),
        ("--- 1\n--- 2", "line 2: a second document"),
        ("? [a]\n: 1", "line 1: the name of a member"),
        ("a:\n\tb: 1", "line 2: "),
        ("a: b: c", "line 1: mapping values are not allowed"),
        ("a: 1\nb: \x07", "line 2: a character that no YAML may have"),
        ('a: "\\0"', "NUL"),
        ("a: \ud800", "line 1: a character"),
        ("a: 1e999", "out of range"),
        ("a: 99999999999999999999", "64 bits"),
        ("[" * 100_000, "nested deeper than 50"),
        ("- " * 100_000, "nested deeper than 50"),
        ("- a\n" * 10_001, "line 10001: a list or object has more than 10000"),
        ("- [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z]\n" * 9_999, "more than 250000"),
        ("x" * 2_000_001, "more than the 2000000"),
        ("?" + " a" * 101, "more than 200"),
    ],
)
def test_a_bad_text_is_refused_with_its_line(text: str, told: str) -> None:
    with pytest.raises(YamlFault) as refused:
        read_yaml(text)
    assert told in str(refused.value)


@given(st.text() | st.text(alphabet="-?:[]{},&*!|>'\"%@` \n\ta1#~"))
def test_no_text_does_anything_but_to_be_read_or_refused(text: str) -> None:
    try:
        read_yaml(text)
    except YamlFault as fault:
        assert fault.line >= 1


STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
ROW = st.fixed_dictionaries({"name": STORABLE, "value": st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | STORABLE})


def _same(read: Any, rows: list[dict[str, Any]]) -> bool:
    """A number and a flag are two things."""
    return bool(read == rows) and [type(row["value"]) for row in read] == [type(row["value"]) for row in rows]


@given(st.lists(ROW, max_size=5))
def test_what_is_written_is_read_again_by_us_and_by_others(rows: list[dict[str, Any]]) -> None:
    text = written({"rows": rows})
    assert _same(read_yaml(text).value["rows"], rows)
    assert _same(yaml.safe_load(text)["rows"], rows)


@given(STORABLE | st.sampled_from(("true", "null", "~", "on", "1e3", "2026-01-01", "", " a", "0.5", "20min", "a, b", "- a")))
def test_the_value_of_a_key_is_read_again(value: str) -> None:
    text = written({"overrides": [{"key": "a.B", "value": value}]}, VALUES)
    assert read_yaml(text, VALUES).value == {"overrides": [{"key": "a.B", "value": value}]}
