"""The whole system on one machine: private servers, web, worker, beat, mover and local pilots, for `up`, `demo`, tests and chaos.

`running` starts it for the time of a block. Not here: what the database holds when it starts; the caller's `prepare` does that.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from broker_site.foundation.agency.duties import OFTEN_S, late_after_s
from broker_site.roof.embedded import Instance, Services
from broker_site.roof.embedded.instance import ROOT, Say, quiet
from broker_site.roof.embedded.place import STATE, make_passed, open_private, read_private, write_private
from broker_site.roof.embedded.process import free_port, last_lines
from broker_site.roof.supervisor.child import Child, Spec, end_leftovers
from broker_site.roof.supervisor.disks import full_disks
from broker_site.roof.supervisor.liveness import FROZEN_S, WEB_READY_S, QuietAgents, StoppedProcesses, watch_servers, watch_web
from broker_site.roof.supervisor.logs import LIMIT_BYTES, cut_logs
from broker_site.roof.supervisor.servers import PrivateServers
from broker_site.roof.supervisor.signs import Probe, Signs, agents
from broker_site.roof.supervisor.watch import Supervisor

MARKER = "GRIDBROKER_SYSTEM"
"""Variable in every child's environment: the folder of its instance, by which children of a killed supervisor are found."""

WEB_WORKERS, WORKER_PROCESSES = 2, 2
WEB_CONNECTIONS = 6000
"""Of a process, most of them for asks that wait (`held_asks.most_held`)."""
WEB_LIMITS = {
    "GRANIAN_BACKPRESSURE": str(WEB_CONNECTIONS),
    "GRIDBROKER_STATEMENT_TIMEOUT_MS": "5000",
    "GRIDBROKER_LOCK_TIMEOUT_MS": "2000",
}
WORKER_LIMITS = {"GRIDBROKER_STATEMENT_TIMEOUT_MS": "30000", "GRIDBROKER_LOCK_TIMEOUT_MS": "5000"}
SECRET = ("DATABASE_URL", "MONITORING_DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SECRET_KEY_FILE", "SECRET_KEY_FALLBACKS")
"""What a pilot never sees: its payloads inherit its environment."""

QUIET_S = late_after_s(OFTEN_S)
"""No agent began a run for so long that all of them are late: the worker consumes nothing."""


class NotRunning(Exception):
    """The system did not come up, or one of its commands failed; the message has the end of its output."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """A local pilot to start: its queue, the name of its slot, and where secret, working folder and software are."""

    queue: str
    slot: str
    enrolment_file: Path
    work: Path
    software: Path
    options: tuple[str, ...] = ()
    payload_uid: int | None = None
    """The user as whom payloads run; None: the supervisor's own."""
    hidden: tuple[Path, ...] = ()
    """What payloads do not see; none: they get no user namespace."""


Prepare = Callable[["System"], Sequence[Pilot]]


