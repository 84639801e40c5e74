"""An operator who sets a variable wrongly is told which one and what the rule is, all of them at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from broker_site.env import BadEnvironment, Env

ROOT = Path(__file__).resolve().parents[2]
GOOD_KEY = "some-k3y-" * 7
PRODUCTION = {
    "DATABASE_URL": "postgresql://broker:p%40ss@db.example.org:5433/broker?sslmode=verify-full",
    "REDIS_URL": "rediss://:secret@redis.example.org:6380/1",
    "SECRET_KEY": GOOD_KEY,
    "ALLOWED_HOSTS": "broker.example.org, .example.org",
    "TLS_PROXY_HEADER": "X-Forwarded-Proto: https",
}


def problems(environ: dict[str, str]) -> list[str]:
    with pytest.raises(BadEnvironment) as raised:
        Env.read(environ)
    return [f"{problem.field}: {problem.message}" for problem in raised.value.problems]


def test_a_complete_production_environment_is_read() -> None:
    env = Env.read(PRODUCTION)
    assert env.profile == "production"
    assert env.database is not None
    assert (env.database.host, env.database.port, env.database.name) == ("db.example.org", "5433", "broker")
    assert env.database.password == "p@ss"
    assert dict(env.database.options) == {"sslmode": "verify-full"}
    assert env.allowed_hosts == ("broker.example.org", ".example.org")
    assert env.proxy_header == ("HTTP_X_FORWARDED_PROTO", "https")


def test_a_local_environment_may_be_empty() -> None:
    env = Env.read({"GRIDBROKER_PROFILE": "local"})
    assert env.database is None
    assert env.instance == "up"
    assert "127.0.0.1" in env.allowed_hosts
    assert len(env.secret_key) >= 50
    assert env.secret_key != Env.read({"GRIDBROKER_PROFILE": "local"}).secret_key


def test_a_unix_socket_is_a_host() -> None:
    env = Env.read({"GRIDBROKER_PROFILE": "local", "DATABASE_URL": "postgresql://me:pw@/grid?host=%2Frun%2Fpg&port=5555"})
    assert env.database is not None
    assert (env.database.host, env.database.port, env.database.user) == ("/run/pg", "5555", "me")


def test_pages_may_read_as_a_role_of_their_own() -> None:
    env = Env.read({**PRODUCTION, "MONITORING_DATABASE_URL": "postgresql://reader:pw@db.example.org/broker"})
    assert env.monitoring_database is not None
    assert (env.monitoring_database.user, env.monitoring_database.name) == ("reader", "broker")
    assert Env.read(PRODUCTION).monitoring_database is None


def test_production_names_everything_that_is_missing_at_once() -> None:
    told = problems({})
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "TLS_PROXY_HEADER"):
        assert any(line.startswith(name) for line in told), name


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("DATABASE_URL", "mysql://db/x", "must begin with postgresql://"),
        ("DATABASE_URL", "postgresql://db", "name of a database"),
        ("DATABASE_URL", "postgresql://db:99999/x", "port must be a number"),
        ("MONITORING_DATABASE_URL", "postgresql://db", "name of a database"),
        ("REDIS_URL", "localhost:6379", "must look like redis://"),
        ("GRIDBROKER_PORT", "0", "from 1 to 65535"),
        ("GRIDBROKER_PORT", "http", "from 1 to 65535"),
        ("GRIDBROKER_INSTANCE", "../up", "small letters"),
        ("GRIDBROKER_PROFILE", "prod", "local or production"),
        ("GRIDBROKER_DEBUG", "maybe", "must be 1 or 0"),
        ("GRIDBROKER_LOG_LEVEL", "LOUD", "must be one of"),
        ("GRIDBROKER_STATEMENT_TIMEOUT_MS", "-1", "whole number of milliseconds"),
        ("GRIDBROKER_BODY_TIMEOUT_MS", "0", "milliseconds from 1 to 600000"),
        ("GRIDBROKER_UNREAD_TIMEOUT_MS", "600001", "milliseconds from 1 to 600000"),
        ("GRIDBROKER_PEOPLE_THREADS", "0", "number of threads from 1 to 64"),
        ("GRIDBROKER_PILOT_THREADS", "many", "number of threads from 1 to 64"),
        ("GRANIAN_BACKPRESSURE", "0", "number of connections from 1 to 100000"),
        ("GRIDBROKER_WORKER_MEMORY_MB", "10", "number of MB from 300 to 1000000"),
        ("GRIDBROKER_LOCAL_PILOTS", "pilots.json", "must be an absolute path"),
        ("ALLOWED_HOSTS", "*", "'*' would accept any"),
        ("CSRF_TRUSTED_ORIGINS", "example.org", "https://name"),
        ("TLS_PROXY_HEADER", "X-Forwarded-Proto", "Header-Name: value"),
        ("SECRET_KEY_FILE", "/does/not/exist", "cannot be read"),
        ("GRIDBROKER_PARENT", "broker.example.org", "must be the address of the parent"),
        ("GRIDBROKER_PARENT", "http://broker.example.org", "must begin with https://"),
        ("GRIDBROKER_PARENT", "https://me:hunter2@broker.example.org", "must have no user or password"),
        ("GRIDBROKER_PARENT", "https://broker.example.org/?token=1", "must be the address of the parent"),
        ("GRIDBROKER_PARENT", "https://broker.example.org:99999", "must be the address of the parent"),
        ("GRIDBROKER_PARENT_TOKEN_FILE", "/does/not/exist", "cannot be read"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_rule(name: str, value: str, rule: str) -> None:
    local = {"GRIDBROKER_PROFILE": "local"}
    told = problems({**local, name: value})
    assert len(told) == 1
    assert told[0].startswith(f"{name}: ")
    assert rule in told[0]


def test_what_is_wrong_and_what_is_missing_is_told_at_once_and_once_each() -> None:
    told = problems({"GRIDBROKER_PORT": "x", "REDIS_URL": "localhost:6379", "ALLOWED_HOSTS": "broker.example.org"})
    names = [line.partition(":")[0] for line in told]
    assert sorted(names) == ["DATABASE_URL", "GRIDBROKER_PORT", "REDIS_URL", "SECRET_KEY", "TLS_PROXY_HEADER"]


@pytest.mark.parametrize(("name", "value"), [("SECRET_KEY", "short"), ("SECRET_KEY", "a" * 60), ("GRIDBROKER_DEBUG", "1")])
def test_production_refuses_what_is_unsafe(name: str, value: str) -> None:
    told = problems({**PRODUCTION, name: value})
    assert len(told) == 1
    assert told[0].startswith(name)


def test_a_password_is_never_repeated_in_a_message() -> None:
    told = problems({**PRODUCTION, "DATABASE_URL": "mysql://me:hunter2@db/x", "REDIS_URL": "http://:hunter2@redis"})
    assert "hunter2" not in "".join(told)


def test_a_key_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(GOOD_KEY + "\n")
    rest = {name: value for name, value in PRODUCTION.items() if name != "SECRET_KEY"}
    assert Env.read({**rest, "SECRET_KEY_FILE": str(tmp_path / "key")}).secret_key == GOOD_KEY


def test_a_key_that_is_set_needs_no_file() -> None:
    assert Env.read({**PRODUCTION, "SECRET_KEY_FILE": "/does/not/exist"}).secret_key == PRODUCTION["SECRET_KEY"]


def test_a_command_ends_with_the_lines_and_no_trace() -> None:
    ran = subprocess.run(
        [sys.executable, "manage.py", "explain", "1"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "GRIDBROKER_PORT": "x", "REDIS_URL": "x"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert "GRIDBROKER_PORT: must be a number" in ran.stderr
    assert "REDIS_URL: must look like" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_parent_comes_with_a_token_of_its_own_or_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    parent = {**PRODUCTION, "GRIDBROKER_PARENT": "https://broker.example.org/grid/"}
    env = Env.read({**parent, "GRIDBROKER_PARENT_TOKEN_FILE": str(tmp_path / "token")})
    assert (env.parent, env.parent_token) == ("https://broker.example.org/grid", "from-a-file")
    assert Env.read({**parent, "GRIDBROKER_PARENT_TOKEN": "said"}).parent_token == "said"
    loopback = {"GRIDBROKER_PROFILE": "local", "GRIDBROKER_PARENT": "http://[::1]:8000", "GRIDBROKER_PARENT_TOKEN": "said"}
    assert Env.read(loopback).parent == "http://[::1]:8000"
    assert Env.read(PRODUCTION).parent == ""
    assert [line.partition(":")[0] for line in problems(parent)] == ["GRIDBROKER_PARENT_TOKEN"]
    assert "ASCII without blanks" in problems({**parent, "GRIDBROKER_PARENT_TOKEN": "two words"})[0]
