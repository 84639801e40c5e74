"""The supervisor: keeps children and private servers alive until it is told to stop, then ends them in reverse order.

One thread looks after everything five times a second. It knows nothing of what the children do; what else is to be looked after
(servers, agents that make no progress) comes as functions.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from broker_site.roof.supervisor.child import Child, Spec
from broker_site.roof.supervisor.console import Console, Event

TICK_S = 0.2

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Duty:
    """Something to look after every `period_s` seconds; it returns what there is to tell."""

    do: Callable[[], Iterable[Event]]
    period_s: float
    due: float = 0.0


class Supervisor:
    """Children in the order in which they were added. Safe to call from any thread."""

    def __init__(self, logs: Path, say: Callable[[str], None]) -> None:
        self._logs, self._console = logs, Console(say)
        self._children: dict[str, Child] = {}
        self._duties: list[Duty] = []
        self._lock = threading.RLock()
        self._stopping, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def children(self) -> Mapping[str, Child]:
        return dict(self._children)

    def add(self, spec: Spec) -> Child:
        """Start a child and look after it from now on."""
        with self._lock:
            child = self._children[spec.name] = Child(spec, self._logs)
            child.start()
            if self._thread is None:
                self._thread = threading.Thread(target=self._look_after, name="supervisor", daemon=True)
                self._thread.start()
        return child

    def duty(self, do: Callable[[], Iterable[Event]], period_s: float) -> None:
        """Call `do` every `period_s` seconds from the supervisor's thread."""
        with self._lock:
            self._duties.append(Duty(do, period_s, time.monotonic() + period_s))

    def kill(self, name: str, number: int = signal.SIGKILL) -> int | None:
        """Send a signal to a child's leader: its pid, None if it was not running. A dead child is started again."""
        with self._lock:
            child = self._children[name]
            pid = child.pid
            child.signal(number)
        return pid

    def destroy(self, name: str) -> None:
        """Kill a child that does not answer, with all that it has started; it is started again."""
        with self._lock:
            self._children[name].destroy()

    def restart(self, name: str, grace_s: float = 2.0) -> None:
        """End a child, which may take `grace_s` to end well, and start it at once."""
        with self._lock:
            child = self._children[name]
            child.signal(signal.SIGTERM)
            child.finish(time.monotonic() + grace_s)
            child.start()

    def stop(self) -> None:
        """End all children, the last added first; children whose names have the same first part (`pilot-...`) together.

        Who makes work is told first: what a pilot gives back would be handed to the next one, which gives it back in turn.
        """
        self._stopping.set()
        with self._lock:
            for child in self._children.values():
                if child.spec.makes_work:
                    _tell_to_end(child)
            groups: dict[str, list[Child]] = {}
            for name, child in reversed(self._children.items()):
                groups.setdefault(name.partition("-")[0], []).append(child)
            for group in groups.values():
                for child in group:
                    if not child.spec.makes_work:  # a worker that is told twice leaves what it does
                        _tell_to_end(child)
                now = time.monotonic()
                for child in group:
                    child.finish(now + child.spec.grace_s)
            self._children.clear()

    def close(self) -> None:
        """End the supervisor's thread, and with it what that thread has started and nobody has stopped."""
        self._closed.set()
        if self._thread:
            self._thread.join()

    def _look_after(self) -> None:
        """Until `close`: what this thread has started is told to end when the thread does, so it outlives `stop`."""
        while not self._closed.wait(TICK_S):
            with self._lock:
                try:
                    self._look()
                except Exception as error:  # who looks after all others must not end
                    logger.exception("the supervisor failed")
                    self._console.tell(Event("supervisor", repr(error), f"the supervisor failed and goes on: {error!r}"))

    def _look(self) -> None:
        """Look once after everything that is due."""
        if self._stopping.is_set():
            return
        for child in self._children.values():
            if event := child.tend():
                self._console.tell(event)
        for duty in self._duties:
            if time.monotonic() >= duty.due:
                duty.due = time.monotonic() + duty.period_s
                for event in duty.do():
                    self._console.tell(event)
                duty.due = time.monotonic() + duty.period_s


def _tell_to_end(child: Child) -> None:
    child.signal(signal.SIGTERM)
    child.signal(signal.SIGCONT)  # a child that a test has stopped could not hear it