@dataclass(slots=True)
class System:
    """A running system. Names of children: web, worker, beat, mover, pilot-<slot>; `kill` also knows postgres and redis."""

    instance: Instance
    supervisor: Supervisor
    services: Services
    url: str
    root: Path
    environment: dict[str, str] = field(repr=False)
    """What web, worker, beat and mover get: they do not own the tables."""
    signs: Signs = field(default_factory=Signs, repr=False)

    @property
    def folder(self) -> Path:
        """The instance's folder; logs are in `logs` below it."""
        return self.instance.folder

    @property
    def children(self) -> Mapping[str, Child]:
        """The children by name: `pid`, `pids()`, `starts`, `log`."""
        return self.supervisor.children

    @property
    def n_pilots(self) -> int:
        return sum(name.startswith("pilot-") for name in self.children)

    @property
    def owner_environment(self) -> dict[str, str]:
        """What operator commands get: they may make tables."""
        return {**self.environment, "DATABASE_URL": self.services.database_url}

    def kill(self, name: str, number: int = signal.SIGKILL) -> int | None:
        """Send a signal to a child's leader, or to the private server `postgres` or `redis`; the pid that got it."""
        if name not in ("postgres", "redis"):
            return self.supervisor.kill(name, number)
        server = self.instance.postgres if name == "postgres" else self.instance.redis
        identity = server.identity() if server else None
        if identity:
            identity.signal(number)
        return identity.pid if identity else None

    def manage(self, *arguments: str, seconds: float = 120.0) -> str:
        """Run `manage.py` with these arguments on this system; what it printed. NotRunning: its exit code was not 0."""
        command = subprocess.run(
            [sys.executable, str(self.root / "manage.py"), *arguments],
            env=self.owner_environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if command.returncode:
            raise NotRunning(
                f"manage.py {' '.join(arguments)} ended with {command.returncode}:\n{command.stdout}{command.stderr}"
            )
        return command.stdout

    def add_pilot(self, pilot: Pilot) -> Child:
        """Start a local pilot and keep it alive."""
        if pilot.work.is_relative_to(self.folder):
            make_passed(pilot.work, self.folder)
        pilot.work.mkdir(parents=True, exist_ok=True)
        clean = {name: value for name, value in self.environment.items() if name not in SECRET}
        command = (
            *(sys.executable, "-m", "brokerage.pilot", "--server", self.url),
            *("--queue", pilot.queue, "--slot", pilot.slot, "--enrolment-file", str(pilot.enrolment_file)),
            *("--work", str(pilot.work), "--software", str(pilot.software), *pilot.options),
            *(() if pilot.payload_uid is None else ("--payload-uid", str(pilot.payload_uid))),
            *(part for folder in pilot.hidden for part in ("--hide", str(folder))),
        )
        return self.supervisor.add(Spec(f"pilot-{pilot.slot}", command, clean, self.root))


def migrate(system: System) -> Sequence[Pilot]:
    """The least that `prepare` can do: make the tables, start no pilot."""
    system.manage("migrate", "--verbosity", "0")
    return ()


@contextmanager
def running(
    instance: str = "system",
    *,
    prepare: Prepare = migrate,
    pilots: Sequence[Pilot] = (),
    web: bool = True,
    worker: bool = True,
    beat: bool = True,
    mover: bool | None = None,
    fresh: bool = False,
    port: int | None = None,
    environment: Mapping[str, str] | None = None,
    quiet_s: float = QUIET_S,
    frozen_s: float = FROZEN_S,
    log_bytes: int = LIMIT_BYTES,
    root: Path = ROOT,
    say: Say = quiet,
) -> Iterator[System]:
    """Run the system of this instance for the time of the block.

    `prepare` is called once the servers answer and before anything else runs; the pilots that it returns are started with
    `pilots`. `fresh` begins with an empty database (a private one only). `port` is the web port (else a free one, that of the
    last run if possible). `mover` says whether files are copied between storage endpoints; by default they
    are where a worker is. `environment` is added to that of every child. `quiet_s` is how long no agent may begin a run before
    worker and beat are started anew, `frozen_s` how long web server, PostgreSQL and Redis may leave a question unanswered,
    `log_bytes` how long a log file may become.

    NotRunning, NoPlace, NotStarted: something does not come up; what had started is stopped.
    """
    servers = Instance(instance, root=root, say=say)
    services = servers.start(follow=True)
    supervisor = Supervisor(servers.folder / "logs", say)
    try:
        with _supervisor_lock(servers.folder):
            end_leftovers(MARKER, str(servers.folder))
            if fresh and servers.postgres:
                servers.postgres.renew_database()
            url = f"http://127.0.0.1:{_web_port(servers.folder, port)}"
            system = System(servers, supervisor, services, url, root, _environment(servers, services, environment or {}))
            try:
                _start(
                    system,
                    prepare,
                    pilots,
                    web=web,
                    worker=worker,
                    beat=beat,
                    mover=worker if mover is None else mover,
                    quiet_s=quiet_s,
                    frozen_s=frozen_s,
                    log_bytes=log_bytes,
                )
                yield system
            finally:
                system.signs.close()
                supervisor.stop()
                end_leftovers(MARKER, str(servers.folder))  # pilots of submitted jobs, which no child is to end with
    finally:
        servers.stop()
        supervisor.close()


def _start(
    system: System,
    prepare: Prepare,
    pilots: Sequence[Pilot],
    *,
    web: bool,
    worker: bool,
    beat: bool,
    mover: bool,
    quiet_s: float,
    frozen_s: float,
    log_bytes: int,
) -> None:
    """Prepare the database, then start the children, each when those that it needs are there."""
    write_private(system.folder / "system.json", json.dumps({"url": system.url, "pid": os.getpid()}))
    pilots = [*prepare(system), *pilots]
    if system.instance.postgres:
        system.instance.postgres.grant_roles()
    supervisor, signs = system.supervisor, system.signs
    servers = PrivateServers(system.instance)
    supervisor.duty(servers.tend, 0.5)
    supervisor.duty(partial(cut_logs, system.folder / "logs", log_bytes), min(2.0, frozen_s))
    data = {"the data of PostgreSQL": system.instance.postgres.place.data} if system.instance.postgres else {}
    supervisor.duty(partial(full_disks, {**data, "the logs": system.folder / "logs"}), min(2.0, frozen_s))
    watch_servers(signs, system.instance, system.services, servers, frozen_s)
    if web:
        _wait_for_web(system, supervisor.add(_web(system)))
        watch_web(signs, supervisor, system.url, frozen_s)
    if worker:
        supervisor.add(_worker(system))
    if beat:
        supervisor.add(_beat(system))
    if mover:
        supervisor.add(_mover(system))
    supervisor.duty(signs.look, min(1.0, frozen_s / 4))
    supervisor.duty(StoppedProcesses(supervisor, frozen_s).look, min(5.0, frozen_s / 2))
    if worker and beat:
        runs = Probe("agents", partial(agents, system.services.database_url), max(1.0, quiet_s / 10))
        supervisor.duty(QuietAgents(supervisor, signs, runs, quiet_s).look, max(1.0, quiet_s / 10))
        signs.others.append(runs)
    for pilot in pilots:
        system.add_pilot(pilot)


def _web(system: System) -> Spec:
    host_port = system.url.removeprefix("http://").split(":")
    command = (
        *(sys.executable, "-m", "granian", "--interface", "rsgi", "--http", "1", "--host", host_port[0], "--port", host_port[1]),
        *("--workers", str(WEB_WORKERS), "--respawn-failed-workers"),
        *("--workers-kill-timeout", "5", "--no-ws", "--log-level", "warning", "broker_site.rsgi:application"),
    )
    return Spec("web", command, {**system.environment, **WEB_LIMITS}, system.root)


def _worker(system: System) -> Spec:
    command = (
        *(sys.executable, "-m", "celery", "-A", "broker_site.celery", "worker", "--pool", "prefork"),
        *("--concurrency", str(WORKER_PROCESSES), "--without-gossip", "--without-mingle", "--without-heartbeat"),
        *("--hostname", f"worker-{system.instance.name}@%h", "--loglevel", "WARNING"),
    )
    return Spec("worker", command, {**system.environment, **WORKER_LIMITS}, system.root, makes_work=True)


def _beat(system: System) -> Spec:
    command = (
        *(sys.executable, "-m", "celery", "-A", "broker_site.celery", "beat"),
        *("--scheduler", "broker_site.roof.beat_scheduler:PeriodScheduler"),
        *("--pidfile", "", "--max-interval", "1", "--loglevel", "WARNING"),
    )
    return Spec("beat", command, {**system.environment, **WORKER_LIMITS}, system.root, grace_s=5.0, makes_work=True)


def _mover(system: System) -> Spec:
    command = (sys.executable, str(system.root / "manage.py"), "mover")
    return Spec("mover", command, {**system.environment, **WORKER_LIMITS}, system.root, grace_s=5.0)


def _environment(servers: Instance, services: Services, more: Mapping[str, str]) -> dict[str, str]:
    return {
        **os.environ,
        **services.environment(),
        "DATABASE_URL": services.application_url,
        "MONITORING_DATABASE_URL": services.monitoring_url,
        "DJANGO_SETTINGS_MODULE": "broker_site.settings",
        "GRIDBROKER_PROFILE": "local",
        "GRIDBROKER_INSTANCE": servers.name,
        "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": "1",
        MARKER: str(servers.folder),
        **more,
    }


def _wait_for_web(system: System, web: Child) -> None:
    end = time.monotonic() + WEB_READY_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{system.url}/healthz", timeout=5) as answer:  # noqa: S310 - our own http URL
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise NotRunning(f"the web server did not answer at {system.url}/healthz; {web.log} ends with:\n{last_lines(web.log)}")


def _web_port(folder: Path, wanted: int | None) -> int:
    """The port asked for, which must be free; else that of the last run if it is free; else any."""
    if wanted is not None:
        if free_port(wanted) != wanted:
            raise NotRunning(f"port {wanted} on 127.0.0.1 is taken; set GRIDBROKER_PORT to another, or to nothing for a free one")
        return wanted
    last = str(read_private(folder / "system.json").get("url", "")).rpartition(":")[2]
    return free_port(int(last) if last.isdecimal() else None)


@contextmanager
def _supervisor_lock(folder: Path) -> Iterator[None]:
    """See that one supervisor runs an instance; the lock goes with its process."""
    with open_private(folder / "supervisor.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            known = read_private(folder / "system.json")
            where = f"at {known.get('url')} (process {known.get('pid')})"
            raise NotRunning(f"the system of {folder.parent.parent}/{STATE}/{folder.name} already runs {where}") from None
        yield
