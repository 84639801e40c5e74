"""Connections to storage servers. A thread that sends much keeps them open between requests; others have one for each request.

Not here: what is asked over them (`remote_storage`).
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import select
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from brokerage.pilot.storage_root import StorageDown

CONNECT_S = 5.0

_OF_THREAD = threading.local()

Connection = http.client.HTTPConnection


class TooSlow(OSError):
    """All that was asked within `in_time` took too long; nothing is known of the storage."""

    def __init__(self, storage: str, seconds: float) -> None:
        super().__init__(errno.ETIME, f"storage {storage} is too slow: its server had not sent all within {seconds:g} s")


@contextlib.contextmanager
def kept_connections() -> Iterator[None]:
    """Within the block this thread keeps one open connection for each server, and closes them in the end."""
    idle: dict[tuple[type, str, int], Connection] = {}
    _OF_THREAD.idle = idle
    try:
        yield
    finally:
        del _OF_THREAD.idle
        for connection in idle.values():
            connection.close()


@contextlib.contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Within the block this thread talks to servers for so long at most, over any number of requests; then TooSlow.

    The time-outs of a connection are of its silence: a server that sends a byte now and then would never meet one.
    """
    _OF_THREAD.until, _OF_THREAD.allowed = time.monotonic() + seconds, seconds
    try:
        yield
    finally:
        del _OF_THREAD.until, _OF_THREAD.allowed


def is_kept() -> bool:
    """Whether this thread keeps its connections."""
    return hasattr(_OF_THREAD, "idle")


def free(connection: Connection, response: http.client.HTTPResponse) -> None:
    """The answer was read to its end, and all that was announced was sent: the connection may serve another request."""
    response.read()
    if is_kept() and not response.will_close and connection.sock is not None:
        _OF_THREAD.idle.setdefault(_server(connection), connection)


@contextlib.contextmanager
def connected(storage: str, url: str, seconds: float) -> Iterator[Connection]:
    """A connection to the server of an address; StorageDown when there is none. It is closed after, unless it is free."""
    if (left := _left(storage)) is not None:
        seconds = min(seconds, left)
    connection = _idle(url) or _new(storage, url, seconds)
    connection.sock.settimeout(seconds)
    try:
        with _ended(storage, connection, left):
            yield connection
    finally:
        if getattr(_OF_THREAD, "idle", {}).get(_server(connection)) is not connection:
            connection.close()


def _left(storage: str) -> float | None:
    """How long this thread may go on; None: it has no end. Raises TooSlow."""
    until: float | None = getattr(_OF_THREAD, "until", None)
    if until is None:
        return None
    if (left := until - time.monotonic()) <= 0:
        raise TooSlow(storage, _OF_THREAD.allowed)
    return left


@contextlib.contextmanager
def _ended(storage: str, connection: Connection, left: float | None) -> Iterator[None]:
    """End what goes on over the connection after this time, wherever in it the thread waits. What came until then may look
    whole and is not.
    """
    if left is None:
        yield
        return
    over, sock = threading.Event(), connection.sock

    def end() -> None:
        over.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of TLS, which would reckon with a reader that has ended

    timer = threading.Timer(left, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as problem:
        if over.is_set() or time.monotonic() >= _OF_THREAD.until:
            raise TooSlow(storage, _OF_THREAD.allowed) from problem
        raise
    finally:
        timer.cancel()
    if over.is_set():
        if getattr(_OF_THREAD, "idle", {}).get(_server(connection)) is connection:
            del _OF_THREAD.idle[_server(connection)]
        raise TooSlow(storage, _OF_THREAD.allowed)


def _new(storage: str, url: str, seconds: float) -> Connection:
    try:
        connection = _unopened(url)
        connection.timeout = min(CONNECT_S, seconds)
        connection.connect()
    except (OSError, ValueError) as problem:
        raise StorageDown(storage, f"its server: {getattr(problem, 'strerror', None) or problem}") from problem
    return connection


def _idle(url: str) -> Connection | None:
    """One that is kept; not one that its server has ended meanwhile, which shows as something to read."""
    if not is_kept():
        return None
    connection: Connection | None = _OF_THREAD.idle.pop(_server(_unopened(url)), None)
    if connection is not None and (connection.sock is None or select.select([connection.sock], [], [], 0)[0]):
        connection.close()
        return None
    return connection


def _unopened(url: str) -> Connection:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port)


def _server(connection: Connection) -> tuple[type, str, int]:
    return type(connection), connection.host, connection.port
