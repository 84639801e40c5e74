"""Signs of life: a process counts as well while it answers, not because it has a pid.

Each is asked from a thread of its own, so that one that is frozen holds nobody else up. Here: the questions, and how long silence
may last. Not here: ending and starting processes, which callers pass in.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, Generic, TypeVar

import psycopg2
import psycopg2.extensions
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
    """The same question again and again. `ask` gives None for no answer, and no error; its `close`, if any, ends it."""

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
        if close := getattr(self._ask, "close", None):
            close()


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


class Web:
    """Whether the web server answers, with whatever status. On a new connection each time, which any of its processes takes."""

    def __init__(self, url: str) -> None:
        self._address = url.removeprefix("http://")

    def __call__(self) -> bool | None:
        connection = http.client.HTTPConnection(self._address, timeout=ANSWER_S)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status > 0
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


class Database:
    """A connection that is kept from one question to the next: a new one costs both ends twenty times as much as the question.

    One that fails is opened anew with the next question.
    """

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds = url, seconds
        self._connection: psycopg2.extensions.connection | None = None

    def first_row(self, question: str) -> tuple[Any, ...] | None:
        """The first row of the answer; psycopg2.Error for none."""
        try:
            if self._connection is None:
                self._connection = psycopg2.connect(
                    self._url,
                    connect_timeout=int(self._seconds),
                    tcp_user_timeout=int(1000 * self._seconds),
                    options=f"-c statement_timeout={int(1000 * self._seconds)}",
                    application_name="gridbroker-supervisor",
                )
                self._connection.autocommit = True
            with self._connection.cursor() as cursor:
                cursor.execute(question)
                return cursor.fetchone()
        except psycopg2.Error:
            self.close()
            raise

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


SSL_REQUEST = struct.pack("!ii", 8, 80877103)
"""What a client of PostgreSQL may ask first; it is answered with a byte, before anybody has to say who he is."""


class PostgresServer:
    """Whether PostgreSQL answers; a refusal in its own words (too many clients, recovery) is an answer.

    Two have to: the one that takes new connections, and the one behind the connection that we have.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url, ANSWER_S)
        parts = psycopg2.extensions.parse_dsn(url)
        self._host, self._port = parts.get("host", "localhost"), parts.get("port", "5432")

    def __call__(self) -> bool | None:
        try:
            if not self._takes_connections():
                return None
            self._database.first_row("SELECT 1")
            return True
        except OSError:
            return None
        except psycopg2.Error as error:
            return True if error.pgcode or "FATAL:" in str(error) else None

    def _takes_connections(self) -> bool:
        if "," in self._host:
            return True  # several hosts, of which libpq chooses one
        local = self._host.startswith("/")
        with socket.socket(socket.AF_UNIX) if local else socket.create_connection((self._host, self._port), ANSWER_S) as line:
            line.settimeout(ANSWER_S)
            if local:
                line.connect(f"{self._host}/.s.PGSQL.{self._port}")
            line.sendall(SSL_REQUEST)
            return bool(line.recv(1))

    def close(self) -> None:
        self._database.close()


class RedisServer:
    """Whether Redis answers; an error in its own words is an answer."""

    def __init__(self, url: str) -> None:
        once = Retry(NoBackoff(), 0)
        self._client = redis.Redis.from_url(url, socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S, retry=once)

    def __call__(self) -> bool | None:
        try:
            return bool(self._client.ping())
        except (redis.ResponseError, redis.AuthenticationError, redis.BusyLoadingError):
            return True
        except (redis.RedisError, OSError):
            return None

    def close(self) -> None:
        self._client.close()


class AgentRuns:
    """Seconds since any agent last began, infinity where none ever did; None when the database does not say."""

    def __init__(self, url: str) -> None:
        self._database = Database(url, 2.0)

    def __call__(self) -> float | None:
        try:
            row = self._database.first_row("SELECT extract(epoch FROM clock_timestamp() - max(last_start)) FROM agency_agent")
        except psycopg2.Error:
            return None
        return float(row[0]) if row and row[0] is not None else inf

    def close(self) -> None:
        self._database.close()
