"""What is done to a running system: which processes are killed, which are stopped and continued. Only its own processes.

Every pid comes from the supervisor's children, their descendants, or the private servers of the instance.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil
import psycopg2

from broker_site.roof.embedded.process import Identity
from broker_site.roof.supervisor import System
from tests.chaos.history import History, wall_time

SMOKE: Mapping[str, int] = {
    "web worker": 3,
    "web master": 2,
    "celery child": 3,
    "celery main": 2,
    "beat": 2,
    "pilot": 4,
    "postgres backend": 2,
    "redis": 2,
}
"""How many of each kind are killed in the smoke test."""
STOPS = 3
"""Pilots that are stopped beyond their lease and continued, besides those that stop themselves before they report."""
STOP = "stop pilot"


def victims(system: System, kind: str) -> list[int]:
    """The processes of this kind that run now; empty while the last one is being started again."""
    children = system.children
    if kind == "web worker":
        return children["web"].pids()[1:]
    if kind == "celery child":
        return children["worker"].pids()[1:]
    if kind in ("pilot", STOP):
        return [child.pid for name, child in children.items() if name.startswith("pilot-") and child.pid]
    if kind == "postgres backend":
        return _backends(system)
    if kind == "redis":
        server = system.instance.redis
        return [server.known.pid] if server and server.known and server.known.alive() else []
    leader = children[{"web master": "web", "celery main": "worker", "beat": "beat"}[kind]].pid
    return [leader] if leader else []


def _backends(system: System) -> list[int]:
    """Backends that serve the application, each seen to be a child of our private server."""
    server = system.instance.postgres
    identity = server.identity() if server else None
    if identity is None:
        return []
    try:
        connection = psycopg2.connect(system.services.database_url, connect_timeout=1)
    except psycopg2.OperationalError:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name = 'gridbroker'"
        )
        pids = [row[0] for row in cursor.fetchall()]
    connection.close()
    return [pid for pid in pids if _parent(pid) == identity.pid]


def _parent(pid: int) -> int:
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return 0


@dataclass(slots=True)
class Stopped:
    """A pilot that does not run for a while."""

    identity: Identity
    until: float


@dataclass(slots=True)
class Faults:
    """The faults of one run in the order that its seed gives. `stop_s`: how long a stopped pilot stands still."""

    system: System
    history: History
    dice: random.Random
    stop_s: float
    kinds: list[str]
    done: Counter[str] = field(default_factory=Counter)
    last: str = ""
    last_at: float = 0.0
    _stopped: list[Stopped] = field(default_factory=list)

    @classmethod
    def planned(
        cls, system: System, history: History, dice: random.Random, stop_s: float, kills: Mapping[str, int], stops: int
    ) -> Faults:
        """So many kills of each kind and so many stops, shuffled."""
        kinds = [kind for kind, n in kills.items() for _ in range(n)] + [STOP] * stops
        dice.shuffle(kinds)
        return cls(system, history, dice, stop_s, kinds, last_at=time.monotonic())

    def inject(self) -> bool:
        """Do the next fault; False when nothing of its kind runs at this moment."""
        kind = self.kinds[0]
        running = victims(self.system, kind)
        stopped = {each.identity.pid for each in self._stopped}
        pids = sorted(set(running) - stopped)
        if not pids:
            return False
        identity = Identity.of(self.dice.choice(pids))
        if identity is None:
            return False
        self.kinds.pop(0)
        if kind == STOP:
            identity.signal(signal.SIGSTOP)
            self._stopped.append(Stopped(identity, time.monotonic() + self.stop_s))
        else:
            identity.signal(signal.SIGKILL)
        self.done[kind] += 1
        self.last = f"{'SIGSTOP' if kind == STOP else 'SIGKILL'} {kind} {identity.pid}"
        self.last_at = time.monotonic()
        self.history.add("fault", kind, pid=identity.pid, sent=wall_time())
        return True

    def tend(self) -> None:
        """Continue the pilots whose time is over."""
        now = time.monotonic()
        for each in [each for each in self._stopped if now >= each.until]:
            each.identity.signal(signal.SIGCONT)
            self._stopped.remove(each)
            self.last_at = now
            self.history.add("fault", "continue pilot", pid=each.identity.pid, sent=wall_time())

    @property
    def over(self) -> bool:
        """Whether every fault has been done and undone."""
        return not self.kinds and not self._stopped
