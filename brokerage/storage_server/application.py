"""The RSGI application of a storage server: judges an address, reads or writes the file in threads, and answers.

A disk that hangs holds threads and not the loop: whoever waits for it too long is told that the storage is down. Bodies must say
how long they are, and must come at a pace.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, Protocol, TypeVar

from brokerage.pilot.signed_urls import LISTING, MOST_BYTES, Grant, NotGranted, read_grant
from brokerage.pilot.storage_root import StorageDown
from brokerage.storage_server import reading
from brokerage.storage_server.open_files import OpenFiles, TooManyOpen
from brokerage.storage_server.served import BadName, NoKeys, Served, etag, parts_of
from brokerage.storage_server.uploads import Damaged, Stored, Upload, publish_part, remove_file

THREADS, MOST_UPLOADS, MOST_OF_JOB = 32, 200, 20
"""Threads at the disk, and files that come in at the same time, in all and of one job: none takes the places of all others."""
BLOCK = 1 << 20
"""Bytes of a body that are written at once."""
DISK_S = 60.0
"""A disk that has not answered for so long counts as away; reading a whole file has a second more for each SLOWEST bytes."""
IDLE_S, SLOWEST = 30.0, 10_000_000
SLOWEST_CLIENT = 10_000
"""Bytes a second that a body must bring on the whole."""
FAULT = "X-Storage-Fault"
"""The header of a 503 that means that the storage is down; its value says why."""

Header = tuple[str, str]
Made = TypeVar("Made")


class Request(Protocol):
    """What RSGI knows of a request before its body."""

    method: str
    path: str
    query_string: str

    @property
    def headers(self) -> Any: ...


class Answer(Protocol):
    """Granian's end of a request."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def response_bytes(self, status: int, headers: list[Header], body: bytes) -> None: ...

    def response_file_range(self, status: int, headers: list[Header], file: str, start: int, end: int) -> None: ...

    def response_file(self, status: int, headers: list[Header], file: str) -> None: ...


