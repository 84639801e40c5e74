"""The supervisor: what dies is started again, what is left over is ended, and nothing outlives it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import psycopg2
import pytest

from broker_site.roof.embedded import Instance
from broker_site.roof.embedded.process import Identity, gone
from broker_site.roof.supervisor import NotRunning, Pilot, System, running
from broker_site.roof.supervisor.child import Spec
from broker_site.roof.supervisor.system import MARKER
from broker_site.roof.supervisor.watch import Supervisor

pytestmark = pytest.mark.servers
ROOT = Path(__file__).resolve().parents[2]
INSTANCE = f"supervised-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
"""One for each test process: the tests of this file may be shared out among several."""

SUPERVISOR = f"""
import signal
from broker_site.roof.supervisor import running
with running({INSTANCE!r}, prepare=lambda system: (), worker=False) as system:
    pids = [pid for child in system.children.values() for pid in child.pids()]
    print(*pids, flush=True)
    signal.pause()
"""


def nothing(system: System) -> tuple[Pilot, ...]:
    """A system without tables: enough for children that ask nothing of them."""
    return ()


def answers(system: System) -> bool:
    try:
        with urllib.request.urlopen(f"{system.url}/healthz", timeout=2) as answer:  # noqa: S310 - our own http URL
            return bool(answer.status == 200)
    except OSError:
        return False


def until(happened: Callable[[], object], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module", autouse=True)
def nothing_left() -> Iterator[None]:
    """The instance of these tests is removed after them; some make none, and others may run elsewhere."""
    yield
    instance = Instance(INSTANCE, environ={})
    assert not instance.folder.exists() or instance.remove()


def test_what_is_killed_is_started_again_and_a_clean_stop_leaves_nothing() -> None:
    with running(INSTANCE, prepare=nothing, worker=False, beat=False) as system:
        assert answers(system)
        with pytest.raises(NotRunning, match=f"already runs at {system.url}"), running(INSTANCE, prepare=nothing):
            pytest.fail("a second system of the same instance started")

        web = known(system)
        assert len(web) >= 3  # the leader and two workers

        assert system.kill("web") == web[0].pid
        assert until(lambda: system.children["web"].starts == 2 and answers(system))
        assert all(gone(each, 5) for each in web)

        for name in ("redis", "postgres"):
            assert system.kill(name)
        assert system.instance.postgres and system.instance.redis
        assert until(lambda: reaches(system))
        left = known(system)
    assert all(gone(each, 5) for each in left)
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(system.services.database_url)


def test_what_runs_does_not_own_the_tables_and_cannot_change_the_audit_and_pages_only_read() -> None:
    with running(INSTANCE, worker=False, fresh=True) as system:
        assert answers(system)
        with urllib.request.urlopen(f"{system.url}/login/", timeout=10) as page:  # noqa: S310 - our own http URL
            assert page.status == 200
        assert until(lambda: "gridbroker_application" in roles_at_work(system))
        assert roles_at_work(system) == {"gridbroker_application"}
        refused = pytest.raises(psycopg2.errors.InsufficientPrivilege)
        with closing(psycopg2.connect(system.environment["DATABASE_URL"])) as connection, connection.cursor() as cursor, refused:
            cursor.execute("TRUNCATE access_audit")
        reading = psycopg2.connect(system.environment["MONITORING_DATABASE_URL"])
        with closing(reading), reading.cursor() as cursor:
            cursor.execute("SELECT current_user, count(*) FROM workqueues_task")
            assert cursor.fetchall() == [("gridbroker_monitoring", 0)]
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                cursor.execute("DELETE FROM workqueues_task")
        system.manage("migrate", "--check")  # an operator's command is the owner's
        with closing(psycopg2.connect(system.services.database_url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT rolname FROM pg_roles WHERE rolcreatedb AND rolname = 'gridbroker_application'")
            assert cursor.fetchall() == []


def roles_at_work(system: System) -> set[str]:
    """The roles by which web, worker and beat are at the database."""
    with (
        closing(psycopg2.connect(system.services.database_url, application_name="test")) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT DISTINCT usename FROM pg_stat_activity WHERE application_name = 'gridbroker'")
        return {str(name) for (name,) in cursor.fetchall()}


def known(system: System) -> list[Identity]:
    """Every process of the system's children, leaders before what they started."""
    found = [Identity.of(pid) for child in system.children.values() for pid in child.pids()]
    return [each for each in found if each]


def reaches(system: System) -> bool:
    """Whether both servers answer where they were before."""
    assert system.instance.redis
    try:
        psycopg2.connect(system.services.database_url).close()
    except psycopg2.OperationalError:
        return False
    return system.instance.redis.alive() and system.services.redis_url == system.instance.redis.url


