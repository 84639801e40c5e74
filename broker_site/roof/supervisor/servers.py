"""The private servers of a running system: started again when they have died, ever more seldom while one does not come up."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg2

from broker_site.roof.embedded import Instance, NoPlace, NotStarted
from broker_site.roof.supervisor.child import SETTLED_S, Pause
from broker_site.roof.supervisor.console import Event

LABELS = {"postgres": "PostgreSQL", "redis": "Redis"}
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0


class PrivateServers:
    """Not thread-safe: the supervisor holds its lock around every call."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._began = dict.fromkeys(LABELS, time.monotonic())
        self._pauses = {name: Pause(FIRST_WAIT_S, LONGEST_WAIT_S) for name in LABELS}
        self._again_at = dict.fromkeys(LABELS, 0.0)
        self._failed: set[str] = set()

    def began(self, name: str) -> float | None:
        """When the server was started (monotonic), None while it does not run."""
        return self._began[name] if self._instance.runs(name) else None

    def tend(self) -> Iterator[Event]:
        """Start what has died and whose pause is over."""
        for name, label in LABELS.items():
            if not self._instance.is_private(name):
                continue
            if self._instance.runs(name):
                if time.monotonic() - self._began[name] > SETTLED_S:
                    self._pauses[name].reset()
                    yield Event(label, "", "")
            elif time.monotonic() >= self._again_at[name]:
                yield self._start(name, label)

    def _start(self, name: str, label: str) -> Event:
        try:
            self._instance.revive(name, follow=True)
        except (NoPlace, NotStarted, OSError, psycopg2.Error) as error:
            self._again_at[name] = time.monotonic() + self._pauses[name].next()
            self._failed.add(name)
            return Event(label, "start", f"{label} cannot be started, it is tried ever more seldom: {_reason(str(error))}")
        self._began[name] = time.monotonic()
        if name in self._failed:
            self._failed.discard(name)
            return Event(label, "", f"{label} runs again")
        return Event(label, "ended", f"{label} had ended and was started again")


def _reason(text: str) -> str:
    """The one line of an error, which may end with lines of a log, that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "FATAL" in line or "PANIC" in line), lines[-1] if lines else "")
