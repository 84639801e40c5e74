"""What is done to a running system: which processes are killed, stopped and continued, or frozen, and what is locked.

Only its own processes.

Every pid comes from the supervisor's children, their descendants, or the private servers of the instance.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil
import psycopg2

from broker_site.roof.embedded.process import Identity
from broker_site.roof.supervisor import System
from tests.chaos.history import History, wall_time

SUBMITTED_PILOT = "submitted pilot"
SMOKE: Mapping[str, int] = {
    "web worker": 3,
    "web master": 2,
    "celery child": 3,
    "celery main": 2,
    "beat": 2,
    "mover": 3,
    "pilot": 4,
    SUBMITTED_PILOT: 3,
    "postgres backend": 2,
    "redis": 2,
}
"""How many of each kind are killed in the smoke test."""
STOPS = 3
"""Pilots that are stopped beyond their lease and continued, besides those that stop themselves before they report."""
STOP = "stop pilot"
FREEZES = {
    "freeze web": ("web",),
    "freeze worker and beat": ("worker", "beat"),
    "freeze mover": ("mover",),
    "freeze redis": ("redis",),
    "freeze postgres": ("postgres",),
}
"""All processes of a part are stopped and never continued: whoever watches over them has to notice."""
HOLDS: Mapping[str, tuple[str, float]] = {
    "row lock": ("SELECT FROM workqueues_task FOR UPDATE", 4.0),
    "table lock": ("LOCK TABLE brokerage_job IN SHARE ROW EXCLUSIVE MODE", 3.0),
    "long transaction": ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM brokerage_job", 15.0),
}
"""What somebody else's session does and for how many seconds it then does nothing."""
STANDSTILLS = (*FREEZES, *HOLDS)
SMOKE_STANDSTILLS = 3
"""How many of them the smoke test has, other ones with each seed."""


def victims(system: System, kind: str) -> list[int]:
    """The processes of this kind that run now; empty while the last one is being started again."""
    children = system.children
    if kind == "web worker":
        return children["web"].pids()[1:]
    if kind == "celery child":
        return _all_processes(system, "worker")[1:]
    if kind in ("pilot", STOP):
        return [child.pid for name, child in children.items() if name.startswith("pilot-") and child.pid]
    if kind == SUBMITTED_PILOT:
        return _submitted_pilots(system)
    if kind == "postgres backend":
        return _backends(system)
    if kind in FREEZES:
        return [pid for name in FREEZES[kind] for pid in _all_processes(system, name)]
    if kind == "redis":
        return _all_processes(system, kind)
    leader = children[{"web master": "web", "celery main": "worker"}.get(kind, kind)].pid
    return [leader] if leader else []


def _all_processes(system: System, name: str) -> list[int]:
    """Every process of a child or of a private server."""
    if name == "redis":
        server = system.instance.redis
        return [server.known.pid] if server and server.known and server.known.alive() else []
    if name == "postgres":
        identity = system.instance.postgres.identity() if system.instance.postgres else None
        return [identity.pid, *(each.pid for each in psutil.Process(identity.pid).children())] if identity else []
    return _without_pilots(system, system.children[name].pids())


def _without_pilots(system: System, pids: Collection[int]) -> list[int]:
    """Those that are not of a pilot which the worker started for a job: it is no part of the broker, and goes on without it."""
    of_pilots: set[int] = set()
    for pilot in _submitted_pilots(system):
        with suppress(psutil.NoSuchProcess):
            of_pilots |= {pilot, *(each.pid for each in psutil.Process(pilot).children(recursive=True))}
    return [pid for pid in pids if pid not in of_pilots]


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


