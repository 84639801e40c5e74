"""A TCP proxy on 127.0.0.1 that does to connections what networks do: delays, resets, and silence with the other end gone.

It runs in a thread of its own; its faults are switched from outside while connections go through it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any

CHUNK = 1 << 16
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER for a close that the other end sees as a reset."""


@dataclass(slots=True, eq=False)
class Link:
    """One connection through the proxy: towards the client, towards the server."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None

    def reset(self) -> None:
        """Both ends see `connection reset by peer`."""
        for writer in (self.client, self.server):
            if writer is not None:
                abort(writer)


@dataclass(slots=True)
class Proxy:
    """Passes on what comes to `port` to the target. `delay_s` holds up every piece; `reset_part` of the pieces that clients send
    reset their connection instead; `silence` leaves clients with connections whose other end has gone, until `heal`.
    """

    target: tuple[str, int]
    dice: random.Random
    port: int = 0
    delay_s: float = 0.0
    reset_part: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    _silent: bool = False
    _links: set[Link] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self) -> None:
        """Listen; returns when `port` is known."""
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.target[1]}", daemon=True)
        self._thread.start()
        self.port = self._run(self._listen())

    def stop(self) -> None:
        """End every connection and the thread."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread:
            self._thread.join(5)

    def silence(self) -> None:
        """From now on servers see their connections reset, and clients hear nothing, on old and on new connections."""
        self._run(self._fall_silent())

    def heal(self) -> None:
        """No fault any more. Clients of connections whose other end has gone learn so at last."""
        self.delay_s = self.reset_part = 0.0
        self._run(self._speak())

    @property
    def links(self) -> int:
        """Connections at this moment."""
        return len(self._links)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> int:
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=512)
        return int(server.sockets[0].getsockname()[1])

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for link in list(self._links):
            link.reset()

    async def _fall_silent(self) -> None:
        self._silent = True
        self.done["silenced"] += len(self._links)
        for link in self._links:
            if link.server is not None:
                abort(link.server)

    async def _speak(self) -> None:
        if self._silent:
            self._silent = False
            for link in list(self._links):
                link.reset()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(writer)
        self._links.add(link)
        self.done["connections"] += 1
        try:
            if self._silent:
                await self._swallow(reader)
                return
            server_reader, link.server = await asyncio.open_connection(*self.target)
            async with contextlib.AsyncExitStack() as pumps:
                await pumps.enter_async_context(self._pump(server_reader, writer, link, from_client=False))
                await self._pass_on(reader, link.server, link, from_client=True)
        except OSError:
            self.done["refused"] += 1
        finally:
            link.reset()
            self._links.discard(link)

    @contextlib.asynccontextmanager
    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link, *, from_client: bool
    ) -> AsyncIterator[None]:
        task = asyncio.create_task(self._pass_on(reader, writer, link, from_client=from_client))
        self._tasks.add(task)
        try:
            yield
        finally:
            task.cancel()
            self._tasks.discard(task)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link, *, from_client: bool
    ) -> None:
        """Copy one direction until its end; a piece is held up by itself, not with those before it."""
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while chunk := await reader.read(CHUNK):
                if self._silent:
                    continue
                if from_client and self.reset_part and self.dice.random() < self.reset_part:
                    self.done["resets"] += 1
                    link.reset()
                    return
                if self.delay_s:
                    self.done["delays"] += 1
                    await asyncio.sleep(self.delay_s)
                writer.write(chunk)
                await writer.drain()
            if not from_client and not self._silent:
                link.client.close()

    async def _swallow(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(CHUNK):
                pass


def abort(writer: asyncio.StreamWriter) -> None:
    """Close so that the other end sees a reset."""
    held = writer.get_extra_info("socket")
    if held is not None:
        with contextlib.suppress(OSError):
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
