"""Regular expressions of shares: what is useful is allowed, what could be read in endless ways is refused, and none hangs."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.shares.mapping import UNDEFINED, Leaf, leaf_of
from workqueues.rules.shares.patterns import LONGEST, pattern_fault


@pytest.mark.parametrize(
    "pattern",
    ["", "managed", "managed|test", "user$", "^GP_(Higgs|Top|Exotics)$", ".*", ".*merge.*", "mc(16|23)[a-f]?", r"mc2\d{2,4}\.",
     "(?:evgen|simul).*", "a{3}", "[]x]+", "[^]]*", r"[\]a]+", "(ab)*", "(ab){2,5}?x", "a*+", "x{", "a{,}", "mc(16|23)?",
      "((a?)b){5}", r"\w+\s?"],
)  # fmt: skip
def test_what_ends_soon_is_allowed(pattern: str) -> None:
    assert pattern_fault(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("(a+)+$", "at character 1: what is repeated without end may not itself have"),
        ("(a+){,}Z", "at character 1: what is repeated without end may not itself have"),
        ("a{,}a{,}a{,}a{,}Z", "ways: use fewer"),
        ("(?:(?:){60000}){60000}Z", "at character 4: what reads no character may not be repeated"),
        (r"x(?:\b){9}", "at character 2: what reads no character"),
        ("(?:a{0}$){9}", "at character 1: what reads no character"),
        ("x(a|aa)*$", "at character 2: what is repeated"),
        ("(?:.*)*", "at character 1: what is repeated"),
        ("(.*,){11}P", "at character 1: what is repeated"),
        (".*.*.*.*", "ways: use fewer"),
        ("a?" * 30 + "a" * 30, "ways: use fewer"),
        ("(a|b)" * 30, "ways: use fewer"),
        (r"(a)\1", r"\1 is not allowed"),
        ("(?=a)b", "only plain groups"),
        ("(?P<n>a)", "only plain groups"),
        ("(?i)a", "only plain groups"),
        ("(" * 30 + ")" * 30, "at most 20 groups"),
        ("(mc", "no regular expression: missing )"),
        ("a{99999999999}", "no regular expression"),
    ],
)
def test_what_could_hang_or_cannot_be_read_is_told_with_its_place(pattern: str, told: str) -> None:
    assert told in pattern_fault(pattern)


pieces = st.sampled_from(
    ["a", "b", ".", "(", ")", "|", "*", "+", "?", "{2,}", "{,3}", "{,}", "{99}", "[ab]", "(?:", "$", "^", r"\w", "]", "-"]
)


@given(st.lists(pieces, max_size=14).map("".join), st.text("ab", max_size=LONGEST))
def test_every_expression_is_judged_and_an_allowed_one_ends_soon(pattern: str, text: str) -> None:
    if pattern_fault(pattern):
        return
    began = time.monotonic()
    re.compile(pattern).match(text + "c")
    assert time.monotonic() - began < 2


def test_the_worst_that_is_allowed_ends_soon() -> None:
    began = time.monotonic()
    leaf_of([Leaf("x", (("campaign", ".*a.*a.*b"),))], {"campaign": "a" * 4000})
    assert time.monotonic() - began < 1


def test_a_leaf_whose_expression_was_written_past_the_admin_takes_nothing() -> None:
    leaves = [Leaf("bad", (("campaign", "(a+)+$"),)), Leaf("worse", (("campaign", "(mc"),))]
    assert leaf_of(leaves, {"campaign": "a" * 60 + "b"}) == UNDEFINED
    assert leaf_of([*leaves, Leaf("good")], {"campaign": "mc"}) == "good"
