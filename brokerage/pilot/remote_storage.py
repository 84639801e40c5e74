"""Reading and writing files at a storage server by signed addresses, as a client: pilots, movers and the broker.

What an answer means is told by exceptions that a file system would raise too: FileNotFoundError, FileExistsError, PermissionError
(the address does not allow it), OSError with ENOSPC, and StorageDown where the server is not there or its root is not. No
exception holds an address: whoever reads one may use it.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import select
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from brokerage.pilot.connections import connected, free, is_kept
from brokerage.pilot.copying import Sum
from brokerage.pilot.storage_root import StorageDown

SILENT_S = 10.0
"""A connection that brings nothing for so long is given up; a download goes on over another one."""
PATIENCE_S = 60.0
"""A download in which nothing came for so long, over any number of connections, has failed."""
ANSWER_S = 600.0
"""How long a server may take to put a large file on its disk and read it back."""
CHUNK = 1 << 18
SMALL = 1 << 16
"""A body up to this size is sent at once; with a larger one the server is asked first."""
CONTINUE_S = 1.0
LOOK_S, LARGEST_LOOK = 5.0, 65_536
FAULT = "X-Storage-Fault"
PAUSE_S = 0.2
_LONGEST_SIZE = 19

Check = Callable[[], None]


def no_check() -> None:
    """Nothing is to be looked at between two chunks."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at a server: size, adler32 (empty: not known) and the tag of this very file."""

    size: int
    checksum: str
    etag: str


class _Cut(Exception):
    """The connection ended or brought nothing any more; the text says how."""


def download(storage: str, url: str, target: Path, check: Check = no_check) -> Sum:
    """Bring a file to the new file `target`. `check` is called before each chunk and may raise to stop."""
    coming = Download(storage, url, check)
    with target.open("xb", buffering=0) as out:
        for chunk in coming.chunks():
            rest = memoryview(chunk)
            while rest:
                rest = rest[out.write(rest) :]
    return Sum(coming.size, f"{coming.adler:08x}")


@dataclass(slots=True)
class Download:
    """What came of a file until now: bytes, their adler32, of which file, and when the last came. `whole`: its size there.

    Once it has begun, a connection that is lost is followed by another one, which goes on where the last one ended.
    """

    storage: str
    url: str
    check: Check = no_check
    size: int = 0
    adler: int = 1
    whole: int = -1
    etag: str = ""
    heard: float = 0.0

    def chunks(self) -> Iterator[bytes]:
        """The file, chunk by chunk."""
        while True:
            try:
                yield from self._go_on()
                return
            except (_Cut, StorageDown) as cut:
                if not self.etag or time.monotonic() - self.heard > PATIENCE_S:
                    raise (cut if isinstance(cut, StorageDown) else StorageDown(self.storage, str(cut))) from cut
            self.check()
            time.sleep(PAUSE_S)

    def _go_on(self) -> Iterator[bytes]:
        """The rest over one connection. Raises _Cut."""
        headers = {"Range": f"bytes={self.size}-", "If-Match": self.etag} if self.size else {}
        with connected(self.storage, self.url, SILENT_S) as connection:
            response = _answer(self.storage, connection, "GET", self.url, headers)
            if response.status != (206 if self.size else 200):
                _refuse(self.storage, response)
            self.etag = response.headers.get("ETag", "")
            self.heard = self.heard or time.monotonic()  # later on only bytes count: heads alone bring no file
            left = response.length or 0
            self.whole = self.size + left
            while left > 0:
                self.check()
                chunk = _piece(response, min(CHUNK, left))
                self.adler, self.size, left = zlib.adler32(chunk, self.adler), self.size + len(chunk), left - len(chunk)
                self.heard = time.monotonic()
                yield chunk
            free(connection, response)


def _piece(response: http.client.HTTPResponse, size: int) -> bytes:
    try:
        chunk = response.read1(size)
    except (OSError, http.client.HTTPException) as problem:
        raise _Cut(_words(problem)) from problem
    if not chunk:
        raise _Cut("its server ended the connection")
    return chunk


def upload(
    storage: str, url: str, source: int, size: int, checksum: str, check: Check = no_check, *, hold: bool = False
) -> RemoteFile:
    """Send an open file of `size` bytes, see `send`."""
    return send(storage, url, chunks_of(source, size, check), size, checksum, check, hold=hold)


