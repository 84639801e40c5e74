"""A long answer, sent as it is made and as fast as its client reads: granian takes it out of a pipe as if it were a file.

Granian's own streams take whatever they are given and keep it in memory until the client has read it. Files it reads bit by bit.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Protocol

Header = tuple[str, str]

OPENED_S = 30.0
"""Granian has opened the pipe long before, unless the client has left."""
LOOK_S = 0.005
STALLED_S = 600.0
"""A client that has read nothing for so long gets no more."""


class Left(Exception):
    """The client is gone."""


class Stalled(Exception):
    """The client is there, but does not read."""


class FileAnswer(Protocol):
    """Granian's end of a request, as far as files go."""

    def response_file(self, status: int, headers: list[Header], file: str) -> None: ...


class LongAnswer:
    """An answer that has begun. Whoever sends waits, without a thread, while the client does not read."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    @classmethod
    async def begin(cls, answer: FileAnswer, status: int, headers: list[Header]) -> LongAnswer:
        """Give granian the pipe. Raises Left where it does not open it."""
        with tempfile.TemporaryDirectory(prefix="gridbroker-answer-") as folder:
            path = Path(folder) / "pipe"
            os.mkfifo(path, 0o600)
            answer.response_file(status, headers, str(path))
            until = asyncio.get_running_loop().time() + OPENED_S
            while asyncio.get_running_loop().time() < until:
                try:
                    return cls(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                except OSError:  # nobody reads it yet
                    await asyncio.sleep(LOOK_S)
        raise Left

    async def send(self, data: bytes, patience_s: float | None = STALLED_S) -> None:
        """Raises Left when the client has left, Stalled when it reads nothing for so long, None: it is waited for."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._pipe, left) :]
            except BlockingIOError:
                await self._room(patience_s)
            except ConnectionError:
                raise Left from None

    async def end(self, last: bytes) -> None:
        """The answer is over, after these words, for which a client is waited for that reads late."""
        try:
            await self.send(last, patience_s=None)
        except Left:
            return
        finally:
            os.close(self._pipe)

    async def _room(self, patience_s: float | None) -> None:
        loop = asyncio.get_running_loop()
        room = asyncio.Event()
        loop.add_writer(self._pipe, room.set)
        try:
            await asyncio.wait_for(room.wait(), patience_s)
        except TimeoutError:
            raise Stalled from None
        finally:
            loop.remove_writer(self._pipe)
