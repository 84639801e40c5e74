"""Reading the configuration from the database: one copy per process, checked against the revision at least every two seconds.

Here: the copy. Not here: which override wins (`values`) and writing (`store`).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.keys import APP
from broker_site.foundation.gdpconfig.values import Config, Row

log = logging.getLogger(__name__)

# Number and writing transaction: after a rollback the same number can come again with other values, but from another transaction.
Mark = tuple[int, str]
_NOTHING: Mark = (0, "")

_MARK_SQL = "SELECT number, xmin::text FROM gdpconfig_revision WHERE id = 1"
# One statement, so that the revision and the overrides are of one moment.
_LOAD_SQL = """
SELECT r.number, r.xmin::text, o.app, o.component, o.name, o.vo, o.value
FROM (VALUES (1)) AS one(id) LEFT JOIN gdpconfig_revision r ON r.id = one.id LEFT JOIN gdpconfig_override o ON TRUE
"""


@dataclass(frozen=True, slots=True)
class _Copy:
    config: Config
    mark: Mark
    until: float


class _Change:
    """A change of the configuration that an open transaction has made; called when that commits."""

    def __call__(self) -> None:
        forget()


_copy: _Copy | None = None
_in_change: tuple[_Change | None, _Copy | None] = (None, None)
"""What a transaction read since its last change that still stands, and that change; of whichever transaction read last."""
_lock = threading.Lock()
_written = False
"""Whether this process has ever changed the configuration: most only read it, at every step."""


def current() -> Config:
    """The configuration as committed at most CACHE_PERIOD (below two seconds) ago, frozen: one cycle of an agent works on one.

    Inside a transaction that has itself changed the configuration it is read anew after each change and each change undone.
    """
    global _copy
    if _written and (change := _changed_here()) is not None:
        return _since(change).config
    copy = _copy
    if copy is not None and time.monotonic() < copy.until:
        return copy.config
    with _lock:
        copy = _copy
        if copy is None:
            copy = _loaded()
        elif (now := time.monotonic()) >= copy.until:
            copy = _Copy(copy.config, copy.mark, now + _period_s(copy.config)) if _mark() == copy.mark else _loaded()
        _copy = copy
        return copy.config


def value(component: str, name: str, /, *, vo: str | None = None, app: str = APP, **parts: str) -> Any:
    """The typed value of a declared key now: `value("agents", "PERIOD_<agent>", agent="reap")`; None = unset.

    Durations are seconds, sizes bytes, lists tuples, JSON objects read-only mappings. BadConfig for a key that nobody declared.
    """
    return current().value(component, name, vo=vo, app=app, **parts)


def component(component: str, /, *, vo: str | None = None, app: str = APP) -> Mapping[str, Any]:
    """All keys of a component now, by their names, for pure rules; see `Config.component`."""
    return current().component(component, vo=vo, app=app)


def revision() -> int:
    """The revision of the configuration that `value` and `component` answer from; 0 = never changed."""
    return current().revision


def forget() -> None:
    """Drop the copy of this process: the next reading asks the database. Called after each write here, and between tests."""
    global _copy, _in_change
    with _lock:
        _copy, _in_change = None, (None, None)


def forget_on_commit() -> None:
    """Called by the writer inside its transaction: read anew until the transaction ends, and drop the copy when it commits."""
    global _written
    _written = True
    transaction.on_commit(_Change())


def _changed_here() -> _Change | None:
    """The last change of the configuration by the open transaction of this thread: it waits for the commit."""
    if not connection.in_atomic_block:
        return None
    return next((waiting[1] for waiting in reversed(connection.run_on_commit) if isinstance(waiting[1], _Change)), None)


def _since(change: _Change) -> _Copy:
    """What was read after this change. A savepoint that is rolled back takes its changes along: the last one is another then."""
    global _in_change
    of, copy = _in_change
    if of is not change or copy is None or time.monotonic() >= copy.until:
        copy = _loaded()
        _in_change = change, copy
    return copy


def _period_s(config: Config) -> float:
    period: float = config.value("gdpconfig", "CACHE_PERIOD")
    return period


def _mark() -> Mark:
    with connection.cursor() as cursor:
        cursor.execute(_MARK_SQL)
        row = cursor.fetchone()
    return (row[0], row[1]) if row else _NOTHING


def _loaded() -> _Copy:
    now = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(_LOAD_SQL)
        rows = cursor.fetchall()
    number, writer = rows[0][:2]
    config = Config(number or 0, [Row(*row[2:]) for row in rows if row[2] is not None], keys.KEYS)
    for row, problem in config.faults:
        log.warning("override of %s.%s for VO %r is not used: %s", row.component, row.name, row.vo, problem.message)
    return _Copy(config, (number, writer) if number is not None else _NOTHING, now + _period_s(config))


def _after_fork() -> None:
    """A child starts without the parent's lock, which another thread may have held at the fork."""
    global _lock, _copy
    _lock, _copy = threading.Lock(), None


os.register_at_fork(after_in_child=_after_fork)
