"""Threads that copy: a few for each pair of endpoints, so that a root that hangs stops only copies from it or to it.

Nobody waits for a thread: copies are given, and how they ended comes out of a queue.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from uuid import UUID

from brokerage.ledger.transfers.local_copies import CopyEnd
from brokerage.mover.batch import SMALL, Task, copy_batch
from brokerage.pilot.connections import kept_connections

BATCH = 16
"""Small files that are copied together."""
IDLE_S = 5.0
"""A thread without work ends after so long."""

logger = logging.getLogger(__name__)

Pair = tuple[str, str]


class Space:
    """What the copies of this process still need at each endpoint."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    @contextmanager
    def of(self, storage: str) -> Iterator[_Reservation]:
        """What one batch takes there, until it is through."""
        reservation = _Reservation(self, storage)
        try:
            yield reservation
        finally:
            with self._lock:
                self._taken[storage] -= reservation.size

    def take(self, storage: str, size: int, free: int) -> bool:
        """Take so many of the bytes that are free, if the other copies leave them."""
        with self._lock:
            if size and self._taken[storage] + size > free:
                return False
            self._taken[storage] += size
        return True


class _Reservation:
    def __init__(self, space: Space, storage: str) -> None:
        self._space, self._storage, self.size = space, storage, 0

    def __call__(self, size: int, free: int) -> bool:
        if not self._space.take(self._storage, size, free):
            return False
        self.size += size
        return True


class Lane:
    """The threads of one pair of endpoints, and what waits for them."""

    def __init__(self, pair: Pair, space: Space, ends: SimpleQueue[Sequence[CopyEnd]]) -> None:
        self.pair, self._space, self._ends = pair, space, ends
        self._changed = threading.Condition()
        self._waiting: deque[Task] = deque()
        self._idle = self._threads = 0

    def give(self, tasks: Sequence[Task], streams: int) -> None:
        """Have these copied, by so many threads at most."""
        with self._changed:
            self._waiting.extend(tasks)
            wanted = min(streams - self._threads, len(self._waiting) - self._idle)
            for _ in range(wanted):
                self._threads += 1
                threading.Thread(target=self._work, name=f"copies {' to '.join(self.pair)}", daemon=True).start()
            self._changed.notify_all()

    @property
    def over(self) -> bool:
        """Whether nothing waits and no thread is left."""
        return not self._threads and not self._waiting

    def _work(self) -> None:
        with kept_connections():
            self._copy()

    def _copy(self) -> None:
        while batch := self._next():
            try:
                with self._space.of(self.pair[1]) as reserve:
                    ends = copy_batch(batch, reserve)
            except Exception as error:  # whatever it is, it is told of these copies, and the thread goes on
                logger.exception("copies from %s to %s failed", *self.pair)
                ends = [CopyEnd(task.row.key, "unknown", f"{type(error).__name__}: {error}") for task in batch]
            self._ends.put(ends)

    def _next(self) -> list[Task]:
        """What to copy next: several small files or a large one; nothing: the thread ends."""
        with self._changed:
            if not self._waiting:
                self._idle += 1
                self._changed.wait_for(lambda: self._waiting, IDLE_S)
                self._idle -= 1
            if not self._waiting:
                self._threads -= 1
                return []
            batch = [self._waiting.popleft()]
            most = min(BATCH, 1 + len(self._waiting) // self._threads)
            while batch[-1].row.bytes <= SMALL and len(batch) < most and self._waiting and self._waiting[0].row.bytes <= SMALL:
                batch.append(self._waiting.popleft())
            return batch


class Lanes:
    """All lanes of a mover, and the copies that it holds. Used by one thread."""

    def __init__(self) -> None:
        self.held: dict[UUID, Task] = {}
        self._lanes: dict[Pair, Lane] = {}
        self._count: Counter[Pair] = Counter()
        self._space = Space()
        self._ends: SimpleQueue[Sequence[CopyEnd]] = SimpleQueue()

    def give(self, tasks: Sequence[Task], streams: int) -> None:
        """Have these copied; one that is held already goes on."""
        by_pair: dict[Pair, list[Task]] = {}
        for task in tasks:
            if (held := self.held.get(task.row.key)) is not None:
                held.given_up = False  # it had gone to another mover, which left it, and has come back
            else:
                self.held[task.row.key] = task
                by_pair.setdefault(_pair(task), []).append(task)
        for pair, of_pair in by_pair.items():
            self._count[pair] += len(of_pair)
            if pair not in self._lanes:
                self._lanes[pair] = Lane(pair, self._space, self._ends)
            self._lanes[pair].give(of_pair, streams)

    def rooms(self, most: int) -> list[tuple[str, str, int]]:
        """How many more each pair that is at work may get, of `most`."""
        return [(*pair, max(0, most - n)) for pair, n in self._count.items() if n]

    def ended(self, seconds: float, most: int) -> list[CopyEnd]:
        """How copies end within so many seconds, or sooner so many of them; each is held no more."""
        ends: list[CopyEnd] = []
        due = time.monotonic() + seconds
        while len(ends) < most and (batch := _take(self._ends, due - time.monotonic())) is not None:
            ends += batch
        for end in ends:
            task = self.held.pop(end.key)
            self._count[_pair(task)] -= 1
        for pair in [pair for pair, lane in self._lanes.items() if lane.over]:
            del self._lanes[pair], self._count[pair]
        return ends


def _pair(task: Task) -> Pair:
    return task.row.source.name, task.row.destination.name


def _take(ends: SimpleQueue[Sequence[CopyEnd]], wait_s: float) -> Sequence[CopyEnd] | None:
    try:
        return ends.get(timeout=wait_s) if wait_s > 0 else ends.get_nowait()
    except Empty:
        return None
