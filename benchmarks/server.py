"""The servers that benchmarks run on: private, durable as those of `up`, with a database that is made for a run and dropped.

With DATABASE_URL set, that server is used, with a database of its own there too. A database may also be kept in a folder, for
later runs to ask again what took long to fill.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg2
import psycopg2.extensions

from broker_site.roof.embedded import Instance

INSTANCE = "bench"
KEPT = "bench_kept"
"""Name of a database that is kept in a folder; its comment says that it is whole, and what is in it."""
TABLES = "BENCH_TABLES"
"""Variable: the database with the tables of the system that runs copy, instead of making the tables each by itself."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A running server with an empty database that has the tables of the system."""

    instance: Instance
    url: str

    def connect(self) -> psycopg2.extensions.connection:
        """A connection of its own, each statement its own transaction."""
        connection = psycopg2.connect(self.url)
        connection.autocommit = True
        return connection

    def execute(self, *statements: str) -> None:
        """Run statements, each its own transaction."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def number(self, query: str) -> float:
        """The one number that a query gives."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
            return float(row[0]) if row and row[0] is not None else 0.0

    def settle(self, *tables: str) -> None:
        """Vacuum and analyze tables, so that every round starts from the same state."""
        self.execute(*(f"VACUUM (ANALYZE) {table}" for table in tables))
        postgres = self.instance.postgres
        if postgres:
            with postgres.administer() as connection, connection.cursor() as cursor:
                cursor.execute("CHECKPOINT")

    def cpu_s(self) -> float | None:
        """CPU seconds that the private server and its sessions have used; None where the server is not ours."""
        identity = self.instance.postgres.identity() if self.instance.postgres else None
        return tree_cpu_s(identity.pid) if identity else None


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process and of all that it has started, also of those that have ended since."""
    leader = psutil.Process(pid)
    total = 0.0
    for each in (leader, *leader.children(recursive=True)):
        try:
            used = each.cpu_times()
            total += used.user + used.system + used.children_user + used.children_system
        except psutil.NoSuchProcess:
            continue
    return total


class NotKept(SystemExit):
    """A folder is no place for a kept database, or holds none that is whole; the message says which."""


@contextmanager
def held(folder: Path | None = None) -> Iterator[Instance]:
    """The servers, for the block; whoever leaves last stops them, and removes all they kept unless it lies in a folder."""
    instance = Instance(INSTANCE, durable=True) if folder is None else Instance(INSTANCE, root=folder, durable=True)
    instance.start(need_redis=False, follow=True)
    try:
        if instance.postgres is not None:
            instance.postgres.allow_databases()
        yield instance
    finally:
        instance.stop()
        if folder is None:
            instance.remove()


@contextmanager
def bench() -> Iterator[Bench]:
    """A server with a fresh database, and Django set up for it in this process; the database is dropped at the end."""
    with held() as instance:
        services, name, tables = instance.services, f"bench_{os.getpid()}", os.environ.get(TABLES)
        _drop_databases_of_dead_runs(services.database_url)
        _run(services.database_url, f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{tables}"' if tables else ""))
        try:
            with _used(instance, name, migrated=bool(tables)) as server:
                yield server
        finally:
            _run(services.database_url, _dropping(name))


@contextmanager
def kept(folder: Path, *, fresh: bool) -> Iterator[tuple[Bench, dict[str, Any]]]:
    """A server whose data stay in the folder, with a `fresh` database or the one that an earlier run kept there, whose tables are
    brought up to date; and what that run said of it. NotKept where the environment names a server, or the folder has none.
    """
    if os.environ.get("DATABASE_URL"):
        raise NotKept("--keep and --reuse need a server of their own: unset DATABASE_URL")
    if not fresh and not folder.is_dir():
        raise NotKept(f"--reuse: there is no folder {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder) as instance:
        url = instance.services.database_url
        if fresh:
            _run(url, _dropping(KEPT))
            _run(url, f'CREATE DATABASE "{KEPT}"')
        elif not (said := _said_of(url)):
            raise NotKept(f"--reuse: {folder} has no database that was filled to the end; fill one with --keep")
        with _used(instance, KEPT) as server:
            yield server, {} if fresh else said


def keep(server: Bench, said: dict[str, Any]) -> None:
    """Note of a kept database that it is whole, and what is in it."""
    _run(server.url, f"COMMENT ON DATABASE \"{KEPT}\" IS '{json.dumps(said)}'")


def _said_of(url: str) -> dict[str, Any]:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [KEPT])
        row = cursor.fetchone()
    return dict(json.loads(row[0])) if row and row[0] else {}


@contextmanager
def _used(instance: Instance, name: str, *, migrated: bool = False) -> Iterator[Bench]:
    """The database of this name, and Django set up for it in this process, its tables made unless they are there."""
    services, outside = instance.services, os.environ.get("DATABASE_URL", "")
    url = urlsplit(services.database_url)._replace(path=f"/{name}").geturl()
    os.environ.update(
        services.environment(),
        DATABASE_URL=url,
        MONITORING_DATABASE_URL="",
        GRIDBROKER_PROFILE="local",
        GRIDBROKER_LOG_LEVEL="WARNING",
        DJANGO_SETTINGS_MODULE="broker_site.settings",
    )
    import django
    from django.core.management import call_command
    from django.db import connections

    try:
        django.setup()
        if not migrated:
            call_command("migrate", verbosity=0, interactive=False)
        yield Bench(instance, url)
    finally:
        connections.close_all()
        os.environ["DATABASE_URL"] = outside  # a later run of this process, or of a child, has a database of its own


@contextmanager
def shared_tables() -> Iterator[None]:
    """Keep the servers running for the block, with a database that the runs in it copy."""
    with held() as instance:
        administered = instance.services.database_url
        with bench() as server:
            from django.db import connections

            connections.close_all()
            name = urlsplit(server.url).path.removeprefix("/")
            _run(administered, f'ALTER DATABASE "{name}" RENAME TO "{name}_tables"')
        os.environ[TABLES] = f"{name}_tables"
        try:
            yield
        finally:
            _run(administered, _dropping(os.environ.pop(TABLES)))


def _drop_databases_of_dead_runs(url: str) -> None:
    """A killed run leaves its databases behind."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE datname ~ '^bench_[0-9]+(_tables)?$'")
        names = [row[0] for row in cursor.fetchall()]
    for name in names:
        if not psutil.pid_exists(int(name.split("_")[1])):
            _run(url, _dropping(name))


def _dropping(name: str) -> str:
    return f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'


def _run(url: str, statement: str) -> None:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
