"""The clock of leases, and sleeping that something can end: a signal, another thread, a readable file descriptor.

Nothing here knows jobs or the server.
"""

from __future__ import annotations

import os
import select
import signal
import time
from datetime import UTC, datetime
from types import FrameType


def now() -> float:
    """Seconds since boot, the time asleep included: neither a clock that is set nor a suspended machine hides a lost lease."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall_time() -> str:
    """The time of day in UTC as ISO 8601, for people and reports; never used to decide."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Wake:
    """What one thread sleeps on. `ring` wakes it from any thread or signal handler; `stop` also tells it to end."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self.stopped_at: float | None = None

    @property
    def stopping(self) -> bool:
        """True from the first `stop` on."""
        return self.stopped_at is not None

    def ring(self) -> None:
        """End the present (or next) `wait` early."""
        try:
            os.write(self._write, b"\0")
        except BlockingIOError:
            return  # the pipe is full of rings already

    def stop(self) -> None:
        """Ask the thread to end; the first call sets the time from which its patience is counted."""
        if self.stopped_at is None:
            self.stopped_at = now()
        self.ring()

    def wait(self, seconds: float, fd: int | None = None) -> bool:
        """Sleep at most `seconds`; True when `fd` became readable. Returns early (False) when rung."""
        watched = [self._read] if fd is None else [self._read, fd]
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        if self._read in ready:
            self._drain()
        return fd is not None and fd in ready

    def sleep(self, seconds: float) -> None:
        """Sleep the whole time through rings, unless asked to stop."""
        end = now() + seconds
        while not self.stopping and now() < end:
            self.wait(end - now())

    def stop_on_signals(self) -> None:
        """SIGTERM, SIGINT and SIGHUP call `stop`; every handled signal ends a `wait`. Main thread only."""

        def handle(signum: int, frame: FrameType | None) -> None:
            self.stop()

        signal.set_wakeup_fd(
            self._write, warn_on_full_buffer=False
        )  # written before the interpreter looks: no signal is slept over
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, handle)

    def close(self) -> None:
        """Give the descriptors back; the object must not be used any more."""
        os.close(self._read)
        os.close(self._write)

    def _drain(self) -> None:
        try:
            while os.read(self._read, 4096):
                continue
        except BlockingIOError:
            return
