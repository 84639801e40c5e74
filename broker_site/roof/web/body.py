"""Reading a request's body whole before anybody works on it: within a time, a size, and what all bodies may take together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Protocol

from broker_site.foundation.access.jsonbody import TASK_BODY_LIMIT
from broker_site.foundation.access.problems import Refused
from broker_site.roof.web.environ import Scope

SMALL = 65_536
"""Bytes of a body that is read however many others are being read."""
MOST_HELD = 64_000_000
"""Bytes that larger bodies may take in one process at a time."""


class Chunks(Protocol):
    """A body as it comes in."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def __call__(self) -> Awaitable[bytes]: ...


class Bodies:
    """All bodies that a process holds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.held = 0
        self._reading: dict[asyncio.Task[Any], float] = {}
        """Who reads a small body, and until when on the loop's clock; one timer for all costs less than one for each."""
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def read(self, scope: Scope, chunks: Chunks) -> bytes:
        """The body; `release` it once it is worked on. Refused: 408 too slow, 413 too large, 429 too many large ones at once."""
        length, coding = scope.headers.get("content-length"), scope.headers.get("transfer-encoding")
        if length in (None, "0") and coding is None:
            return b""
        if length and length.isdigit() and (len(length) > 15 or int(length) > TASK_BODY_LIMIT):
            raise _too_large()
        if coding is None and length and length.isdigit() and int(length) <= SMALL:
            return await self._small(chunks)
        parts: list[bytes] = []
        size = 0
        whole = False
        try:
            async with asyncio.timeout(self.seconds):
                async for part in chunks:
                    parts.append(part)
                    size += len(part)
                    self.held += len(part)
                    if size > TASK_BODY_LIMIT:
                        raise _too_large()
                    if size > SMALL and self.held > MOST_HELD:
                        raise Refused(429, "Too many large bodies", "Try again in 5 s.", headers={"Retry-After": "5"})
            whole = True
        except TimeoutError:
            raise self._too_slow() from None
        finally:
            if not whole:
                self.held -= size
        return b"".join(parts)

    async def _small(self, chunks: Chunks) -> bytes:
        """A body that says how short it is: in one piece, since most have a hundred bytes."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("a body is read in a task")
        self._reading[task] = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_later(self.seconds, self._stop_late, loop)
        try:
            body = await chunks()
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise self._too_slow() from None
        finally:
            del self._reading[task]
            self._late.discard(task)
        self.held += len(body)
        return body

    def _stop_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the reading of bodies that take too long, and look again when the next one may."""
        now = loop.time()
        for task, until in self._reading.items():
            if until <= now:
                self._late.add(task)
                task.cancel()
        left = [until for task, until in self._reading.items() if task not in self._late]
        self._timer = loop.call_at(min(left), self._stop_late, loop) if left else None

    def _too_slow(self) -> Refused:
        detail = f"The body did not come within {self.seconds:g} s."
        return Refused(408, "Body too slow", detail, headers={"Connection": "close"})

    def release(self, body: bytes) -> None:
        """The body is held no more."""
        self.held -= len(body)


def _too_large() -> Refused:
    return Refused(413, "Body too large", f"At most {TASK_BODY_LIMIT} bytes.", headers={"Connection": "close"})
