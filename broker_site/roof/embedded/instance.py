"""A private instance by its name: both servers, their secrets, and who is using them.

Several processes may use an instance at once (operator commands beside `make up`, parallel test workers). Each holds a shared
lock while it does; whoever leaves last stops the servers. A crashed process loses its lock by itself, so its servers are found
and reused, or cleaned up.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

import psycopg2

from broker_site.foundation.sql.roles import APPLICATION, MONITORING
from broker_site.roof.embedded import process
from broker_site.roof.embedded.place import (
    STATE,
    NoPlace,
    Place,
    find_place,
    locked,
    make_folder,
    open_private,
    read_private,
    shared_folder,
    write_private,
)
from broker_site.roof.embedded.postgres import STARTED, Access, NotStarted, Postgres, end_servers_in, find_software, recorded
from broker_site.roof.embedded.process import Identity
from broker_site.roof.embedded.redis_server import RedisServer, find_binary
from broker_site.roof.embedded.users import own_user

ROOT = Path(__file__).resolve().parents[3]
DURABLE = frozenset({"up"})
"""Instances whose data outlive a crash of the machine; the others (tests, demo, benchmarks) trade that for speed."""
TRIES = 3
PASSWORDS = ("admin_password", "password", "application_password", "monitoring_password")
"""Of the roles of the private PostgreSQL."""

Say = Callable[[str], None]


def quiet(line: str) -> None:
    """A `say` for callers that show nothing."""


@dataclass(frozen=True, slots=True)
class Services:
    """What a process needs to use the servers. The key is empty where the environment names a file that holds it.

    `database_url` is that of the owner of the tables, `application_url` that of web, worker and beat: the same where the
    environment names the database. `monitoring_url` is that of pages; empty where the environment names none.
    """

    database_url: str
    redis_url: str
    secret_key: str
    application_url: str
    monitoring_url: str

    def environment(self) -> dict[str, str]:
        """The variables that `Env` reads, for the owner. An empty Redis URL (none found, none demanded) stays unset."""
        named = {"DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url, "SECRET_KEY": self.secret_key}
        return {name: value for name, value in named.items() if value}


class Instance:
    """The servers of one name under one working folder.

    DATABASE_URL and REDIS_URL in `environ` replace the private servers, unless they are those of this very instance (a
    process that uses it has put them there).
    """

    def __init__(
        self,
        name: str,
        *,
        root: Path = ROOT,
        environ: Mapping[str, str] = os.environ,
        durable: bool | None = None,
        say: Say = quiet,
    ) -> None:
        self.name, self.root, self._say = name, root.resolve(), say
        self.folder = self.root / STATE / name
        self.durable = name in DURABLE if durable is None else durable
        self.postgres: Postgres | None = None
        self.redis: RedisServer | None = None
        kept = read_private(self.folder / "secrets.json")
        own = (kept.get("password"), kept.get("application_password"))
        self._database_url = _foreign(environ.get("DATABASE_URL", ""), *own)
        self._place_known = self._database_url != environ.get("DATABASE_URL", "")
        """Whether the process that put our own URL there has shown the user where things are."""
        self._monitoring_url = _foreign(environ.get("MONITORING_DATABASE_URL", ""), kept.get("monitoring_password"))
        self._redis_url = _foreign(environ.get("REDIS_URL", ""), kept.get("redis_password"))
        self._secret_key = environ.get("SECRET_KEY", "")
        self._key_in_file = bool(environ.get("SECRET_KEY_FILE"))
        self._place: Place | None = None
        self._users: IO[str] | None = None

    def start(self, *, follow: bool = False, need_redis: bool = True) -> Services:
        """Start or find both servers and count as a user of them until `stop`.

        `follow`: the servers end when the thread that started them does, also when it is killed (Linux). Without `need_redis` a
        machine that has no Redis gives empty `redis_url` instead of NoPlace. Errors: NoPlace, NotStarted.
        """
        make_folder(self.root, self.name)
        place = None if self._database_url else self._find_place()
        with locked(self.folder / "lock"):
            if self._users is None:
                self._users = open_private(self.folder / "users")
                fcntl.flock(self._users, fcntl.LOCK_SH)
            try:
                self._start(place, follow=follow, need_redis=need_redis)
            except (NoPlace, NotStarted):
                self._leave(force=False)
                raise
        return self.services

    def stop(self, *, force: bool = False) -> bool:
        """Stop using the servers, and stop them if nobody else uses them (or by `force`); whether they were stopped."""
        with locked(self.folder / "lock"):
            return self._leave(force=force)

    def remove(self) -> bool:
        """Stop what a crash left and remove all that this instance keeps; False when somebody is using it."""
        with locked(self.folder / "lock"):
            self._users = open_private(self.folder / "users")
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            finally:
                self._users.close()
                self._users = None
            self._redis_left().stop()
            homes = [self.folder] if os.geteuid() else [self.folder, shared_folder(self.root) / self.name]
            for servers in homes:
                end_servers_in(servers / "pg")
                shutil.rmtree(servers, ignore_errors=True)
        return True

    def revive(self, *names: str, follow: bool = False) -> list[str]:
        """Start again, on the same ports, the private servers that have died (only those of `names`, if any); their names."""
        dead = [name for name in names or ("postgres", "redis") if self.is_private(name) and not self.runs(name)]
        if dead:
            with locked(self.folder / "lock"):
                for name in dead:
                    if server := self._server(name):
                        server.start(follow=follow)
                self._note()
        return dead

    def is_private(self, name: str) -> bool:
        """Whether the server `postgres` or `redis` is one of our own."""
        return self._server(name) is not None

    def runs(self, name: str) -> bool:
        """Whether a private server has a process."""
        server = self._server(name)
        return server is not None and server.alive()

    def kill(self, name: str) -> None:
        """End a private server that does not answer, with all its processes, at once."""
        if server := self._server(name):
            server.kill()

    def _server(self, name: str) -> Postgres | RedisServer | None:
        return self.postgres if name == "postgres" else self.redis

    @property
    def services(self) -> Services:
        return Services(
            database_url=self.postgres.url() if self.postgres else self._database_url,
            redis_url=self.redis.url if self.redis else self._redis_url,
            secret_key=self._secret_key,
            application_url=self.postgres.url(APPLICATION) if self.postgres else self._database_url,
            monitoring_url=self.postgres.url(MONITORING) if self.postgres else self._monitoring_url,
        )

    def empty(self) -> bool:
        """Whether nobody has made tables in the database yet."""
        with (
            closing(psycopg2.connect(self.services.database_url, connect_timeout=5)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT FROM pg_tables WHERE tablename = 'django_migrations'")
            return cursor.rowcount == 0

    def _find_place(self) -> Place:
        if self._place is None:
            self._place = find_place(self.root, self.name, find_software(), partial(own_user, self.folder, "postgres"))
            if self._place.note and not self._place_known:
                self._say(self._place.note)
        return self._place

    def _start(self, place: Place | None, *, follow: bool, need_redis: bool) -> None:
        kept = self._secrets(place)
        if not self._key_in_file:
            self._secret_key = self._secret_key or kept["secret_key"]
        private_redis = not self._redis_url and (need_redis or _has_redis())
        if private_redis:
            find_binary()  # the line on how to get one comes before anything is started
        if place:
            self._start_postgres(place, kept, follow)
        if private_redis:
            self._start_redis(follow)
        self._note()

    def _start_postgres(self, place: Place, kept: Mapping[str, str], follow: bool) -> None:
        before = time.monotonic()
        wanted = recorded(place.data)[1] or _number(read_private(self.folder / "state.json").get("postgres_port"))
        for left in reversed(range(TRIES)):
            if not left and not self.durable:
                self._discard(place)  # the machine went down while `fsync` was off
            server = Postgres(place, Access(wanted, *(kept[name] for name in PASSWORDS)), durable=self.durable)
            if not server.identity():
                server.access = replace(server.access, port=process.free_port(wanted))
            try:
                how = server.start(follow=follow)
                break
            except NotStarted:  # another program may have taken the port between our look and the server's
                if not left:
                    raise
                wanted = 0
        self.postgres = server
        if how == STARTED:
            self._say(f"PostgreSQL {server.version()} started in {time.monotonic() - before:.1f} s")

    def _start_redis(self, follow: bool) -> None:
        before = time.monotonic()
        server = self._redis_left()
        for left in reversed(range(TRIES)):
            if not server.identity():
                server.port = process.free_port(server.port)
            try:
                how = server.start(follow=follow)
                break
            except NotStarted:
                if not left:
                    raise
                server = RedisServer(self.folder, 0, server.password)
        self.redis = server
        if how == STARTED:
            self._say(f"Redis started in {time.monotonic() - before:.1f} s")

    def _redis_left(self) -> RedisServer:
        """The Redis that the last run noted, whether it still runs or not."""
        state, kept = read_private(self.folder / "state.json"), read_private(self.folder / "secrets.json")
        port, pid, began = (_number(state.get(name)) for name in ("redis_port", "redis_pid", "redis_began_ms"))
        known = Identity(pid, began / 1000) if pid else None
        return RedisServer(self.folder, port, str(kept.get("redis_password", "")), known)

    def _leave(self, *, force: bool) -> bool:
        """Give up our share; stop the servers when nobody else has one. The caller holds the lock."""
        if self._users is None:
            return False
        try:
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            last = True
        except BlockingIOError:
            last = False
        if last or force:
            for server in (self.redis, self.postgres):
                if server:
                    server.stop()
        self._users.close()
        self._users = None
        return last or force

    def _note(self) -> None:
        """Write down what a later process needs to find the servers again."""
        known = self.redis.known if self.redis else None
        state = {
            "postgres_port": self.postgres.access.port if self.postgres else None,
            "redis_port": self.redis.port if self.redis else None,
            "redis_pid": known.pid if known else None,
            "redis_began_ms": round(known.began * 1000) if known else None,
        }
        write_private(self.folder / "state.json", json.dumps(state))

    def _secrets(self, place: Place | None) -> dict[str, str]:
        """Passwords and signing key of this instance, made once. Data whose passwords are gone are not ours to keep using."""
        path = self.folder / "secrets.json"
        kept = {name: str(value) for name, value in read_private(path).items()}
        if not kept:
            if place and place.data.exists():
                # `.gridbroker` was removed to begin anew, but the data lay elsewhere.
                if place.servers == self.folder:
                    raise NoPlace(f"{self.folder} has data but no secrets.json; remove the folder to begin anew")
                self._discard(place)
            kept["secret_key"] = secrets.token_urlsafe(50)
        if missing := [name for name in (*PASSWORDS, "redis_password") if name not in kept]:
            kept |= {name: secrets.token_hex(24) for name in missing}
            write_private(path, json.dumps(kept))
        return kept

    def _discard(self, place: Place) -> None:
        """Remove the data of the database, which the next start makes anew."""
        end_servers_in(place.data)
        shutil.rmtree(place.data, ignore_errors=True)
        self._say(f"the database in {place.data} is of no use any more and is made anew")


@contextmanager
def attached(name: str, *, say: Say = quiet, need_redis: bool = False, follow: bool = False) -> Iterator[Instance]:
    """Use the instance for the time of a block: found running, or started and then stopped again by whoever leaves last."""
    instance = Instance(name, say=say)
    instance.start(need_redis=need_redis, follow=follow)
    try:
        yield instance
    finally:
        instance.stop()


def _foreign(url: str, *own_passwords: object) -> str:
    """The URL, or nothing when it carries a random password of our own server."""
    return "" if any(isinstance(own, str) and own in url for own in own_passwords) else url


def _has_redis() -> bool:
    try:
        find_binary()
    except NoPlace:
        return False
    return True


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
