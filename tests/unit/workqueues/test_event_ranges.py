"""Which events of a file are free, and what that makes of it, beside the plainest way to say it: event by event."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.jobs.event_ranges import Free, Try, file_status, free_events, used_up
from workqueues.states import EVENT, INPUT_FILE

limit = st.one_of(st.none(), st.integers(1, 4))


def tried_file(n: int, rows: list[bytes]) -> tuple[int, list[Try]]:
    """A file and its ranges, the oldest first, drawn by the range; no two of those that keep their events overlap."""
    kept: set[int] = set()
    tries: list[Try] = []
    past = [(0, 0)] * n
    for job, (start, length, flags) in enumerate(rows, 1):
        first = start % n
        stop = first + 1 + length % (n - first)
        events = set(range(first, stop))
        if kept & events or len({past[e] for e in events}) > 1:
            continue
        failures = past[first][1] + flags % 2
        each = Try(first, stop, past[first][0] + 1, failures, job, flags >= 128)
        tries.append(each)
        kept |= events if each.keeps else set()
        for e in events:
            past[e] = (each.attempt_nr, each.failed_attempt)
    return n, tries


tried = st.builds(tried_file, st.integers(1, 30), st.lists(st.binary(min_size=3, max_size=3), max_size=8))


@given(tried, limit, limit)
def test_an_event_is_free_when_no_range_keeps_it_and_tries_are_left(
    file: tuple[int, list[Try]], max_attempt: int | None, max_failure: int | None
) -> None:
    n, tries = file
    found = free_events(n, tries, max_attempt, max_failure)
    told = {e: run for run in found for e in range(run.first, run.stop)}
    for e in range(n):
        holding = [each for each in tries if each.first <= e < each.stop]
        latest = holding[-1] if holding else None
        spent = latest is not None and used_up(latest.attempt_nr, max_attempt, latest.failed_attempt, max_failure)
        assert (e in told) == (not spent and not any(each.keeps for each in holding))
        if e in told:
            past = (latest.attempt_nr, latest.failed_attempt, latest.job_id) if latest else (0, 0, None)
            assert told[e][2:] == past


@given(tried, limit, limit)
def test_runs_are_in_order_apart_and_as_long_as_their_past_is_one(
    file: tuple[int, list[Try]], max_attempt: int | None, max_failure: int | None
) -> None:
    n, tries = file
    found = free_events(n, tries, max_attempt, max_failure)
    assert all(0 <= run.first < run.stop <= n for run in found)
    for before, after in pairwise(found):
        assert before.stop <= after.first
        assert before.stop < after.first or before[2:] != after[2:]


def test_a_file_without_ranges_is_free_as_a_whole() -> None:
    assert free_events(10, [], 3, None) == [Free(0, 10)]


@pytest.mark.parametrize(
    ("live", "done", "free", "held", "status"),
    [
        (0, 0, 10, False, "ready"),
        (1, 0, 5, False, "ready"),
        (1, 5, 2, False, "ready"),
        (0, 5, 5, False, "partial"),
        (0, 5, 5, True, "ready"),
        (2, 5, 0, False, "running"),
        (0, 10, 0, False, "finished"),
        (0, 9, 0, False, "failed"),
        (0, 0, 0, False, "failed"),
    ],
)
def test_the_state_of_a_file_is_what_its_events_say(live: int, done: int, free: int, held: bool, status: str) -> None:
    assert file_status(live, done, free, 10, held) == status


def test_every_state_of_a_range_keeps_its_events_or_gives_them_up() -> None:
    assert sorted([*EVENT.with_job, *EVENT.processed, *EVENT.spent]) == sorted(EVENT.states)
    assert {"ready", "partial", "running", "finished", "failed"} <= set(INPUT_FILE.states)
