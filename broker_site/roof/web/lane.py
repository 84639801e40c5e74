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
    _started: int = field(init=False, default=0)
    _idle: list[SimpleQueue[bool]] = field(init=False, repr=False, default_factory=list)
    """How to call each thread that waits for requests. The last one is called first: in turn, they would come to their
    connections, and these to their servers, when what they used last is in no cache any more.
    """
    _waiting: deque[Ask] = field(init=False, repr=False, default_factory=deque)
    _closed: bool = field(init=False, default=False)
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
            loop = asyncio.get_running_loop()
            done: asyncio.Future[T] = loop.create_future()
            done.add_done_callback(self._leave)
        except BaseException:
            self.inside -= 1
            raise
        ask = (loop, done, work)
        try:
            self._hand_over(ask)
        except (RuntimeError, MemoryError):  # the system has no thread more
            if self._is_withdrawn(ask):
                self.inside -= 1
                raise
        return await done

    def give_nothing(self) -> None:
        """Give None to those whose work is done and gave it."""
        while self._done:
            _settle(self._done.popleft(), None, None)

    def _leave(self, done: asyncio.Future[Any]) -> None:
        self.inside -= 1

    def _hand_over(self, ask: Ask) -> None:
        with self._lock:
            self._waiting.append(ask)
            call = self._idle.pop() if self._idle else None
        self._call(call)

    def _is_withdrawn(self, ask: Ask) -> bool:
        """Take an ask back; False where a thread has it."""
        with self._lock:
            if ask not in self._waiting:
                return False
            self._waiting.remove(ask)
            return True

    def _call(self, thread: SimpleQueue[bool] | None) -> None:
        """Have this thread work, or a new one if there may be more. In the event loop only.

        Raises RuntimeError or MemoryError where none can be started.
        """
        if thread is not None:
            thread.put(True)
        elif self._started < self.threads:
            threading.Thread(target=self._live, name=self.name, daemon=True).start()
            self._started += 1

    def _live(self) -> None:
        """A thread: it works until nobody waits, and again when it is called; with database connections of its own."""
        databases, calls = connections.all(), SimpleQueue[bool]()
        goes_on = True
        while goes_on:
            self._serve(databases, calls)
            goes_on = calls.get()

    def _serve(self, databases: Sequence[BaseDatabaseWrapper], calls: SimpleQueue[bool]) -> None:
        """Work until nobody waits."""
        while asks := self._next(calls):
            for ask in asks:
                with self._working(databases):
                    result, fault = done_in_thread(ask[2])
                self._give(ask, result, fault)

    def _next(self, calls: SimpleQueue[bool]) -> list[Ask]:
        with self._lock:
            return self._take(1, calls)

    def _take(self, most: int, calls: SimpleQueue[bool]) -> list[Ask]:
        """What a thread does next; where nobody waits it is idle from then on, to be called again. Under the lock.

        What nobody waits for any more is not begun: `inside` counts it no longer, so nothing else would limit how much that is.
        """
        asks: list[Ask] = []
        while self._waiting and len(asks) < most:
            ask = self._waiting.popleft()
            if not ask[1].cancelled():
                asks.append(ask)
        if not asks and self._closed:
            calls.put(False)
        elif not asks:
            self._idle.append(calls)
        return asks

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
        with self._lock:
            self._closed = True
            for calls in self._idle:
                calls.put(False)
            self._idle.clear()


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
        done.set_exception(_for_loop(fault))
    else:
        done.set_result(result)


def _for_loop(fault: BaseException) -> BaseException:
    """A fault as it may be given to who waits: a future takes no StopIteration, and what is no Exception would end the loop."""
    if isinstance(fault, Exception) and not isinstance(fault, StopIteration):
        return fault
    told = RuntimeError(f"{type(fault).__name__} in a thread")
    told.__cause__ = fault
    return told


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
