"""Threads for requests, apart by who asks: a lane that is taken up by its own requests keeps none of the others waiting."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

import psycopg2
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

T = TypeVar("T")


class Overloaded(Exception):
    """More requests wait for a thread of this lane than may wait."""


@dataclass(slots=True)
class _Work:
    """What a thread does now: until when it may, and the database connections that belong to the thread."""

    until: float
    databases: Sequence[BaseDatabaseWrapper]


_Ask = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


@dataclass(slots=True)
class Lane:
    """So many threads, so many requests that may wait for one, and the seconds that a request may keep its thread."""

    name: str
    threads: int
    most_waiting: int
    patience_s: float
    inside: int = 0
    """Requests that have a thread or wait for one."""
    _started: list[threading.Thread] = field(init=False, repr=False, default_factory=list)
    _asks: SimpleQueue[_Ask | None] = field(init=False, repr=False, default_factory=SimpleQueue)
    _done: deque[asyncio.Future[Any]] = field(init=False, repr=False, default_factory=deque)
    _works: dict[int, _Work] = field(init=False, repr=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` gives, done in a thread of this lane. Overloaded: it was not begun.

        None is given late, at the next call or `give_nothing`: nobody waits for it, and each wake of the loop costs as much as a
        short statement.
        """
        self.give_nothing()
        if self.inside >= self.threads + self.most_waiting:
            raise Overloaded(self.name)
        self.inside += 1
        try:
            if len(self._started) < min(self.inside, self.threads):
                thread = threading.Thread(target=self._serve, name=self.name, daemon=True)
                self._started.append(thread)
                thread.start()
            loop = asyncio.get_running_loop()
            done: asyncio.Future[T] = loop.create_future()
            done.add_done_callback(self._leave)
        except BaseException:
            self.inside -= 1
            raise
        self._asks.put((loop, done, work))
        return await done

    def give_nothing(self) -> None:
        """Give None to those whose work is done and gave it."""
        while self._done:
            _settle(self._done.popleft(), None, None)

    def _leave(self, done: asyncio.Future[Any]) -> None:
        self.inside -= 1

    def _serve(self) -> None:
        """A thread: one request after the other, with the thread's own database connections."""
        thread, databases = threading.get_ident(), connections.all()
        while (ask := self._asks.get()) is not None:
            loop, done, work = ask
            with self._lock:
                self._works[thread] = _Work(time.monotonic() + self.patience_s, databases)
            result: Any = None
            fault: BaseException | None = None
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - it belongs to who waits for the result
                fault = error
            with self._lock:
                del self._works[thread]
            if result is None and fault is None:
                self._done.append(done)
                continue
            try:
                loop.call_soon_threadsafe(_settle, done, result, fault)
            except RuntimeError:  # the server ends, its loop is closed
                return

    def cut_overdue(self) -> int:
        """Close the database's sockets under the threads that have worked too long: they get an error and are free again.

        A PostgreSQL that is frozen, or whose host went away, keeps to no time limit of its own.
        """
        n, now = 0, time.monotonic()
        with self._lock:  # so that the request that is cut is still the one that was overdue
            for work in self._works.values():
                if work.until <= now:
                    n += sum(cut(database) for database in work.databases)
        return n

    def close(self) -> None:
        """End the threads, each after what it does now."""
        for _ in self._started:
            self._asks.put(None)


def _settle(done: asyncio.Future[Any], result: Any, fault: BaseException | None) -> None:
    if done.cancelled():
        return
    if fault is not None:
        done.set_exception(fault)
    else:
        done.set_result(result)


def cut(database: BaseDatabaseWrapper) -> bool:
    """Close the socket of a connection under whoever waits at it; whether there was one."""
    connection = database.connection
    try:
        if connection is None or connection.closed:
            return False
        with socket.socket(fileno=os.dup(connection.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg2.Error):  # closed meanwhile, or by an earlier cut
        return False
    return True


@dataclass(frozen=True, slots=True)
class Lanes:
    """All lanes of a process.

    Jobs under way first: a heartbeat that does not come through costs a lease. Then pilots that ask; submissions and trials,
    which may reckon for a while, so that pages need not wait for them; probes; and everything that people do.
    """

    heartbeats: Lane
    pilots: Lane
    submissions: Lane
    probes: Lane
    people: Lane

    def all(self) -> tuple[Lane, ...]:
        """Every lane."""
        return (self.heartbeats, self.pilots, self.submissions, self.probes, self.people)

    def of(self, method: str, path: str) -> Lane:
        """The lane of a request."""
        if path in ("/readyz", "/metrics"):
            return self.probes
        if method == "POST":
            if path.startswith("/api/v1/jobs/") or path == "/api/v1/pilots/reports/":
                return self.heartbeats
            if path.startswith("/api/v1/pilots/"):
                return self.pilots
            if _RECKONS.fullmatch(path):
                return self.submissions
        return self.people


_RECKONS = re.compile(r"(/api/v1)?/tasks/(\d+/(brokerage/)?what-if/)?")


def lanes(people: int, pilots: int, statement_s: float) -> Lanes:
    """The lanes with so many threads for people, and for pilots' heartbeats; `statement_s`: the longest statement, 0 = any.

    A request keeps its thread for a few statements of the longest kind.
    """
    longest = statement_s or 20.0
    return Lanes(
        heartbeats=Lane("heartbeats", pilots, 1000, 3 * longest),
        pilots=Lane("pilots", pilots, 500, 3 * longest),
        submissions=Lane("submissions", 1, 50, 6 * longest),
        probes=Lane("probes", 1, 20, longest),
        people=Lane("people", people, 100, 6 * longest),
    )
