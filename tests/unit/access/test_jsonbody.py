"""Bodies: what is read is strict JSON that the database can hold; everything else is a clear 4xx, at any size and depth."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from django.http import HttpRequest
from django.test import RequestFactory
from hypothesis import example, given
from hypothesis import strategies as st

from broker_site.foundation.access.jsonbody import MAX_DEPTH, MAX_ITEMS, decode, read_json, read_object
from broker_site.foundation.access.problems import Refused

storable = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | storable,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(storable, inner, max_size=5),
    max_leaves=12,
)


def post(body: bytes, content_type: str = "application/json") -> HttpRequest:
    return RequestFactory().post("/api/v1/x/", data=body, content_type=content_type)


def refusal(body: bytes) -> Refused:
    with pytest.raises(Refused) as caught:
        decode(body)
    return caught.value


@given(values)
def test_every_storable_value_is_read_as_it_is(value: object) -> None:
    assert decode(json.dumps(value).encode()) == value
    assert decode(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "line 1 column 1"),
        (b"{", "line 1 column 2"),
        (b'{"a": 1,}', "line 1 column"),
        (b'{\n "a": tru}', "line 2 column 7"),
        (b"{'a': 1}", "line 1 column 2"),
        (b"[1] x", "Extra data: line 1 column 5"),
        (b'{"a": 1} {"a": 2}', "Extra data"),
        (b"\xef\xbb\xbf{}", "line 1 column 1"),
        (b'{"a": "\x01"}', "control character"),
        (b'{"a": "\\x41"}', "escape"),
        (b'{"a": "\\u12"}', "escape"),
        (b'"abc', "Unterminated string"),
        (b'"\\', "Unterminated string"),
        (b"\xff\xfe{\x00}\x00", "NUL"),
        (b'{"a": "\x00"}', "NUL"),
        (b'{"a": "\\u0000"}', "NUL"),
        (b'{"\\u0000": 1}', "NUL"),
        (b'["\\ud800"]', "surrogate"),
        (b'["\\udc00\\ud800"]', "surrogate"),
        (b'{"a": {"b": ["x", {"\\udfff": 1}]}}', "surrogate"),
        (b'"\xed\xa0\x80"', "not UTF-8: byte 1"),
        (b'"\xc0\x80"', "not UTF-8"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b'{"a": {"b": 1, "c": 2, "b": 3}}', "'b' stands twice"),
        (b'{"a": 1, "\\u0061": 2}', "'a' stands twice"),
        (b"[NaN]", "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e999]", "out of range"),
        (b"[-1e999]", "out of range"),
        (b"[" + b"1" * 1000 + b".0]", "out of range"),
        (b"[9223372036854775808]", "64 bits"),
        (b"[-9223372036854775809]", "64 bits"),
        (b"[" + b"9" * 100_000 + b"]", "64 bits"),
        (b"[01]", "line 1"),
        (b"[+1]", "line 1"),
        (b"[0x10]", "line 1"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_place(body: bytes, words: str) -> None:
    refused = refusal(body)
    assert refused.status == 400
    assert words in refused.detail


def test_both_ends_of_64_bits_are_numbers() -> None:
    assert decode(b"[9223372036854775807, -9223372036854775808]") == [2**63 - 1, -(2**63)]


def test_a_surrogate_pair_is_one_character() -> None:
    assert decode(b'["\\ud83d\\ude00"]') == ["\U0001f600"]


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("times", [51, 1_000, 100_000, 800_000])
def test_deep_nesting_is_refused_before_it_is_parsed(opening: bytes, times: int) -> None:
    assert "deeper than 50" in refusal(opening * times).detail


def test_nesting_up_to_the_limit_is_read_and_one_more_is_not() -> None:
    assert decode(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert "deeper" in refusal(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)).detail


def test_brackets_within_texts_are_no_nesting() -> None:
    text = '["{\\"[' * 5_000
    assert decode(json.dumps({"jobParameters": text}).encode()) == {"jobParameters": text}


def test_lists_and_objects_are_limited_in_width() -> None:
    assert len(decode(json.dumps(list(range(MAX_ITEMS))).encode())) == MAX_ITEMS
    assert "more than 10000" in refusal(json.dumps(list(range(MAX_ITEMS + 1))).encode()).detail
    assert "more than 10000" in refusal(json.dumps({"a": [[0] * (MAX_ITEMS + 1)]}).encode()).detail
    assert "more than 10000" in refusal(json.dumps({str(n): n for n in range(MAX_ITEMS + 1)}).encode()).detail


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * 1_666_000 + b"[]]",
        b"[" + b"1," * 2_499_000 + b"1]",
        b'["' + b"\\n" * 2_499_000 + b'"',
        b'["' + b"\\" * 4_999_000,
        b'["' + b"a" * 4_999_000,
        b'"' * 5_000_000,
        b'"",' * 1_666_000,
        b"]" * 5_000_000,
        b"}{" * 2_500_000,
        b" " * 5_000_000,
        b"{" + b'"a":{' * 1_000_000,
    ],
)
def test_five_megabytes_of_anything_are_refused(body: bytes) -> None:
    assert refusal(body).status == 400


def test_the_widest_body_that_is_read_takes_little_memory() -> None:
    body = b"[" + b",".join([b"[" + b",".join([b"[]"] * 4_000) + b"]"] * 20) + b"]"
    tracemalloc.start()
    assert len(decode(body)) == 20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000


@given(st.binary(max_size=300))
@example(b'{"\\ud800": NaN')
def test_no_bytes_make_reading_fail_otherwise(body: bytes) -> None:
    for candidate in (body, b'{"a": "' + body + b'"}', b"[" * 20 + body, b'"\\u' + body + b'"'):
        try:
            decode(candidate)
        except Refused as refused:
            assert refused.status == 400
            json.dumps(refused.detail).encode()


def test_a_body_over_its_limit_is_413_by_its_declared_length_and_by_its_real_one() -> None:
    big = b'"' + b"a" * 10_000_000 + b'"'
    with pytest.raises(Refused) as caught:
        read_json(post(big))
    assert caught.value.status == 413
    lying = post(b'"' + b"a" * 2_000 + b'"')
    lying.META["CONTENT_LENGTH"] = "10"
    with pytest.raises(Refused) as caught:
        read_json(lying, limit=1_000)
    assert caught.value.status == 413


def test_a_length_that_is_no_number_is_400() -> None:
    request = post(b"{}")
    request.META["CONTENT_LENGTH"] = "ten"
    with pytest.raises(Refused) as caught:
        read_json(request)
    assert caught.value.status == 400


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_only_json_is_taken(content_type: str) -> None:
    with pytest.raises(Refused) as caught:
        read_json(post(b"{}", content_type))
    assert caught.value.status == 415


@pytest.mark.parametrize("body", [b"[]", b'"a"', b"1", b"null"])
def test_an_object_is_asked_for_where_an_object_is_needed(body: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read_object(post(body))
    assert (caught.value.status, caught.value.detail) == (400, "The body must be a JSON object.")


def test_no_body_is_no_object() -> None:
    assert read_object(post(b'{"a": 1}', "application/json; charset=utf-8")) == {"a": 1}
    with pytest.raises(Refused):
        read_object(post(b""))
