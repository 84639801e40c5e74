"""The one place from which agents and views take the time.

Pure decisions get `now` as an argument and never call this. Lease arithmetic is done by the database's own `now()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_frozen: datetime | None = None


def now() -> datetime:
    """The current time, UTC and aware; the frozen one inside `frozen`."""
    return _frozen if _frozen is not None else datetime.now(UTC)


@contextmanager
def frozen(at: datetime) -> Iterator[None]:
    """Stop the clock at `at` for this process: for tests and the simulator."""
    global _frozen
    before, _frozen = _frozen, at
    try:
        yield
    finally:
        _frozen = before
