"""Asks of pilots for which there is no job yet: held in the event loop, without a thread, until there may be one.

Those that came first are woken first, as many as there are jobs; one that is woken in vain wakes the next, since the job may
suit another, but only so often: most jobs are gone then. What is held is bounded, per credential and in all.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field

import redis

from brokerage.api.waiting_asks import WaitingAsk
from brokerage.ledger import ready_jobs

MOST = 5_000
"""Asks that one process holds where it has the connections for them."""
FOR_OTHERS = 1_000
"""Connections that are left for everything else; of few connections half."""
FILES = 200
"""Files that a process has open besides its connections."""
LARGEST = 16_384
"""Bytes of a request, head and body, that is held: thousands of them lie in memory."""
MOST_PER_CREDENTIAL = 4
MOST_TRIES = 4
"""Asks that are asked anew for one job."""
LISTEN_AGAIN_S = 1.0

logger = logging.getLogger(__name__)


class Full(Exception):
    """No more asks are held."""


def most_held(connections: int) -> int:
    """How many asks a process may hold that takes so many connections at a time: whoever else comes finds one that is free.

    The process may have as many files open as its hard limit allows; where these are too few, it holds fewer asks.
    """
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < connections + FILES:
        files = connections + FILES if hard == resource.RLIM_INFINITY else min(hard, connections + FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    connections = max(0, min(connections, files - FILES))
    return min(MOST, max(connections // 2, connections - FOR_OTHERS))


@dataclass(slots=True, eq=False)
class Held:
    """One ask; `woken` is done when it is to be asked anew, with how many others may be after it, or answered (None)."""

    ask: WaitingAsk
    since: float
    woken: asyncio.Future[int | None]


@dataclass(slots=True)
class HeldAsks:
    """All asks that a process holds. Used in the event loop only, but for `listen`."""

    most: int = MOST
    most_per_credential: int = MOST_PER_CREDENTIAL
    closed: bool = False
    _waiting: dict[int, deque[Held]] = field(default_factory=dict)
    _of_credential: Counter[int] = field(default_factory=Counter)
    _n: int = 0
    _came: dict[int, float] = field(default_factory=dict)
    """Queue -> when jobs last came there."""
    _stop: threading.Event = field(default_factory=threading.Event)

    async def hold(self, ask: WaitingAsk, since: float, seconds: float, gone: Awaitable[None]) -> int | None:
        """Wait until it is to be asked anew: how many others may be after it in vain; None once the time is over, or the server
        ends. Raises Full, and ConnectionError when `gone` is done: the client has left.

        `since`: when it was asked, on the loop's clock: what came after that is not missed.
        """
        if self.closed or seconds <= 0:
            return None
        if self._came.get(ask.queue_id, float("-inf")) >= since:
            return 0
        if self._n >= self.most or self._of_credential[ask.credential] >= self.most_per_credential:
            raise Full
        held = Held(ask, since, asyncio.get_running_loop().create_future())
        left = asyncio.ensure_future(gone)
        self._waiting.setdefault(ask.queue_id, deque()).append(held)
        self._of_credential[ask.credential] += 1
        self._n += 1
        try:
            await asyncio.wait((held.woken, left), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if held.woken.done():
                return held.woken.result()
            if left.done():
                raise ConnectionError
            return None
        finally:
            left.cancel()
            self._drop(held)

    def _drop(self, held: Held) -> None:
        self._n -= 1
        self._of_credential[held.ask.credential] -= 1
        if not self._of_credential[held.ask.credential]:
            del self._of_credential[held.ask.credential]
        waiting = self._waiting.get(held.ask.queue_id)
        if waiting is not None and held in waiting:
            waiting.remove(held)
            if not waiting:
                del self._waiting[held.ask.queue_id]

    def wake(self, jobs: Mapping[int, int]) -> None:
        """So many jobs came to these queues: as many asks are asked anew."""
        now = asyncio.get_running_loop().time()
        for queue, n in jobs.items():
            self._came[queue] = now
            waiting = self._waiting.get(queue)
            for _ in range(min(n, len(waiting)) if waiting else 0):
                self._wake_next(queue, MOST_TRIES - 1)

    def in_vain(self, queue: int, tries: int) -> None:
        """An ask that was woken got nothing: the job may suit the next one that has waited since before it came."""
        waiting = self._waiting.get(queue)
        if tries > 0 and waiting and waiting[0].since < self._came[queue]:
            self._wake_next(queue, tries - 1)

    def _wake_next(self, queue: int, tries: int) -> None:
        waiting = self._waiting.get(queue)
        if waiting:
            held = waiting.popleft()
            if not waiting:
                del self._waiting[queue]
            if not held.woken.done():
                held.woken.set_result(tries)

    def close(self) -> None:
        """The server ends: everybody is answered now, and nobody is held any more."""
        self.closed = True
        self._stop.set()
        for waiting in list(self._waiting.values()):
            for held in list(waiting):
                if not held.woken.done():
                    held.woken.set_result(None)

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a thread that hears of jobs and wakes asks."""
        threading.Thread(target=self._listen, args=(loop,), name="jobs-ready", daemon=True).start()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        told = False
        while not self._stop.is_set():
            try:
                for jobs in ready_jobs.messages():
                    told = False
                    if self._stop.is_set():
                        return
                    loop.call_soon_threadsafe(self.wake, jobs)
            except (redis.RedisError, OSError, ValueError) as error:
                if not told:
                    logger.warning("asks that wait do not hear of jobs, trying again: %s", error)
                told = True
                self._stop.wait(LISTEN_AGAIN_S)
            except RuntimeError:  # the loop is closed, the server ends
                return
