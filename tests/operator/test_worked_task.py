"""The worked task: the script prints, in a database of its own, what the page on it shows, step by step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest

from tests.arch.source import ROOT, read

PAGE = "docs/explanation/from-task-to-jobs.md"
STEP = re.compile(r"^## (\d+\. .+?)$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def database(database_url: str) -> Iterator[str]:
    """The URL of an empty database that is gone afterwards."""
    name = f"worked_{os.getpid()}"
    with closing(psycopg2.connect(database_url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(f'CREATE DATABASE "{name}"')
        yield re.sub(r"(://[^/]*/)[^?]*", rf"\g<1>{name}", database_url)
        cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def ran(database: str, redis_url: str) -> subprocess.CompletedProcess[str]:
    """The script, as a reader runs it, but on this database."""
    env = {**os.environ, "DATABASE_URL": database, "REDIS_URL": redis_url}
    script = [sys.executable, "examples/tasks/worked.py"]
    return subprocess.run(script, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_the_page_shows_what_the_script_prints_and_a_full_database_is_left_alone(database: str, redis_url: str) -> None:
    first = ran(database, redis_url)
    assert first.returncode == 0, first.stderr
    printed = dict(part.split("\n", 1) for part in first.stdout.strip().removeprefix("== ").split("\n\n== "))
    shown = {title: SHOWN.findall(text) for title, text in STEP.findall(read(PAGE))}
    assert shown == {title: [f"{text.rstrip()}\n"] for title, text in printed.items()}
    again = ran(database, redis_url)
    assert (again.returncode, again.stdout) == (1, "")
    assert "DATABASE_URL is not empty" in again.stderr
