"""Work on many things at once, of which a faulty one stops no other: a batch that fails is halved until the one is found.

Every agent that works in batches goes through here. What becomes of the faulty one is the agent's to say: it is set aside, with
the reason where people look for it. A fault that all have in common (no database) is raised as it is.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from celery.exceptions import SoftTimeLimitExceeded
from django.db import DatabaseError, InterfaceError, OperationalError

T = TypeVar("T")
R = TypeVar("R")

LOCKED = frozenset({"55P03", "40P01", "40001"})
"""PostgreSQL's codes for what other transactions are to blame for: a row that stays locked, a deadlock, a lost race."""
TOO_LONG = "57014"
OF_THE_SERVER = ("08", "53", "57", "58")
"""Classes of codes that say nothing of the data."""
PATIENCE_S = 20.0
"""Time after which a run tries nothing more of a batch that failed: the rest is left for the next run."""

SAID_EVERY_S = 60.0
"""So often a cause is told for which what came together fails."""

logger = logging.getLogger(__name__)
_said_until: dict[tuple[str, str, str, str], float] = {}
"""Cause -> until when nothing more is said of it (monotonic seconds). There are as many as there are places in the code."""


class NotTried(Exception):
    """The time of the run was over before this one's turn came again."""


def in_halves(
    items: Sequence[T],
    work: Callable[[Sequence[T]], R],
    set_aside: Callable[[T, Exception], None],
    group: Callable[[T], Hashable] = id,
) -> list[R]:
    """Do `work` on all items at once: what it gave. A batch that fails is halved, and an item that fails by itself set aside.

    Items of one `group` share what may be locked: rows that stay locked are waited for once a group, which is then left.
    """
    batches = deque([items] if items else [])
    results: list[R] = []
    end = time.monotonic() + PATIENCE_S
    while batches:
        batch = batches.popleft()
        try:
            results.append(work(batch))
            continue
        except Exception as error:  # whatever it is, it is that of one item until all have failed
            if concerns_all(error) or isinstance(error, SoftTimeLimitExceeded):
                raise
            parts = _parts(batch, group, locked=code_of(error) in LOCKED)
            fault = error
        if len(parts) > 1 and time.monotonic() > end:
            fault, parts = NotTried("no time was left for it"), [batch]
        if len(parts) > 1:
            batches.extendleft(reversed(parts))
            continue
        for item in batch:
            set_aside(item, fault)
    return results


def one_by_one(items: Iterable[T], work: Callable[[T], R], set_aside: Callable[[T, Exception], None]) -> list[R]:
    """Do `work` on each item: what it gave. One that fails is set aside."""
    results: list[R] = []
    for item in items:
        results += in_halves([item], lambda batch: work(batch[0]), set_aside)
    return results


def _parts(batch: Sequence[T], group: Callable[[T], Hashable], *, locked: bool) -> list[Sequence[T]]:
    """What a batch that failed is cut into: halves, or where a lock is in the way its groups. One part: it is the faulty one."""
    if locked:
        groups: dict[Hashable, list[T]] = {}
        for item in batch:
            groups.setdefault(group(item), []).append(item)
        return list(groups.values())
    middle = (len(batch) + 1) // 2
    return [part for part in (batch[:middle], batch[middle:]) if part]


def say_why_apart(what: str, fault: Exception) -> None:
    """A line in the log, once a minute for each cause: why what came together is done one by one, which may then go well."""
    now, trace = time.monotonic(), fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    cause = (what, type(fault).__name__, code_of(fault), place)
    if now < _said_until.get(cause, 0.0):
        return
    _said_until[cause] = now + SAID_EVERY_S
    logger.warning("%s that came together failed, and each is done by itself: %s", what, type(fault).__name__, exc_info=fault)


def code_of(error: BaseException) -> str:
    """PostgreSQL's code of an error; empty where it is none."""
    return str(getattr(error.__cause__, "pgcode", None) or getattr(error, "pgcode", None) or "")


def is_of_others(error: BaseException) -> bool:
    """Whether other work was in the way, which says nothing of the item."""
    return isinstance(error, NotTried) or code_of(error) in LOCKED


def concerns_all(error: Exception) -> bool:
    """Whether the fault is that of the database as such, so that no other item would fare better."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, DatabaseError):
        return False
    code = code_of(error)
    return (code != TOO_LONG and code.startswith(OF_THE_SERVER)) or (not code and isinstance(error, OperationalError))


_WORDS = {
    "22": "a value is larger than can be stored, or of another form",
    "23": "it would break a rule that the database keeps",
    "40": "other work was in its way",
    "55": "its rows are locked by another transaction",
    "57": "it took longer than the database allows",
}


def in_words(error: Exception) -> str:
    """A fault as users are told it: of the database never the text, which the log has."""
    if isinstance(error, MemoryError):
        return "it needs more memory than an agent may take"
    if isinstance(error, SoftTimeLimitExceeded):
        return "the time of an agent's run was over"
    if not isinstance(error, DatabaseError | InterfaceError):
        return f"{type(error).__name__}: {error}".replace("\x00", "")
    return _WORDS.get(code_of(error)[:2], "the database refused it")
