"""Fetching one feed, from a listed host or a file in a listed folder, within one deadline and one size.

Here: bytes in, or `FeedUnavailable` with the reason. Not here: what the bytes mean (`document`) and what becomes of them
(`refresh`). Only the standard library: redirections are followed to listed hosts alone, no proxy of the environment is used,
nothing is asked of a host before it is found on the list.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import stat
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

MOST_REDIRECTIONS = 3
PORTS = {"http": 80, "https": 443}
_CHUNK = 65536
_REDIRECTIONS = (301, 302, 303, 307, 308)
_OK = 200


class FeedUnavailable(Exception):
    """The feed gave nothing; the text says why."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Hosts (`name` or `name:port`) and folders that may be read; seconds for all of it; bytes."""

    hosts: Sequence[str]
    folders: Sequence[str]
    timeout_s: float
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """A document, and of when its place says that it is."""

    body: bytes
    modified_at: datetime | None


def fetch(place: str, limits: Limits) -> FeedDocument:
    """The document at an http(s) address or an absolute path. Raises FeedUnavailable."""
    if "://" not in place:
        return _file(place, limits)
    deadline = time.monotonic() + limits.timeout_s
    for _ in range(MOST_REDIRECTIONS + 1):
        answer = _ask(checked(place, limits.hosts), limits, deadline)
        if isinstance(answer, FeedDocument):
            return answer
        target = urljoin(place, answer)
        if place.startswith("https:") and not target.startswith("https:"):
            raise FeedUnavailable("redirected from https to something else")
        place = target
    raise FeedUnavailable(f"redirected more than {MOST_REDIRECTIONS} times")


def checked(place: str, hosts: Sequence[str]) -> SplitResult:
    """The parts of an address that may be asked. Raises FeedUnavailable."""
    try:
        parts = urlsplit(place)
        port = parts.port
    except ValueError as error:
        raise FeedUnavailable(f"not an address: {error}") from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise FeedUnavailable("not an http or https address")
    if parts.username is not None or parts.password is not None:
        raise FeedUnavailable("an address with a user or password")
    default = PORTS[parts.scheme]
    host, port = parts.hostname.lower(), port or default
    listed = {entry.strip().lower() for entry in hosts}
    shown = f"[{host}]" if ":" in host else host
    if f"{shown}:{port}" not in listed and not (port == default and (shown in listed or host in listed)):
        raise FeedUnavailable(f"the host {shown}:{port} is not listed in FEED_HOSTS")
    return parts


class TimedSocket:
    """A socket that is cut at the deadline, whatever the other side does meanwhile."""

    def __init__(self, parts: SplitResult, deadline: float) -> None:
        self.socket: socket.socket = _connected(str(parts.hostname), parts.port or PORTS[parts.scheme], deadline)
        self.expired = False
        self._timer = threading.Timer(max(deadline - time.monotonic(), 0.0), self._cut)
        self._timer.daemon = True
        self._timer.start()

    def secure(self, host: str) -> None:
        """Speak TLS from here on, with a host that has a certificate for this name."""
        context = ssl.create_default_context()
        wrapped = context.wrap_socket(self.socket, server_hostname=host, do_handshake_on_connect=False)
        self.socket = wrapped
        wrapped.do_handshake()

    def _cut(self) -> None:
        self.expired = True
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of it."""
        self._timer.cancel()
        self.socket.close()


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """A connection to the first address of a host that answers; each has its part of the time that is left."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    fault: OSError = OSError("the host has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        left = _seconds_left(deadline)
        candidate = socket.socket(family, kind, protocol)
        try:
            candidate.settimeout(left / (len(addresses) - number))
            candidate.connect(address)
            candidate.settimeout(left)
        except OSError as error:
            candidate.close()
            fault = error
        else:
            return candidate
    raise fault


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timeout")
    return left


def _ask(parts: SplitResult, limits: Limits, deadline: float) -> FeedDocument | str:
    """The document, or where it is said to be. Raises FeedUnavailable."""
    watched = None
    try:
        watched = TimedSocket(parts, deadline)
        if parts.scheme == "https":
            watched.secure(str(parts.hostname))
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port or PORTS[parts.scheme])
        connection.sock = watched.socket
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target, headers={"Accept": "application/json", "Connection": "close"})
        response = connection.getresponse()
        if response.status in _REDIRECTIONS:
            return response.getheader("Location") or ""
        if response.status != _OK:
            raise FeedUnavailable(f"the answer was {response.status} {response.reason}"[:200])
        body = _body(response, limits.max_bytes)
        if watched.expired:
            raise TimeoutError("timeout")
        return FeedDocument(body, _time(response.getheader("Last-Modified")))
    except (FeedUnavailable, OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, TimeoutError) or (watched is not None and watched.expired):
            raise FeedUnavailable(f"timeout: no whole answer within {limits.timeout_s:g} s") from None
        if isinstance(error, FeedUnavailable):
            raise
        raise FeedUnavailable(f"{type(error).__name__}: {error}"[:200]) from None
    finally:
        if watched is not None:
            watched.close()


def _body(response: http.client.HTTPResponse, max_bytes: int) -> bytes:
    chunks, size = [], 0
    while chunk := response.read(_CHUNK):
        size += len(chunk)
        if size > max_bytes:
            raise FeedUnavailable(f"more than {max_bytes} bytes")
        chunks.append(chunk)
    if response.length:
        raise FeedUnavailable(f"truncated: {response.length} bytes are missing")
    return b"".join(chunks)


def _time(text: str | None) -> datetime | None:
    try:
        read = parsedate_to_datetime(text) if text else None
    except (TypeError, ValueError):
        return None
    return read.replace(tzinfo=UTC) if read is not None and read.tzinfo is None else read


def _file(place: str, limits: Limits) -> FeedDocument:
    try:
        path = Path(place).resolve(strict=True)
        if not Path(place).is_absolute() or not any(path.is_relative_to(Path(f).resolve()) for f in limits.folders):
            raise FeedUnavailable("the file is not in a folder listed in FEED_FOLDERS")
        file = path.stat()
        if not stat.S_ISREG(file.st_mode):
            raise FeedUnavailable("not a file")
        if file.st_size > limits.max_bytes:
            raise FeedUnavailable(f"more than {limits.max_bytes} bytes")
        return FeedDocument(path.read_bytes(), datetime.fromtimestamp(file.st_mtime, UTC))
    except (OSError, ValueError, RuntimeError) as error:
        raise FeedUnavailable(f"{getattr(error, 'strerror', None) or error}"[:200]) from None
