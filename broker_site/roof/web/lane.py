"""A lane: threads for requests of one kind, and the requests that wait for them."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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


Ask = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


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
    _asks: SimpleQueue[Ask | None] = field(init=False, repr=False, default_factory=SimpleQueue)
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
            self._start_thread(self.inside)
            loop = asyncio.get_running_loop()
            done: asyncio.Future[T] = loop.create_future()
            done.add_done_callback(self._leave)
        except BaseException:
            self.inside -= 1
            raise
        self._hand_over((loop, done, work))
        return await done

    def give_nothing(self) -> None:
        """Give None to those whose work is done and gave it."""
        while self._done:
            _settle(self._done.popleft(), None, None)

    def _leave(self, done: asyncio.Future[Any]) -> None:
        self.inside -= 1

    def _start_thread(self, wanted: int) -> None:
        """One more thread, where fewer run than are `wanted`."""
        if len(self._started) < min(wanted, self.threads):
            thread = threading.Thread(target=self._serve, name=self.name, daemon=True)
            self._started.append(thread)
            thread.start()

    def _hand_over(self, ask: Ask) -> None:
        self._asks.put(ask)

    def _serve(self) -> None:
        """A thread: one request after the other, with the thread's own database connections."""
        databases = connections.all()
        while (ask := self._asks.get()) is not None:
            with self._working(databases):
                result, fault = done_in_thread(ask[2])
            self._give(ask, result, fault)

    @contextmanager
    def _working(self, databases: Sequence[BaseDatabaseWrapper]) -> Iterator[None]:
        """For the time of the block the thread is one that `cut_overdue` looks at."""
        thread = threading.get_ident()
        with self._lock:
            self._works[thread] = _Work(time.monotonic() + self.patience_s, databases)
        try:
            yield
        finally:
            with self._lock:
                del self._works[thread]

    def _give(self, ask: Ask, result: Any, fault: BaseException | None) -> None:
        loop, done, _ = ask
        if result is None and fault is None:
            self._done.append(done)
            return
        with suppress(RuntimeError):  # the server ends, its loop is closed
            loop.call_soon_threadsafe(_settle, done, result, fault)

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


def done_in_thread(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What the work gives, or its fault, which belongs to who waits for it."""
    try:
        return work(), None
    except BaseException as fault:  # noqa: BLE001 - as above
        return None, fault


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