def chunks_of(source: int, size: int, check: Check = no_check) -> Iterator[bytes]:
    """The first `size` bytes of an open file, chunk by chunk."""
    at = 0
    while at < size:
        check()
        chunk = os.pread(source, min(CHUNK, size - at), at)
        if not chunk:
            raise OSError(errno.EIO, "the file has become shorter while it was sent")
        at += len(chunk)
        yield chunk


def send(
    storage: str, url: str, chunks: Iterator[bytes], size: int, checksum: str, check: Check = no_check, *, hold: bool = False
) -> RemoteFile:
    """Send chunks that are `size` bytes together; what stands there then, on the disk and read back.

    The same content under the name is good, other content raises FileExistsError. With `hold` the server keeps it as a part until
    `publish`, and `checksum` may be empty. OSError when what stands there is not what was sent.
    """
    headers = {
        "Content-Length": str(size),
        **({"X-Adler32": checksum} if checksum else {}),
        **({"X-Hold": "yes"} if hold else {}),
    }
    try:
        with connected(storage, url, SILENT_S) as connection:
            if size > SMALL:
                headers["Expect"] = "100-continue"
            _begin(connection, "PUT", url, headers)
            adler = _send_body(connection, chunks) if size <= SMALL or _is_awaited(connection) else None
            _await(connection, check)
            response = connection.getresponse()
            if response.status not in (200, 201, 202):
                _refuse(storage, response)
            stands = _file(response, size)
            if adler is not None:
                free(connection, response)
    except (http.client.HTTPException, ConnectionError, TimeoutError, _Cut) as problem:
        raise StorageDown(storage, _words(problem)) from problem
    if adler is not None and stands.checksum != f"{adler:08x}":
        raise OSError(errno.EIO, f"sent was adler32 {adler:08x}, at the server stands {stands.checksum or 'something else'}")
    return stands


def piece(storage: str, url: str, begin: int, size: int) -> bytes:
    """So many bytes of a file from `begin` on, fewer at its end; somebody waits for them, so they come soon or not at all."""
    until = time.monotonic() + SILENT_S
    headers = {"Range": f"bytes={begin}-{begin + size - 1}"}
    try:
        with connected(storage, url, SILENT_S) as connection:
            response = _answer(storage, connection, "GET", url, headers)
            if response.status != 206 and not (response.status == 200 and begin == 0):
                _refuse(storage, response)
            content = b""
            while len(content) < size and (part := response.read1(size - len(content))):
                content += part
                if time.monotonic() > until:
                    raise _Cut("its server is too slow")
            if response.length == 0:  # else it sends more than was asked for, and nobody reads that to its end
                free(connection, response)
            return content
    except (http.client.HTTPException, ConnectionError, TimeoutError, _Cut) as problem:
        raise StorageDown(storage, _words(problem)) from problem


def publish(storage: str, url: str, etag: str) -> None:
    """Give a part that is held its name. FileExistsError, FileNotFoundError (there is no such part), StorageDown."""
    _ask(storage, "PUT", url, {"X-Publish": etag, "Content-Length": "0"})


def head(storage: str, url: str, *, summed: bool = True, seconds: float = ANSWER_S) -> RemoteFile:
    """What stands under a name; `summed`: the server reads the file where it does not know its adler32."""
    response = _ask(storage, "HEAD", url, {"Want-Digest": "adler32"} if summed else {}, seconds)
    size = response.headers.get("Content-Length") or "0"
    if not (size.isascii() and size.isdigit() and len(size) <= _LONGEST_SIZE):
        raise StorageDown(storage, "its server tells no size of a file")
    return _file(response, int(size))


def delete(storage: str, url: str, etag: str = "", size: int | None = None) -> int:
    """Remove a file, if it has this tag or size where one is told; how many were there."""
    headers = {**({"If-Match": etag} if etag else {}), **({"X-Size": str(size)} if size is not None else {})}
    return int(_ask(storage, "DELETE", url, headers).headers.get("X-Removed") or 0)