def test_nothing_outlives_a_killed_supervisor_and_the_next_one_starts() -> None:
    killed = subprocess.Popen([sys.executable, "-c", SUPERVISOR], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert killed.stdout
    children = [Identity.of(int(pid)) for pid in killed.stdout.readline().split()]
    assert len(children) >= 4
    killed.kill()
    killed.communicate()
    with running(INSTANCE, prepare=nothing, web=False, worker=False, beat=False):
        assert all(child is None or gone(child, 15) for child in children)


def test_leftover_children_are_ended_and_strangers_are_not() -> None:
    folder = Instance(INSTANCE, environ={}).folder
    ours = subprocess.Popen(["/bin/sleep", "60"], env={MARKER: str(folder)})
    stranger = subprocess.Popen(["/bin/sleep", "60"], env={MARKER: f"{folder}-other"})
    try:
        with running(INSTANCE, prepare=nothing, web=False, worker=False, beat=False):
            assert ours.wait(5) == -15
            assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_taken_port_is_refused_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(NotRunning, match=f"port {port} .* taken"), running(INSTANCE, prepare=nothing, port=port):
            pytest.fail("it started")


def test_a_pilot_gets_none_of_the_secrets_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "enrolment").write_text("gbe_" + "x" * 43)
    with running(INSTANCE, prepare=nothing, web=False, worker=False, beat=False) as system:
        pilot = system.add_pilot(Pilot("ALPHA", "ALPHA-1", tmp_path / "enrolment", tmp_path / "work", tmp_path))
        assert pilot.pid
        seen = psutil.Process(pilot.pid).environ()
    assert MARKER in seen
    assert not {"DATABASE_URL", "REDIS_URL", "SECRET_KEY"} & set(seen)


def test_a_worker_that_consumes_nothing_is_started_anew() -> None:
    """Also one that stood still before any agent had ever begun."""
    with running(INSTANCE, web=False, quiet_s=2.0) as system:
        before = system.children["worker"].pid
        assert system.kill("worker", signal.SIGSTOP) == before
        assert until(lambda: system.children["worker"].starts == 2, 25)
        assert system.children["worker"].pid != before


def test_operator_commands_find_the_kept_database_of_an_instance() -> None:
    command = [sys.executable, "manage.py", "shell", "-v", "0", "-c"]
    code = "from django.db import connection as c; k = c.cursor(); k.execute('SHOW port'); print(k.fetchone()[0])"
    environ = {"PATH": "/usr/bin:/bin", "GRIDBROKER_INSTANCE": INSTANCE}
    with running(INSTANCE, prepare=nothing, web=False, worker=False, beat=False) as system:
        assert system.instance.postgres
        port = str(system.instance.postgres.access.port)
        beside = subprocess.run([*command, code], cwd=ROOT, env=environ, capture_output=True, text=True)
        assert beside.stdout.strip() == port, beside.stderr
        assert reaches(system)
    alone = subprocess.run([*command, code], cwd=ROOT, env=environ, capture_output=True, text=True)
    assert alone.stdout.strip() == port, alone.stderr
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(system.services.database_url)


def test_pure_commands_start_no_server() -> None:
    environ = {"PATH": "/usr/bin:/bin", "GRIDBROKER_INSTANCE": "never-made"}
    for arguments in (["check"], ["conformance", "--help"], ["version"]):
        ran = subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environ, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
    assert not (ROOT / ".gridbroker" / "never-made").exists()


def test_a_mistyped_name_of_an_instance_is_refused_and_makes_none() -> None:
    environ = {"PATH": "/usr/bin:/bin", "GRIDBROKER_INSTANCE": "never-made"}
    command = [sys.executable, "manage.py", "children", "list"]
    ran = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert ran.returncode == 2, ran.stderr
    assert "GRIDBROKER_INSTANCE: there is no instance 'never-made' below .gridbroker" in ran.stderr
    assert not (ROOT / ".gridbroker" / "never-made").exists()


def test_who_makes_work_is_told_to_end_before_those_who_do_it(tmp_path: Path) -> None:
    """What a pilot gives back would be handed to the next one, which gives it back in turn, until no try is left."""
    marks = "import signal, sys, time; from pathlib import Path; folder = Path(sys.argv[1]); name = sys.argv[2]\n"
    makes = (
        "signal.signal(signal.SIGTERM, lambda n, f: sys.exit((folder / 'told').touch()))\n(folder / name).touch()\n"
        "while True: time.sleep(0.02)"
    )
    works = (
        "ended = []\nsignal.signal(signal.SIGTERM, lambda n, f: ended.append(n))\n(folder / name).touch()\n"
        "while not ended: time.sleep(0.02)\n"
        "for _ in range(250):\n    if (folder / 'told').exists():\n        (folder / 'after').touch()\n        break\n"
        "    time.sleep(0.02)"
    )
    supervisor = Supervisor(tmp_path, lambda line: None)
    for name, code, makes_work in (("worker", makes, True), ("pilot-1", works, False)):
        command = (sys.executable, "-c", marks + code, str(tmp_path), name)
        supervisor.add(Spec(name, command, dict(os.environ), ROOT, grace_s=20.0, makes_work=makes_work))
    assert until(lambda: (tmp_path / "worker").exists() and (tmp_path / "pilot-1").exists())
    supervisor.stop()
    supervisor.close()
    assert (tmp_path / "after").exists()
