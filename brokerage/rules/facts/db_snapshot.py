"""Snapshots as PostgreSQL writes them: `xmin:xmax:xid,xid`. Seen are all transactions below xmax but those that are listed, which
were open. What is below xmin has ended.
"""

from __future__ import annotations


def seen_up_to(before: str, now: str, last: int) -> str:
    """What was seen `before`, and what is seen `now` of transactions up to `last`; `now` is later."""
    _, end, open_before = _parts(before)
    _, _, open_now = _parts(now)
    # Transactions after `last` stay as they were before: those that had ended by then are seen.
    still = {xid for xid in open_now if xid <= last} | {xid for xid in open_before if xid > last}
    end = max(end, last + 1)
    return f"{min(still, default=end)}:{end}:{','.join(map(str, sorted(still)))}"


def is_seen(snapshot: str, xid: int) -> bool:
    """Whether the snapshot shows what the transaction did, if it did not fail."""
    _, end, still = _parts(snapshot)
    return xid < end and xid not in still


def _parts(snapshot: str) -> tuple[int, int, frozenset[int]]:
    begin, end, still = snapshot.split(":")
    return int(begin), int(end), frozenset(int(xid) for xid in still.split(",") if xid)
