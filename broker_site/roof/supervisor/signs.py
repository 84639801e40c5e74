"""Signs of life: a process counts as well while it answers, not because it has a pid.

Each is asked from a thread of its own, so that one that is frozen holds nobody else up. Here: the questions, and how long silence
may last. Not here: ending and starting processes, which callers pass in.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from math import inf
from typing import Generic, TypeVar

import psycopg2
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from broker_site.roof.supervisor.console import Event

ASK_EVERY_S, ANSWER_S = 2.0, 10.0
"""How often is asked, and how long an answer may take."""
MOST_PATIENCE = 16
"""A process that is frozen again right after it was started anew gets twice as long each time, up to so many times."""

Answer = TypeVar("Answer")


class Probe(Generic[Answer]):
    """The same question again and again. `ask` gives None for no answer, and no error."""

    def __init__(self, name: str, ask: Callable[[], Answer | None], period_s: float) -> None:
        self.value: Answer | None = None
        self.at = time.monotonic()
        """When the last answer came; at first, when the asking began."""
        self._ask, self._period_s = ask, period_s
        self._closed = threading.Event()
        threading.Thread(target=self._run, name=f"probe-{name}", daemon=True).start()

    def close(self) -> None:
        """Ask no more. A question under way is not waited for."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._period_s):
            self.value = self._ask()
            if self.value is not None:
                self.at = time.monotonic()


@dataclass(slots=True)
class Watched:
    """A process that is asked. `began` tells when it was started (monotonic), None while it does not run; `end` kills it.

    A process of somebody else has no `end`: its silence is only told. `start_s` is how long the first answer may take.
    """

    name: str
    probe: Probe[bool]
    began: Callable[[], float | None]
    end: Callable[[], None] | None
    limit_s: float
    start_s: float = 0.0
    patience: int = 1
    ended_at: float = 0.0

    def silence(self, since: float) -> float | None:
        """How long it has not answered, if that is too long. What was before `since` does not count."""
        began, now = self.began(), time.monotonic()
        if began is None:
            return None
        if self.probe.at > max(began, self.ended_at):
            self.patience = 1
        limit = max(self.limit_s * self.patience, self.start_s if self.probe.at < began else 0.0)
        silence = now - max(self.probe.at, began, since)
        return silence if silence > limit else None


@dataclass(slots=True)
class Signs:
    """All processes that are asked. `look` is to be called about once a second."""

    watched: list[Watched] = field(default_factory=list)
    others: list[Probe[float]] = field(default_factory=list)
    """Questions on which somebody else decides."""
    _looked: float = field(default_factory=time.monotonic)
    _since: float = 0.0

    def look(self) -> Iterator[Event]:
        """End what has been silent for too long."""
        now = time.monotonic()
        if now - self._looked > ANSWER_S:
            self._since = now  # we were stopped ourselves, and with us those who ask
        self._looked = now
        for each in self.watched:
            silence = each.silence(self._since)
            if silence is None:
                if each.end is None:
                    yield Event(each.name, "", f"{each.name} answers again")
                continue
            text = f"{each.name} has not answered for {silence:.0f} s"
            if each.end is None:
                yield Event(each.name, "silent", text)
                continue
            each.end()
            each.patience, each.ended_at = min(2 * each.patience, MOST_PATIENCE), now
            yield Event(each.name, "frozen", f"{text}: ended, to be started anew")

    def close(self) -> None:
        """Ask no more."""
        for each in self.watched:
            each.probe.close()
        for probe in self.others:
            probe.close()


def web(url: str) -> bool | None:
    """Whether the web server answers, with whatever status."""
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=ANSWER_S):  # noqa: S310 - our own http URL
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, http.client.HTTPException):
        return None


def postgres(database_url: str) -> bool | None:
    """Whether PostgreSQL answers; a refusal in its own words (too many clients, recovery) is an answer."""
    limit_ms = int(1000 * ANSWER_S)
    try:
        connection = psycopg2.connect(
            database_url,
            connect_timeout=int(ANSWER_S),
            tcp_user_timeout=limit_ms,
            options=f"-c statement_timeout={limit_ms}",
            application_name="gridbroker-supervisor",
        )
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return True
    except psycopg2.Error as error:
        return True if error.pgcode or "FATAL:" in str(error) else None


def redis_server(url: str) -> bool | None:
    """Whether Redis answers; an error in its own words is an answer."""
    client = redis.Redis.from_url(
        url, socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S, retry=Retry(NoBackoff(), 0), client_name=None
    )
    try:
        return bool(client.ping())
    except (redis.ResponseError, redis.AuthenticationError, redis.BusyLoadingError):
        return True
    except (redis.RedisError, OSError):
        return None
    finally:
        client.close()


def agents(database_url: str) -> float | None:
    """Seconds since any agent last began, infinity where none ever did; None when the database does not say."""
    try:
        connection = psycopg2.connect(database_url, connect_timeout=2, options="-c statement_timeout=2000")
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM clock_timestamp() - max(last_start)) FROM agency_agent")
            row = cursor.fetchone()
            return float(row[0]) if row and row[0] is not None else inf
    except psycopg2.Error:
        return None
