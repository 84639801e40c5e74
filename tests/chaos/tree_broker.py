"""One broker of the tree: an instance with a database of its own in the shared PostgreSQL, killed and restored from outside."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT

from broker_site.foundation.sql.roles import APPLICATION, MONITORING, grant
from broker_site.roof.embedded import Instance
from broker_site.roof.embedded.instance import ROOT
from broker_site.roof.embedded.place import STATE, make_folder, read_private
from broker_site.roof.embedded.postgres import ADMIN, DATABASE, OWNER, find_software
from broker_site.roof.embedded.process import Identity, free_port
from broker_site.roof.supervisor import Pilot, System, running, system
from tests.chaos.run import FROZEN_S, QUIET_S

JUMPS = {"workqueues_task": 10_000, "brokerage_job": 1_000_000}
"""Ids that a restored broker does not give again, as the how-to page on backups says."""
PARTS = ("web", "worker", "beat")
_ENVIRONMENT = threading.Lock()


def few_processes() -> None:
    """Three brokers on one small machine: one process each where a broker by itself has two."""
    system.WEB_WORKERS = system.WORKER_PROCESSES = 1


@dataclass(slots=True)
class Databases:
    """The databases of the brokers in one PostgreSQL, whose administrator makes and restores them."""

    servers: Instance

    def admin_url(self, name: str = "postgres") -> str:
        """As the administrator of the cluster."""
        assert self.servers.postgres
        password = str(read_private(self.servers.folder / "secrets.json")["admin_password"])
        return f"postgresql://{ADMIN}:{quote(password)}@127.0.0.1:{self.servers.postgres.access.port}/{name}"

    def url(self, name: str, role: str = OWNER) -> str:
        """As the owner of the tables, or as web, worker and beat see it."""
        assert self.servers.postgres
        return self.servers.postgres.url(role).replace(f"/{DATABASE}?", f"/{name}?")

    def make(self, name: str, template: str = "template0") -> None:
        """A database anew, empty or a copy of another one."""
        with contextlib.closing(psycopg2.connect(self.admin_url())) as connection:
            connection.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
            with connection.cursor() as cursor:
                cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
                make = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}")
                cursor.execute(make.format(*(sql.Identifier(each) for each in (name, OWNER, template))))

    def grant(self, name: str) -> None:
        """The rights of web, worker and beat."""
        with contextlib.closing(psycopg2.connect(self.url(name))) as connection, connection, connection.cursor() as cursor:
            grant(cursor, OWNER, APPLICATION, MONITORING)

    def dump(self, name: str, file: Path) -> None:
        """A backup of a database under work."""
        _command("pg_dump", "-Fc", "-Z1", "-f", str(file), "-d", self.admin_url(name))

    def restore(self, name: str, file: Path) -> None:
        """An older state of a database replaces it."""
        self.make(name)
        _command("pg_restore", "--no-comments", "-d", self.admin_url(name), str(file))


def _command(program: str, *arguments: str) -> None:
    ran = subprocess.run(
        [str(find_software() / "bin" / program), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"{program} ended with {ran.returncode}: {ran.stderr[-2000:]}")


@dataclass(slots=True)
class Broker:
    """A parent or child. `queues`: its queues with the pilots of each; `more`: its environment beside what all have."""

    name: str
    instance: str
    number: int
    databases: Databases
    folder: Path
    software: Path
    queues: Mapping[str, int] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)
    enrolments: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    system: System | None = None
    backups: int = 0
    _stack: contextlib.ExitStack | None = None

    @property
    def database(self) -> str:
        """The name of its database."""
        return f"tree_{self.name}"

    @property
    def dsn(self) -> str:
        """Its database, as the owner of the tables."""
        return self.databases.url(self.database)

    @property
    def installation_file(self) -> Path:
        """What it keeps beside its database."""
        return self.folder / f"{self.name}.installation.json"

    @property
    def backup(self) -> Path:
        """Its last backup."""
        return self.folder / f"{self.name}.dump"

    def begin(self) -> None:
        """Empty folders for its logs and pilots."""
        shutil.rmtree(ROOT / STATE / self.instance, ignore_errors=True)
        make_folder(ROOT, self.instance)
        for queue, secret in self.enrolments.items():
            self._secret(queue).write_text(secret + "\n", encoding="ascii")

    def start(self) -> None:
        """Start web, worker, beat and pilots, with a signing key that nobody had before."""
        self._stack = contextlib.ExitStack()
        environment = {
            "SECRET_KEY": secrets.token_urlsafe(50),
            "GRIDBROKER_INSTALLATION_FILE": str(self.installation_file),
            **self.more,
        }
        with contextlib.ExitStack() as known:
            known.enter_context(self._servers_known())

            def prepare(_: System) -> list[Pilot]:
                known.close()  # the environment of its children is made by now
                return list(self._pilots())

            self.system = self._stack.enter_context(
                running(
                    self.instance,
                    prepare=prepare,
                    port=self.port,
                    environment=environment,
                    mover=False,
                    quiet_s=QUIET_S,
                    frozen_s=FROZEN_S,
                )
            )

    def stop(self) -> None:
        """End it in order."""
        if self._stack:
            self._stack.close()
        self._stack = self.system = None

    def kill(self, *names: str) -> None:
        """SIGKILL for these parts with all that they have started; the supervisor starts them again."""
        for name in names:
            self._kill_all(name)

    def crash(self) -> None:
        """The machine is gone with all its processes, pilots too."""
        assert self.system
        self.system.supervisor._stopping.set()  # nothing is started again meanwhile
        for name in self.system.children:
            self._kill_all(name)
        self.stop()

    def back_up(self) -> None:
        """Keep the database as it is."""
        self.databases.dump(self.database, self.backup)
        self.backups += 1

    def restore(self) -> None:
        """The machine is lost and begins again with the last backup; its ids go on where nobody has seen them.

        `manage.py after_restore` is not run: that an older state came back shows in the file beside the database.
        """
        self.crash()
        self.databases.restore(self.database, self.backup)
        with contextlib.closing(psycopg2.connect(self.dsn)) as connection, connection, connection.cursor() as cursor:
            for table, jump in JUMPS.items():
                cursor.execute(
                    "SELECT setval(pg_get_serial_sequence(%(t)s, 'id'), nextval(pg_get_serial_sequence(%(t)s, 'id')) + %(n)s)",
                    {"t": table, "n": jump},
                )
        self.start()

    def setup(self, what: str, **said: object) -> dict[str, Any]:
        """Fill its database; what its clients need."""
        return setup(self.dsn, what, **said)

    def broken(self) -> list[str]:
        """Its invariants that do not hold, in words."""
        environment = {**os.environ, "DATABASE_URL": self.dsn, "GRIDBROKER_PROFILE": "local"}
        ran = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "check_invariants"],
            env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return [] if ran.returncode == 0 else [f"{self.name}: {line}" for line in (ran.stdout + ran.stderr[-500:]).splitlines()]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        with contextlib.closing(psycopg2.connect(self.dsn, connect_timeout=5)) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def _kill_all(self, name: str) -> None:
        assert self.system
        for pid in self.system.children[name].pids():
            if identity := Identity.of(pid):
                identity.signal(signal.SIGKILL)

    def _pilots(self) -> Iterator[Pilot]:
        for queue, n in self.queues.items():
            for slot in range(n):
                work = ROOT / STATE / self.instance / "work" / queue / str(slot)
                yield Pilot(queue, f"{queue}-{slot}", self._secret(queue), work, self.software)

    def _secret(self, queue: str) -> Path:
        return self.folder / f"enrolment-{queue}"

    @contextlib.contextmanager
    def _servers_known(self) -> Iterator[None]:
        """While it starts, the environment names its database and its part of Redis."""
        redis = self.databases.servers.services.redis_url.rpartition("/")[0]
        named = {"DATABASE_URL": self.databases.url(self.database, APPLICATION), "REDIS_URL": f"{redis}/{self.number}"}
        with _ENVIRONMENT:
            os.environ.update(named)
            try:
                yield
            finally:
                for name in named:
                    os.environ.pop(name)


def setup(dsn: str, what: str, **said: object) -> dict[str, Any]:
    """Fill a database in a process of its own."""
    with _ENVIRONMENT:
        environment = {**os.environ, "DATABASE_URL": dsn, "DJANGO_SETTINGS_MODULE": "broker_site.settings"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.chaos.tree_setup", what],
        input=json.dumps(said), env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    if ran.returncode:
        raise RuntimeError(f"{what} was not made:\n{ran.stderr[-4000:]}")
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


def stop_all(brokers: Sequence[Broker]) -> None:
    """End them at the same time."""
    threads = [threading.Thread(target=broker.stop) for broker in brokers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