def _submitted_pilots(system: System) -> list[int]:
    """Pilots that the worker has started, whoever is their parent now."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "brokerage.pilot" in words and "--job" in words and any(word.startswith(f"{system.folder}/") for word in words):
            found.append(process.pid)
    return found


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
class Hold:
    """A session that holds something."""

    connection: Any
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
    _holds: list[Hold] = field(default_factory=list)

    @classmethod
    def planned(
        cls,
        system: System,
        history: History,
        dice: random.Random,
        stop_s: float,
        kills: Mapping[str, int],
        stops: int,
        standstills: int,
    ) -> Faults:
        """So many kills of each kind, so many stops, and so many standstills, as different as they can be, shuffled."""
        still = [kind for _ in range(0, standstills, len(STANDSTILLS)) for kind in dice.sample(STANDSTILLS, len(STANDSTILLS))]
        kinds = [*(kind for kind, n in kills.items() for _ in range(n)), *[STOP] * stops, *still[:standstills]]
        dice.shuffle(kinds)
        early = [kind for kind in kinds if kind == SUBMITTED_PILOT]
        kinds = [kind for kind in kinds if kind != SUBMITTED_PILOT]
        for kind in early:  # later there may be nothing left to submit
            kinds.insert(dice.randrange(len(kinds) // 2), kind)
        return cls(system, history, dice, stop_s, kinds, last_at=time.monotonic())

    def inject(self) -> bool:
        """Do the next fault; False when nothing of its kind runs at this moment."""
        kind = self.kinds[0]
        if kind in HOLDS:
            return self._hold(kind)
        if kind in FREEZES:
            return self._freeze(kind)
        running = victims(self.system, kind)
        stopped = {each.identity.pid for each in self._stopped}
        pids = sorted(set(running) - stopped)
        if not pids:
            return False
        identity = Identity.of(self.dice.choice(pids))
        if identity is None:
            return False
        if kind == STOP:
            identity.signal(signal.SIGSTOP)
            self._stopped.append(Stopped(identity, time.monotonic() + self.stop_s))
        else:
            identity.signal(signal.SIGKILL)
        self._note(f"{'SIGSTOP' if kind == STOP else 'SIGKILL'} {kind}", identity.pid)
        return True

    def _freeze(self, kind: str) -> bool:
        """Stop every process of a part; False when it does not run at this moment."""
        identities = [identity for pid in victims(self.system, kind) if (identity := Identity.of(pid))]
        for identity in identities:
            identity.signal(signal.SIGSTOP)
        if identities:
            self._note(kind, identities[0].pid)
        return bool(identities)

    def _hold(self, kind: str) -> bool:
        """Let a session of nobody's hold something; False when the database does not answer."""
        statement, seconds = HOLDS[kind]
        try:
            connection = psycopg2.connect(
                self.system.services.database_url, connect_timeout=2, options="-c lock_timeout=2000 -c statement_timeout=5000"
            )
        except psycopg2.OperationalError:
            return False
        try:
            connection.cursor().execute(statement)
        except psycopg2.Error:
            connection.close()
            return False
        self._holds.append(Hold(connection, time.monotonic() + seconds))
        self._note(kind, connection.info.backend_pid)
        return True

    def _note(self, what: str, pid: int) -> None:
        kind = self.kinds.pop(0)
        self.done[kind] += 1
        self.last, self.last_at = f"{what} {pid}", time.monotonic()
        self.history.add("fault", kind, pid=pid, sent=wall_time())

    def tend(self) -> None:
        """Continue the pilots and end the sessions whose time is over."""
        now = time.monotonic()
        for hold in [hold for hold in self._holds if now >= hold.until]:
            hold.connection.close()
            self._holds.remove(hold)
            self.last_at = now
        for each in [each for each in self._stopped if now >= each.until]:
            each.identity.signal(signal.SIGCONT)
            self._stopped.remove(each)
            self.last_at = now
            self.history.add("fault", "continue pilot", pid=each.identity.pid, sent=wall_time())

    @property
    def over(self) -> bool:
        """Whether every fault has been done and undone."""
        return not self.kinds and not self._stopped and not self._holds