def look(storage: str, url: str) -> dict[str, Any]:
    """How the storage is, as its server tells: fault, writable, free, size."""
    until = time.monotonic() + LOOK_S
    with connected(storage, url, LOOK_S) as connection:
        try:
            response = _answer(storage, connection, "GET", url, {})
            if response.status != 200:
                _refuse(storage, response)
            content = b""
            while len(content) < LARGEST_LOOK and (part := response.read1(CHUNK)):
                content += part
                if time.monotonic() > until:
                    raise _Cut("its server is too slow")
            document = json.loads(content)
        except (OSError, ValueError, http.client.HTTPException, _Cut) as problem:
            if isinstance(problem, StorageDown | PermissionError):
                raise
            raise StorageDown(storage, _words(problem)) from problem
    if not isinstance(document, dict) or document.get("name") != storage:
        raise StorageDown(storage, "its server serves another storage")
    return document


def _ask(storage: str, method: str, url: str, headers: dict[str, str], seconds: float = ANSWER_S) -> http.client.HTTPResponse:
    """A request without a body to speak of."""
    try:
        with connected(storage, url, seconds) as connection:
            response = _answer(storage, connection, method, url, headers)
            if response.status >= 300:
                _refuse(storage, response)
            free(connection, response)
            return response
    except (http.client.HTTPException, ConnectionError, TimeoutError, _Cut) as problem:
        raise StorageDown(storage, _words(problem)) from problem


def _begin(connection: http.client.HTTPConnection, method: str, url: str, headers: dict[str, str]) -> None:
    parts = urlsplit(url)
    connection.putrequest(method, f"{parts.path or '/'}?{parts.query}", skip_accept_encoding=True)
    for name, value in {**headers, **({} if is_kept() else {"Connection": "close"})}.items():
        connection.putheader(name, value)
    connection.endheaders()


def _answer(
    storage: str, connection: http.client.HTTPConnection, method: str, url: str, headers: dict[str, str]
) -> http.client.HTTPResponse:
    """The head of an answer. Raises _Cut, StorageDown."""
    try:
        _begin(connection, method, url, headers)
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as problem:
        raise _Cut(_words(problem)) from problem
    if response.status == 503:
        _refuse(storage, response)
    return response


def _is_awaited(connection: http.client.HTTPConnection) -> bool:
    """Whether the server wants the body that was announced; one that does not say so in time gets it."""
    sock = connection.sock
    if not isinstance(sock, socket.socket) or hasattr(sock, "context") or not select.select([sock], [], [], CONTINUE_S)[0]:
        return True
    return sock.recv(16, socket.MSG_PEEK)[9:12] in (b"100", b"")


def _send_body(connection: http.client.HTTPConnection, chunks: Iterator[bytes]) -> int | None:
    """Send it; its adler32, or None when the server has ended the connection before, and may have said why."""
    adler = 1
    for chunk in chunks:
        try:
            connection.send(chunk)
        except (BrokenPipeError, ConnectionResetError):
            return None
        adler = zlib.adler32(chunk, adler)
    return adler


def _await(connection: http.client.HTTPConnection, check: Check) -> None:
    """Wait for the answer, and look meanwhile whether to go on."""
    until = time.monotonic() + ANSWER_S
    while not select.select([connection.sock], [], [], 0.5)[0]:
        check()
        if time.monotonic() > until:
            raise _Cut("its server does not answer")


def _file(response: http.client.HTTPResponse, size: int) -> RemoteFile:
    return RemoteFile(size, response.headers.get("X-Adler32", ""), response.headers.get("ETag", ""))


def _refuse(storage: str, response: http.client.HTTPResponse) -> NoReturn:
    """Raise what an answer means."""
    detail = f"its server answers with {response.status}"
    with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
        detail = str(json.loads(response.read(LARGEST_LOOK)).get("detail") or detail)[:200]
    if response.status == 503:
        raise StorageDown(storage, _without_name(response.headers.get(FAULT) or detail, storage))
    if response.status == 403:
        raise PermissionError(errno.EACCES, f"{storage}: {detail}")
    if response.status in (404, 410):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if response.status == 409:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    if response.status == 507:
        raise OSError(errno.ENOSPC, f"{storage}: {os.strerror(errno.ENOSPC)}")
    raise OSError(errno.EIO, f"{storage}: {detail}")


def _without_name(fault: str, storage: str) -> str:
    return fault.removeprefix(f"storage {storage} is down: ")


def _words(problem: BaseException) -> str:
    """What is wrong, without an address."""
    if isinstance(problem, _Cut):
        return str(problem)
    return f"its server: {getattr(problem, 'strerror', None) or str(problem) or type(problem).__name__}"
