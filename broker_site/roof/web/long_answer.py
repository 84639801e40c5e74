"""A long answer, sent as it is made and as fast as its client reads: granian takes it out of a pipe as if it were a file.

Granian's own streams take whatever they are given and keep it in memory until the client has read it. Files it reads bit by bit,
and waits for the client without end: so the connection of one that neither reads nor leaves is cut here.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Protocol

Header = tuple[str, str]

OPENED_S = 30.0
"""Granian has opened the pipe long before, unless the client has left."""
LOOK_S = 0.005
SELDOM_S = 0.5
"""How often to look whether something is over: often at first, then ever less, down to this."""


class Left(Exception):
    """The client is gone."""


class Stalled(Exception):
    """The client is there, but does not read."""


class FileAnswer(Protocol):
    """Granian's end of a request, as far as files go."""

    def response_file(self, status: int, headers: list[Header], file: str) -> None: ...


class LongAnswer:
    """An answer that has begun. Whoever sends waits, without a thread, while the client does not read, for `patience_s`."""

    def __init__(self, pipe: int, handle: int, client: str, patience_s: float) -> None:
        self._pipe, self._handle, self._client, self._patience_s = pipe, handle, client, patience_s
        self._reads = True

    @classmethod
    async def begin(
        cls, answer: FileAnswer, status: int, headers: list[Header], client: str = "", patience_s: float = 600.0
    ) -> LongAnswer:
        """Give granian the pipe. `client`: its address and port. Raises Left where it does not open it."""
        with tempfile.TemporaryDirectory(prefix="gridbroker-answer-") as folder:
            path = Path(folder) / "pipe"
            os.mkfifo(path, 0o600)
            answer.response_file(status, headers, str(path))
            until = asyncio.get_running_loop().time() + OPENED_S
            while asyncio.get_running_loop().time() < until:
                try:
                    pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                except OSError:  # nobody reads it yet
                    await asyncio.sleep(LOOK_S)
                else:
                    return cls(pipe, os.open(path, os.O_PATH), client, patience_s)
        raise Left

    async def send(self, data: bytes) -> None:
        """Raises Left when the client has left, Stalled when it has not read all that in time: then it is cut off at the end."""
        left, loop = memoryview(data), asyncio.get_running_loop()
        until = loop.time() + self._patience_s
        while left:
            try:
                left = left[os.write(self._pipe, left) :]
            except BlockingIOError:
                await self._room(until - loop.time())
            except ConnectionError:
                raise Left from None

    async def end(self, last: bytes) -> None:
        """The answer is over, after these words. A client that has not read them in time is cut off."""
        try:
            if self._reads:
                with suppress(Left, Stalled):
                    await self.send(last)
        finally:
            os.close(self._pipe)
        try:
            if not (self._reads and await self._is_read()):
                await asyncio.to_thread(cut, self._client)
        finally:
            os.close(self._handle)

    async def _room(self, patience_s: float) -> None:
        loop = asyncio.get_running_loop()
        room = asyncio.Event()
        loop.add_writer(self._pipe, room.set)
        try:
            await asyncio.wait_for(room.wait(), patience_s)
        except TimeoutError:
            self._reads = False
            raise Stalled from None
        finally:
            loop.remove_writer(self._pipe)

    async def _is_read(self) -> bool:
        """Whether granian lets go of the pipe in time: it has come to its end, or its client is gone."""
        loop, pause = asyncio.get_running_loop(), LOOK_S
        until = loop.time() + self._patience_s
        while self._has_reader():
            if loop.time() >= until:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, SELDOM_S)
        return True

    def _has_reader(self) -> bool:
        """The pipe cannot be opened to be written to when nobody has it open to read."""
        try:
            os.close(os.open(f"/proc/self/fd/{self._handle}", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True


def cut(client: str) -> None:
    """Shut the connection of this process with a client of this address and port."""
    host, _, port = client.rpartition(":")
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(entry.readlink()).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as line:
                    peer = line.getpeername()
                    if isinstance(peer, tuple) and (peer[0], str(peer[1])) == (host.strip("[]"), port):
                        line.shutdown(socket.SHUT_RDWR)
