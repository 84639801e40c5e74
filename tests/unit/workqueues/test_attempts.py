"""For how long a task rests whose inputs are tried again and again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.throttle.attempts import rest_min


@pytest.mark.parametrize(
    ("most", "times", "minutes"),
    [(0, 0, 0), (4, 0, 0), (5, 0, 120), (5, 1, 0), (6, 0, 0), (10, 0, 480), (10, 1, 480), (10, 2, 0), (15, 2, 1080), (16, 2, 0)],
)
def test_each_multiple_of_five_tries_once_and_longer(most: int, times: int, minutes: int) -> None:
    assert rest_min(most, times) == minutes


@given(st.integers(0, 200), st.integers(0, 40))
def test_it_rests_for_a_multiple_once(most: int, times: int) -> None:
    minutes = rest_min(most, times)
    assert minutes >= 0
    assert not minutes or rest_min(most, most // 5) == 0