class Told(Exception):
    """An answer that ends a request."""

    def __init__(self, status: int, detail: str = "", headers: tuple[Header, ...] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


class Application:
    """Serves one storage."""

    def __init__(self, served: Served) -> None:
        self.served, self.sums, self.open_files = served, reading.Sums(), OpenFiles()
        self.uploads: Counter[int] = Counter()
        self._threads = ThreadPoolExecutor(THREADS, "disk")

    async def __rsgi__(self, request: Request, answer: Answer) -> None:
        """Answer one request."""
        if request.path == "/healthz":
            answer.response_bytes(200, [("Content-Type", "text/plain")], b"ok\n")
            return
        try:
            with _told():
                await self._serve(request, answer)
        except Told as told:
            _send(answer, told)

    async def _serve(self, request: Request, answer: Answer) -> None:
        method = "GET" if request.method == "HEAD" else request.method
        if method not in ("GET", "PUT", "DELETE"):
            raise Told(405, "GET, HEAD, PUT and DELETE are known", (("Allow", "GET, HEAD, PUT, DELETE"),))
        keys = await self._disk(self.served.keys)
        grant = read_grant(method, request.path.removeprefix("/"), request.query_string, keys, time.time())
        if grant.name:
            parts_of(grant.name)
        elif method != "GET":
            raise BadName("a file has a name")
        if method != "GET" and grant.name == self.served.root.mark_path:
            raise BadName("the file that marks the root stays as it is")
        if method == "PUT":
            await self._take(grant, request, answer)
        elif method == "DELETE":
            size = request.headers.get("x-size")
            wanted = (request.headers.get("if-match", ""), int(size) if size and size.isdigit() else None)
            removed = await self._disk(partial(remove_file, self.served, grant, *wanted))
            raise Told(200, f"{removed} files removed", (("X-Removed", str(removed)),))
        elif grant.method == LISTING:
            await self._list(answer)
        elif not grant.name:
            body = json.dumps(await self._disk(partial(reading.state_of, self.served))).encode()
            answer.response_bytes(200, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))], body)
        elif request.method == "HEAD":
            await self._measure(grant, request, answer)
        else:
            await self._give(grant, request, answer)

    async def _disk(self, work: Callable[[], Made], size: int = 0) -> Made:
        """Do it in a thread. StorageDown when the disk does not answer; a file of `size` is read meanwhile."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.wait_for(future, DISK_S + size / SLOWEST)
        except TimeoutError:
            raise StorageDown(self.served.root.name, f"its disk has not answered for {DISK_S:g} s") from None

    async def _measure(self, grant: Grant, request: Request, answer: Answer) -> None:
        summed = "adler32" in request.headers.get("want-digest", "").lower()
        work = partial(reading.measured, self.served, grant.name, grant.size, self.sums, summed=summed)
        file, checksum = await self._disk(work, MOST_BYTES if summed else 0)
        answer.response_bytes(200, [*_about(etag(file), checksum), ("Content-Length", str(file.size))], b"")

    async def _give(self, grant: Grant, request: Request, answer: Answer) -> None:
        """A file or a range of it."""
        header = request.headers.get
        wanted = (grant.size, header("range", ""), header("if-match", ""))
        await self.open_files.room()
        piece = await self._disk(partial(reading.open_piece, self.served, grant.name, *wanted, self.sums))
        size = piece.file.size
        headers = [*_about(etag(piece.file), piece.checksum), ("Content-Length", str(piece.end - piece.begin))]
        whole = piece.end - piece.begin == size
        if not whole:
            headers.append(("Content-Range", f"bytes {piece.begin}-{piece.end - 1}/{size}"))
        status = 200 if whole else 206
        if piece.content is not None:
            answer.response_bytes(status, headers, piece.content)
            return
        answer.response_file_range(status, headers, f"/proc/self/fd/{piece.fd}", piece.begin, piece.end)
        self.open_files.keep(piece.fd)

    async def _list(self, answer: Answer) -> None:
        """All files, whole or not at all: half a list would look like a storage that has lost the rest."""
        await self.open_files.room()
        with tempfile.TemporaryFile() as spool:
            await self._disk(partial(_write_all, spool, reading.listing(self.served)), MOST_BYTES)
            headers = [("Content-Type", "application/x-ndjson"), ("Content-Length", str(spool.tell()))]
            fd = os.dup(spool.fileno())
        answer.response_file(200, headers, f"/proc/self/fd/{fd}")
        self.open_files.keep(fd)

    async def _take(self, grant: Grant, request: Request, answer: Answer) -> None:
        """A file that comes in, is kept as a part, or gets its name."""
        header = request.headers.get
        length, checksum, hold = header("content-length", ""), header("x-adler32", "").lower(), bool(header("x-hold"))
        if published := header("x-publish", ""):
            stored = await self._disk(partial(publish_part, self.served, grant, published))
            raise Told(200 if stored.known else 201, "it has its name", tuple(_about(etag(stored.identity), stored.checksum)))
        if header("transfer-encoding") or not (length.isascii() and length.isdigit() and len(length) < 20):
            raise Told(411, "a body must say how long it is: Content-Length", (("Connection", "close"),))
        if int(length) > grant.size:
            raise Told(403, f"the address allows {grant.size} bytes", (("Connection", "close"),))
        if (checksum and not _is_adler32(checksum)) or not (checksum or hold):
            raise Told(400, "X-Adler32 must be the checksum, 8 hex digits", (("Connection", "close"),))
        if self.uploads.total() >= MOST_UPLOADS or (grant.job and self.uploads[grant.job] >= MOST_OF_JOB):
            raise Told(503, "too many files come in just now", (("Retry-After", "2"), ("Connection", "close")))
        self.uploads[grant.job] += 1
        try:
            stored = await self._store(Upload(self.served, grant, int(length)), checksum, answer, hold=hold)
        finally:
            self.uploads -= Counter([grant.job])
        status = 200 if stored.known else 202 if hold else 201
        raise Told(status, "stored", tuple(_about(etag(stored.identity), stored.checksum)))

    async def _store(self, upload: Upload, checksum: str, body: Answer, *, hold: bool) -> Stored:
        try:
            known = await self._disk(partial(upload.begin, checksum), MOST_BYTES)
            if known is not None:
                return known
            until = time.monotonic() + IDLE_S + upload.size / SLOWEST_CLIENT
            async for block in _blocks(body, until):
                await self._disk(partial(upload.write, block))
            stored = await self._disk(partial(upload.finish, checksum), 2 * upload.size)
            if not hold:
                return await self._disk(partial(upload.publish, stored))
            upload.keep_part()
            return stored
        finally:
            await self._disk(upload.close)


async def _blocks(body: Answer, until: float) -> AsyncIterator[bytes]:
    """The body in blocks. Told 408 when nothing comes for IDLE_S, or not all by `until`."""
    waiting = bytearray()
    parts = body.__aiter__()
    try:
        while True:
            async with asyncio.timeout(min(IDLE_S, max(0.0, until - time.monotonic()))):
                waiting += await anext(parts)
            if len(waiting) >= BLOCK:
                yield bytes(waiting)
                waiting.clear()
    except StopAsyncIteration:
        if waiting:
            yield bytes(waiting)
    except TimeoutError:
        raise Told(408, "the body does not come", (("Connection", "close"),)) from None
    except OSError as problem:
        raise Told(400, "the body ended before its time", (("Connection", "close"),)) from problem


@contextmanager
def _told() -> Iterator[None]:
    """Make what can go wrong into an answer."""
    close = (("Connection", "close"),)
    try:
        yield
    except NotGranted as problem:
        raise Told(403, str(problem), close) from problem
    except BadName as problem:
        raise Told(400, str(problem), close) from problem
    except Damaged as problem:
        raise Told(400, str(problem), close) from problem
    except reading.TooLarge as problem:
        raise Told(403, "the file is larger than the address allows") from problem
    except reading.OtherFile as problem:
        raise Told(412, "the file is another one than before") from problem
    except reading.BadRange as problem:
        raise Told(416, str(problem), (("Content-Range", f"bytes */{problem.size}"),)) from problem
    except NoKeys as problem:
        raise Told(503, str(problem), ((FAULT, _one_line(str(problem))), *close)) from problem
    except TooManyOpen as problem:
        raise Told(503, str(problem), (("Retry-After", "2"), *close)) from problem
    except StorageDown as down:
        raise Told(503, str(down.strerror), ((FAULT, _one_line(str(down.strerror))), *close)) from down
    except OSError as problem:
        raise Told(_STATUS.get(problem.errno or 0, 500), problem.strerror or str(problem), close) from problem


_STATUS: Mapping[int, int] = {
    errno.ENOENT: 404, errno.ENOTDIR: 404, errno.ELOOP: 404, errno.EINVAL: 404, errno.EISDIR: 404, errno.ENXIO: 404,
    errno.EEXIST: 409, errno.ENOSPC: 507, errno.EDQUOT: 507, errno.EBUSY: 503, errno.ENAMETOOLONG: 400,
    errno.EROFS: 500, errno.EMFILE: 503, errno.ENFILE: 503,
}  # fmt: skip


def _send(answer: Answer, told: Told) -> None:
    body = json.dumps({"status": told.status, "detail": told.detail}).encode()
    headers = [("Content-Type", "application/problem+json" if told.status >= 400 else "application/json"), *told.headers]
    answer.response_bytes(told.status, [*headers, ("Content-Length", str(len(body)))], body)


def _about(tag: str, checksum: str) -> list[Header]:
    headers = [("Content-Type", "application/octet-stream"), ("ETag", tag), ("Accept-Ranges", "bytes")]
    return [*headers, ("X-Adler32", checksum)] if checksum else headers


def _write_all(file: IO[bytes], lines: Iterator[bytes]) -> None:
    file.writelines(lines)
    file.flush()


def _is_adler32(text: str) -> bool:
    return len(text) == 8 and not set(text) - set("0123456789abcdef")


def _one_line(text: str) -> str:
    """A text as the value of a header."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)[:300]


def application() -> Application:
    """What each process of a server serves: that which its environment tells."""
    return Application(Served.from_environment())
