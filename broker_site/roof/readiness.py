"""What keeps the system from working, in words: a database that takes no writes, Redis, late agents, movers that are not there.

Looked at when somebody asks, once in EVERY_S at most, whoever asks; a system that is well is written to as often.
"""

from __future__ import annotations

import os
import threading
import time

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.duties import AGENTS, late_after_s
from broker_site.roof.web.lane import cut
from brokerage.queries.unclaimed_copies import moverless

EVERY_S = 5.0
PATIENCE_S = 3.0
"""How long the database may take to say something."""
MOVER_LATE_S = 60.0
"""A mover that is at work takes copies within parts of a second."""
FILLER = 65_536
"""Bytes that are written: into a new file each time, so that a full disk shows, which a page that is there already would hide."""

_lock = threading.Lock()
_seen: tuple[float, list[str]] | None = None


def problems() -> list[str]:
    """A sentence for each thing that is wrong, the causes first; none: all works."""
    global _seen
    with _lock:  # who comes while somebody looks waits, and gets what he saw
        if _seen is None or time.monotonic() - _seen[0] >= EVERY_S:
            found = [*_redis(), *_database()]
            _seen = (time.monotonic(), found)
        return list(_seen[1])


def forget() -> None:
    """Look again at the next question."""
    global _seen
    _seen = None


def ages(database: BaseDatabaseWrapper) -> dict[str, float]:
    """Agent -> seconds since its last good run."""
    with database.cursor() as cursor:
        cursor.execute("SELECT name, extract(epoch FROM now() - last_success) FROM agency_agent WHERE last_success IS NOT NULL")
        return {name: float(age) for name, age in cursor.fetchall()}


def _redis() -> list[str]:
    """Redis carries messages and counts requests; without it work goes on at the agents' periods at best."""
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)
    try:
        client.set("gridbroker:written", 1, ex=60)
    except (redis.ConnectionError, redis.TimeoutError, OSError):
        return ["Redis does not answer: no messages between agents, no limits of requests"]
    except redis.RedisError as error:
        return [f"Redis takes no writes: {type(error).__name__}"]
    finally:
        client.close()
    return []


def _database() -> list[str]:
    """A connection of its own each time: whether a new one can be had is part of the question."""
    own = connection.copy()
    limits = f"-c statement_timeout={PATIENCE_S * 500:.0f} -c lock_timeout={PATIENCE_S * 500:.0f}"
    own.settings_dict["OPTIONS"] |= {"connect_timeout": 2, "options": limits}
    timer = threading.Timer(PATIENCE_S, cut, [own])
    timer.daemon = True
    timer.start()
    try:
        _write(own)
        return [*_late_agents(ages(own)), *moverless(own, MOVER_LATE_S)]
    except (DatabaseError, InterfaceError) as error:
        return [in_words(error)]
    finally:
        timer.cancel()
        own.close()


def _write(own: BaseDatabaseWrapper) -> None:
    """Write, unless another process has done so lately or is at it."""
    own.ensure_connection()
    with own.cursor() as cursor:
        cursor.execute("SELECT 1 FROM agency_writeprobe WHERE at > clock_timestamp() - make_interval(secs => %s)", [EVERY_S])
        if cursor.fetchone():
            return
        own.set_autocommit(False)
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('agency_writeprobe'))")
        if cursor.fetchone() == (True,):
            cursor.execute("TRUNCATE agency_writeprobe")
            cursor.execute(
                "INSERT INTO agency_writeprobe (id, at, filler) VALUES (1, clock_timestamp(), %s)", [os.urandom(FILLER)]
            )
        own.commit()
        own.set_autocommit(True)


def _late_agents(ages: dict[str, float]) -> list[str]:
    """A sentence for each enabled agent that should have ended a run by now."""
    late = []
    for name in AGENTS:
        if not gdpconfig.value("agents", f"ENABLED_{name}"):
            continue
        limit = late_after_s(gdpconfig.value("agents", f"PERIOD_{name}"))
        age = ages.get(name)
        if age is None:
            late.append(f"agent {name} has never ended a run")
        elif age > limit:
            late.append(f"agent {name} last ended a run {age:.0f} s ago, expected within {limit:.0f} s")
    return late


_BY_CODE = {
    "53100": "the disk of the database is full",
    "53200": "the database is out of memory",
    "53300": "the database has no connection left: too many clients",
    "25006": "the database takes no writes",
    "57014": f"the database did not take a write within {PATIENCE_S:g} s",
    "55P03": f"the database did not take a write within {PATIENCE_S:g} s",
    "42P01": "the database has not the tables of this release: run manage.py migrate",
    "42501": "the role of this process may not write to the database",
}
_BY_TEXT = {
    "No space left on device": _BY_CODE["53100"],
    "too many clients": _BY_CODE["53300"],
    "remaining connection slots": _BY_CODE["53300"],
    "too many connections": _BY_CODE["53300"],
    "starting up": "the database is starting",
    "shutting down": "the database is shutting down",
    "recovery": "the database recovers after a crash",
    "password authentication failed": "the database refuses the password of this process",
    "does not exist": "the database of this process does not exist",
    "timeout expired": f"the database does not answer within {PATIENCE_S:g} s",
    "closed the connection": f"the database does not answer within {PATIENCE_S:g} s",
    "Connection refused": "nothing listens at the address of the database",
    "No such file": "nothing listens at the address of the database",
}
"""An error while connecting has no code, only its text."""


def in_words(error: DatabaseError | InterfaceError) -> str:
    """The cause of a failure; never the text of the error, which names hosts and users."""
    if words := _BY_CODE.get(getattr(error.__cause__, "pgcode", None) or ""):
        return words
    text = str(error)
    return next((words for sign, words in _BY_TEXT.items() if sign in text), f"the database fails: {type(error).__name__}")
