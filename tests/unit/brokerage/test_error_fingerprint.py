"""Errors that differ in numbers and names only have one fingerprint; others do not."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from brokerage.rules.dispatch.error_fingerprint import LONGEST, EndError, fingerprint, same_words


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("exit code 137", "exit code *"),
        ("lost heartbeat for 3,600.5 s", "lost heartbeat for * s"),
        ("cannot open /data/atlas/run_7/file.root: no such file", "cannot open *: no such file"),
        ("cannot open '/data/my file.root'", "cannot open *"),
        ('input "user.ada:ds.000012" is missing', "input * is missing"),
        ("input `a` or 'b' doesn't exist, isn't there", "input * or * doesn't exist, isn't there"),
        ("GET https://se.example.org:8443/a/b?c=1 gave 503", "GET * gave *"),
        ("checksum 0a1b2c3d is not ffff0000", "checksum * is not *"),
        ("segfault at 0xDEADBEEF", "segfault at *"),
        ("pilot 6f9619ff-8b86-d011-b42d-00c04fc964ff is gone", "pilot * is gone"),
        ("no EVNT.000017.pool.root.1 in the list", "no EVNT.*.pool.root.* in the list"),
        ("copy out/run/a.root and/or its log", "copy * and/or its log"),
        ("decaffed facades", "decaffed facades"),
        ("a  line\nand\tanother ", "a line and another"),
        ("12:30:01 of 2026-11-26 late", "* of * late"),
        ("", ""),
    ],
)
def test_what_differs_from_job_to_job_is_left_out(message: str, words: str) -> None:
    assert same_words(message) == words


parts = st.sampled_from(
    ["{n} files", "at {n} MB", "path /a/b{n}/c.root", "name 'x{n}'", "sum 00{n:08x}", "host node{n}", 'key "{n}"', "of {n}.5 s"]
)


@given(st.lists(parts, min_size=1, max_size=6), st.integers(0, 10**9), st.integers(0, 10**9))
def test_messages_that_differ_in_numbers_have_one_fingerprint(template: list[str], one: int, other: int) -> None:
    messages = ["; ".join(template).format(n=n) for n in (one, other)]
    prints = {fingerprint(EndError("failed", "STAGEIN", 1, message)) for message in messages}
    assert len(prints) == len({p.id for p in prints}) == 1


@given(st.text(max_size=700))
@example("'" * 500)
@example("/" * 500)
@example("a/" * 250)
@example("1e" * 250)
@example("*-" * 250)
def test_any_text_has_words_without_numbers_within_a_length(text: str) -> None:
    words = same_words(text)
    assert len(words) <= LONGEST
    assert not any(c in "0123456789" for c in words)
    assert words == words.strip()
    assert 0 <= fingerprint(EndError("", "LOST", None, text)).id < 2**63


def test_who_says_it_which_code_and_how_the_payload_ended_tell_errors_apart() -> None:
    base = EndError("failed", "PAYLOAD_EXIT", 1, "exit code 1")
    others = [base._replace(reported=""), base._replace(code="X"), base._replace(exit_code=2), base._replace(message="no")]
    assert len({fingerprint(error).id for error in (base, *others)}) == 5
    assert fingerprint(base)._asdict() == {
        "component": "pilot",
        "code": "PAYLOAD_EXIT",
        "exit_code": 1,
        "message": "exit code *",
    }
    assert fingerprint(base).id == 6785063271815880785  # rows have it: it must not change
