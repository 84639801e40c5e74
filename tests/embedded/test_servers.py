"""Private PostgreSQL and Redis: they start, keep data, survive crashes of whoever uses them, and are nobody else's."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg2
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from broker_site.roof.embedded import Instance, NoPlace, NotStarted, Services, redis_server
from broker_site.roof.embedded.place import STATE, shared_folder
from broker_site.roof.embedded.process import Identity, gone
from tests.embedded.conftest import Make

pytestmark = pytest.mark.servers
ROOT = Path(__file__).resolve().parents[2]

USER_PROCESS = """
import signal, sys
from pathlib import Path
from broker_site.roof.embedded import Instance
instance = Instance("one", root=Path(sys.argv[1]), environ={})
instance.start(follow=sys.argv[2] == "follow")
print(instance.postgres.identity().pid, instance.redis.identity().pid, flush=True)
signal.pause()
"""


def run(services: Services, statement: str) -> list[tuple[object, ...]]:
    with closing(psycopg2.connect(services.database_url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def identities(instance: Instance) -> tuple[Identity, Identity]:
    assert instance.postgres and instance.redis
    found = instance.postgres.identity(), instance.redis.identity()
    assert found[0] and found[1]
    return found[0], found[1]


def user_of(folder: Path, how: str) -> tuple[subprocess.Popen[str], list[Identity]]:
    """Another process that uses the instance, and the servers it runs."""
    process = subprocess.Popen([sys.executable, "-c", USER_PROCESS, folder, how], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    servers = [Identity.of(int(pid)) for pid in process.stdout.readline().split()]
    assert len(servers) == 2
    return process, [server for server in servers if server]


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_data_are_kept_between_runs_on_the_same_ports(folder: Path, make: Make) -> None:
    first = make(folder)
    services = first.start()
    run(services, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 42 AS answer")
    servers = identities(first)
    assert first.stop()
    assert not any(server.alive() for server in servers)

    second = make(folder)
    assert second.start() == services
    assert run(services, "SELECT answer FROM kept") == [(42,)]
    assert redis.Redis.from_url(services.redis_url).ping()
    second.stop()


def test_servers_of_a_killed_user_are_found_and_used(folder: Path, make: Make) -> None:
    crashed, servers = user_of(folder, "alone")
    kill(crashed)
    assert all(server.alive() for server in servers)
    instance = make(folder)
    instance.start()
    assert list(identities(instance)) == servers
    assert instance.stop()
    assert not any(server.alive() for server in servers)


def test_servers_that_follow_end_with_a_killed_supervisor(folder: Path) -> None:
    crashed, servers = user_of(folder, "follow")
    kill(crashed)
    assert all(gone(server, 20) for server in servers)


def test_a_killed_postgres_recovers_with_its_data(folder: Path, make: Make) -> None:
    instance = make(folder)
    services = instance.start()
    run(services, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 42 AS answer")
    for server in identities(instance):
        os.kill(server.pid, signal.SIGKILL)
        assert gone(server, 10)
    assert sorted(instance.revive()) == ["postgres", "redis"]
    assert instance.services == services
    assert run(services, "SELECT answer FROM kept") == [(42,)]
    instance.stop()


def test_a_stale_pid_file_is_no_server(folder: Path, make: Make) -> None:
    instance = make(folder)
    instance.start()
    assert instance.postgres
    mark = instance.postgres.place.data / "postmaster.pid"
    lines = mark.read_text().splitlines()
    instance.stop()
    mark.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")  # the pid went to another program: this one
    run(instance.start(), "SELECT 1")
    instance.stop()


def test_a_stale_lock_of_the_socket_does_not_move_the_server_to_another_port(folder: Path, make: Make) -> None:
    instance = make(folder)
    services = instance.start()
    assert instance.postgres and instance.postgres.socket_folder
    lock = instance.postgres.socket_folder / f".s.PGSQL.{instance.postgres.access.port}.lock"
    lines = lock.read_text().splitlines()
    account = instance.postgres.place.account
    instance.stop()
    uid = account.uid if account else os.geteuid()
    with subprocess.Popen(["sleep", "10"], user=uid) as other:  # the pid went to another process of the user
        lock.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        os.chown(lock, uid, -1)
        assert instance.start() == services
        other.kill()
    assert [path.name for path in lock.parent.glob("*.lock")] == [lock.name]
    instance.stop()


def test_two_instances_run_side_by_side(folder: Path, make: Make) -> None:
    first, second = make(folder), make(folder, "two")
    a, b = first.start(), second.start()
    run(a, "CREATE TABLE IF NOT EXISTS mine (x int)")
    assert run(b, "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'") == [(0,)]
    assert a.redis_url != b.redis_url
    first.stop()
    run(b, "SELECT 1")
    second.stop()


def test_the_last_to_leave_stops_the_servers(folder: Path, make: Make) -> None:
    first, second = make(folder), make(folder)
    services = first.start()
    second.start()
    assert not first.stop()
    run(services, "SELECT 1")
    assert second.stop()
    with pytest.raises(psycopg2.OperationalError):
        run(services, "SELECT 1")


def test_nobody_enters_without_the_password(folder: Path, make: Make) -> None:
    instance = make(folder)
    services = instance.start()
    assert instance.postgres and instance.redis
    port = instance.postgres.access.port
    for host in ("127.0.0.1", str(instance.postgres.place.sockets)):
        with pytest.raises(psycopg2.OperationalError, match=r"password|fe_sendauth"):
            psycopg2.connect(host=host, port=port, user="gridbroker", dbname="gridbroker", password="guess", connect_timeout=5)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=instance.redis.port, retry=Retry(NoBackoff(), 0)).ping()
    assert run(services, "SHOW listen_addresses") == [("127.0.0.1",)]
    assert run(services, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == [(False,)]
    command_lines = "".join(path.read_text(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline") if readable(path))
    assert instance.redis.password not in command_lines
    instance.stop()


def test_an_instance_of_an_older_release_gets_the_roles_of_application_and_monitoring(own_folder: Path, make: Make) -> None:
    first = make(own_folder, durable=True)
    first.start()
    assert first.postgres
    with first.postgres.administer() as connection, connection.cursor() as cursor:
        cursor.execute("DROP ROLE gridbroker_application; DROP ROLE gridbroker_monitoring; ALTER ROLE gridbroker CREATEDB")
    first.stop()
    secrets = first.folder / "secrets.json"
    kept = json.loads(secrets.read_text())
    del kept["application_password"], kept["monitoring_password"]
    secrets.write_text(json.dumps(kept))

    second = make(own_folder, durable=True)
    services = second.start()
    assert {**json.loads(secrets.read_text()), **kept} == json.loads(secrets.read_text())
    rights = "SELECT current_user, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
    assert run(services, rights) == [("gridbroker", False, False, False)]
    as_application = replace(services, database_url=services.application_url)
    assert run(as_application, rights) == [("gridbroker_application", False, False, False)]
    as_monitoring = replace(services, database_url=services.monitoring_url)
    assert run(as_monitoring, rights) == [("gridbroker_monitoring", False, False, False)]
    third = make(own_folder, durable=True, environ={"DATABASE_URL": services.application_url})
    assert third.start().database_url == services.database_url, "the URL of the application is not somebody else's database"
    third.stop()
    second.stop()


def readable(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


def modes_for_others(folder: Path) -> dict[str, int]:
    """Whatever other users may do with files, and read of folders, below a folder."""
    loose = {}
    for path in (folder, *folder.rglob("*")):
        mode = path.lstat().st_mode
        allowed = 0o001 if stat.S_ISDIR(mode) and os.geteuid() == 0 else 0
        if not stat.S_ISLNK(mode) and not stat.S_ISSOCK(mode) and mode & 0o007 & ~allowed:
            loose[str(path)] = stat.S_IMODE(mode)
    return loose


def test_what_an_instance_keeps_is_ours_alone_to_read(folder: Path, make: Make) -> None:
    for name in ("logs", "storage/ALPHA_DISK"):
        (folder / STATE / "one" / name).mkdir(parents=True, exist_ok=True)
    (folder / STATE / "one" / "logs" / "worker.log").write_text("of an older version, which left it open")
    (folder / STATE).chmod(0o755)
    instance = make(folder)
    instance.start()
    for name in ("secrets.json", "state.json"):
        assert stat.S_IMODE((instance.folder / name).stat().st_mode) == 0o600
    assert instance.postgres
    assert stat.S_IMODE(instance.postgres.place.data.stat().st_mode) == 0o700
    assert stat.S_IMODE((instance.folder / "storage").stat().st_mode) == 0o700
    shutil.rmtree(instance.folder / "storage")
    assert modes_for_others(folder / STATE) == {}
    instance.stop()


def test_a_port_that_somebody_took_is_given_up(folder: Path, make: Make) -> None:
    instance = make(folder)
    instance.start()
    assert instance.postgres
    port = instance.postgres.access.port
    instance.stop()
    with socket.create_server(("127.0.0.1", port)):
        again = make(folder)
        run(again.start(), "SELECT 1")
        assert again.postgres
        assert again.postgres.access.port != port
        again.stop()


def test_removing_the_state_is_a_clean_slate(own_folder: Path, make: Make) -> None:
    instance = make(own_folder)
    run(instance.start(), "CREATE TABLE kept (x int)")
    instance.stop()
    shutil.rmtree(own_folder / STATE)
    fresh = make(own_folder)
    assert run(fresh.start(), "SELECT count(*) FROM pg_tables WHERE tablename = 'kept'") == [(0,)]
    assert fresh.empty()
    fresh.stop()


def test_test_data_that_a_crash_of_the_machine_spoiled_are_made_anew(own_folder: Path, make: Make) -> None:
    instance = make(own_folder)
    instance.start()
    assert instance.postgres
    data = instance.postgres.place.data
    instance.stop()
    (data / "global" / "pg_control").write_bytes(b"\0" * 8192)
    said: list[str] = []
    again = make(own_folder, say=said.append)
    run(again.start(), "SELECT 1")
    assert any("made anew" in line for line in said)


def test_kept_data_are_never_thrown_away(own_folder: Path, make: Make) -> None:
    instance = make(own_folder, durable=True)
    instance.start()
    assert instance.postgres
    control = instance.postgres.place.data / "global" / "pg_control"
    instance.stop()
    control.rename(control.with_suffix(".away"))
    with pytest.raises(NotStarted, match="pg_control"):
        make(own_folder, durable=True).start()
    control.with_suffix(".away").rename(control)
    run(make(own_folder, durable=True).start(), "SELECT 1")


def test_given_urls_replace_the_private_servers(folder: Path, make: Make) -> None:
    environ = {"DATABASE_URL": "postgresql://me:x@db.invalid/grid", "REDIS_URL": "redis://redis.invalid/0"}
    instance = make(folder, environ=environ)
    services = instance.start()
    assert (services.database_url, services.redis_url) == (environ["DATABASE_URL"], environ["REDIS_URL"])
    assert instance.postgres is None
    assert instance.redis is None
    instance.stop()


def test_a_machine_without_redis_is_told_what_to_do(folder: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(redis_server, "WHEEL", "no_such_wheel")
    with pytest.raises(NoPlace, match="set REDIS_URL, or install redis-server or valkey-server"):
        make(folder).start()
    instance = make(folder)
    assert instance.start(need_redis=False).redis_url == ""
    instance.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user's help")
def test_root_in_an_unreachable_folder_puts_the_servers_elsewhere_and_says_so(closed_folder: Path, make: Make) -> None:
    said: list[str] = []
    instance = make(closed_folder, say=said.append)
    services = instance.start()
    elsewhere = shared_folder(closed_folder)
    assert str(elsewhere) in said[0]
    assert run(services, "SHOW data_directory") == [(str(elsewhere / "one" / "pg"),)]
    assert stat.S_IMODE(closed_folder.stat().st_mode) == 0o700
    assert instance.postgres and instance.postgres.place.account
    identity = instance.postgres.identity()
    assert identity
    assert Path(f"/proc/{identity.pid}").stat().st_uid == instance.postgres.place.account.uid
    instance.stop()

    shutil.rmtree(closed_folder / STATE)
    again = make(closed_folder)
    assert run(again.start(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]
    again.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user's help")
def test_a_server_that_root_starts_has_a_user_of_its_own(own_folder: Path, make: Make) -> None:
    instance = make(own_folder)
    run(instance.start(), "CREATE TABLE kept AS SELECT 42 AS answer")
    assert instance.postgres and instance.postgres.place.account
    data, uid = instance.postgres.place.data, instance.postgres.place.account.uid
    with pytest.raises(KeyError):
        pwd.getpwuid(uid)
    assert {path.lstat().st_uid for path in (data, *data.rglob("*"))} == {uid}
    identity = instance.postgres.identity()
    assert identity
    assert psutil.Process(identity.pid).uids().effective == uid
    instance.stop()

    nobody = pwd.getpwnam("nobody")
    for path in (data, *data.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)  # as an older version left it
    again = make(own_folder)
    assert run(again.start(), "SELECT answer FROM kept") == [(42,)]
    assert {path.lstat().st_uid for path in (data, *data.rglob("*"))} == {uid}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is exposed to it")
def test_root_does_not_trust_a_folder_that_others_made(closed_folder: Path, make: Make) -> None:
    trap = shared_folder(closed_folder)
    trap.mkdir(mode=0o777)
    trap.chmod(0o777)
    with pytest.raises(NoPlace, match="only root can write"):
        make(closed_folder).start()


def test_a_stopped_user_leaves_no_lock(folder: Path, make: Make) -> None:
    crashed, servers = user_of(folder, "alone")
    instance = make(folder)
    instance.start()
    assert not instance.stop()  # the other still uses them
    kill(crashed)
    assert all(server.alive() for server in servers)
    last = make(folder)
    last.start()
    before = time.monotonic()
    assert last.stop()
    assert time.monotonic() - before < 10
