"""A batch of transactions is added to what was seen: these and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.facts.db_snapshot import is_seen, seen_up_to

XIDS = range(100)


def snapshot(end: int, still: set[int]) -> str:
    still = {xid for xid in still if xid < end}
    return f"{min(still, default=end)}:{end}:{','.join(map(str, sorted(still)))}"


@given(st.integers(3, 60), st.integers(0, 35), st.sets(st.integers(3, 95)), st.sets(st.integers(3, 95)), st.integers(3, 94))
def test_seen_is_what_was_and_what_has_ended_up_to_the_last(
    end: int, later: int, open_before: set[int], begun: set[int], last: int
) -> None:
    before = snapshot(end, open_before)
    still = {xid for xid in open_before if xid < end and xid % 2} | {xid for xid in begun if xid >= end}
    now = snapshot(end + later, still)
    last = min(last, end + later - 1)
    found = seen_up_to(before, now, last)
    for xid in XIDS:
        assert is_seen(found, xid) == (is_seen(before, xid) or (xid <= last and is_seen(now, xid))), (before, now, found, xid)
    begin = int(found.split(":")[0])
    assert all(is_seen(found, xid) for xid in XIDS if xid < begin)
