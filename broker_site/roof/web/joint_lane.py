"""A lane whose requests are worked on together, for what many ask at the same time and one transaction can do for all."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from django.db import close_old_connections
from django.db.backends.base.base import BaseDatabaseWrapper

from broker_site.roof.web.lane import Ask, Lane, done_in_thread

logger = logging.getLogger(__name__)

JOIN_S = 0.1
"""So long others wait for the thread that works on those before them; then another begins, since that one may wait for a lock."""
GATHER_S = 0.001
"""So long a thread that has just answered several waits for the next: those who ask without a pause come back within it, and are
worked on together again instead of in two turns of half as many.
"""
MOST = 32
"""Requests that are worked on together."""


class Unfinished:
    """What a work gives that is to end together with others."""


End = Callable[[Sequence[Any]], Iterable[tuple[int, Any]]]
"""Given what is unfinished: the place of each, and what its work gives at last. What it leaves out gives None."""


@dataclass(slots=True)
class JointLane(Lane):
    """A lane whose thread takes all requests that wait, begins each, and ends together those that are unfinished then.

    One thread works at a time as long as it begins anew within JOIN_S: a second one would take requests from the first, and cost
    more in changes between threads than it brings.
    """

    end: End = field(kw_only=True)
    _serving: int = field(init=False, default=0)
    _began: float = field(init=False, default=0.0)
    _timer: asyncio.TimerHandle | None = field(init=False, repr=False, default=None)

    def _hand_over(self, ask: Ask) -> None:
        self._waiting.append(ask)
        self._call_thread()

    def _call_thread(self) -> None:
        """Have a thread work if requests wait and nobody works, or nobody has begun for long. In the event loop only."""
        with self._lock:
            if not self._waiting:
                return
            now = time.monotonic()
            if self._serving and (now < self._began + JOIN_S or self._serving >= self.threads):
                self._look_later()
                return
            self._serving += 1
            self._began = now
            call = self._idle.pop() if self._idle else None
        try:
            self._call(call)
        except BaseException:
            with self._lock:
                self._serving -= 1
            raise

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(JOIN_S, self._call_again)

    def _call_again(self) -> None:
        """Look anew who waits; and once more while anybody does, who may be one too many for the thread that is called, or for
        whom none could be started: no other ask might come.
        """
        self._timer = None
        try:
            self._call_thread()
        except (RuntimeError, MemoryError):
            logger.warning("no thread more can be started for %s", self.name)
        finally:
            if self._waiting:
                self._look_later()

    def _serve(self, databases: Sequence[BaseDatabaseWrapper], calls: SimpleQueue[bool]) -> None:
        while asks := self._next(calls):
            with self._working(databases):
                # As Django does before each request: one that is broken is not used again. Where that fails, each work meets it.
                done_in_thread(close_old_connections)
                self._work_on(asks)
            if len(asks) > 1:
                time.sleep(GATHER_S)

    def _next(self, calls: SimpleQueue[bool]) -> list[Ask]:
        with self._lock:
            asks = self._take(MOST, calls)
            if asks:
                self._began = time.monotonic()
            else:
                self._serving -= 1
            return asks

    def _work_on(self, asks: Sequence[Ask]) -> None:
        unfinished: list[tuple[Ask, Unfinished]] = []
        for ask in asks:
            result, fault = done_in_thread(ask[2])
            if isinstance(result, Unfinished):
                unfinished.append((ask, result))
            else:
                self._give(ask, result, fault)
        left = {place: ask for place, (ask, _) in enumerate(unfinished)}
        fault = None
        try:
            for place, result in self.end([result for _, result in unfinished]) if unfinished else ():
                self._give(left.pop(place), result, None)
        except BaseException as error:  # noqa: BLE001 - it belongs to those who have no answer
            fault = error
        for ask in left.values():
            self._give(ask, None, fault)
