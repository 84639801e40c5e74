"""The tables that every test database begins with: made by the migrations once for each state of the code, copied from then on.

The copy to make others from stays in the private server between runs. Who makes a test database holds a lock meanwhile: others
find the copy then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import django
import psycopg2
import psycopg2.extensions

ROOT = Path(__file__).resolve().parents[1]
MADE_FROM = ("broker_site", "brokerage", "workqueues", "monitoring")
ONE_AT_A_TIME = "SELECT pg_advisory_lock(2)"
OTHERS = "SELECT datname FROM pg_database WHERE datname ~ '^tables_[0-9a-f]+$' AND datname <> %s"


def state_of_code() -> str:
    """Another one after any change of what migrations may use."""
    seen = hashlib.sha256(django.__version__.encode())
    for folder in MADE_FROM:
        for path in sorted((ROOT / folder).rglob("*.py")):
            content = path.read_bytes()
            seen.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return seen.hexdigest()[:16]


class Tables:
    """The copy on this server, for one process that makes its test database."""

    def __init__(self, server_url: str) -> None:
        self._url, self.name = server_url, f"tables_{state_of_code()}"
        self._holder: psycopg2.extensions.connection | None = None

    def begin(self) -> str | None:
        """Keep others from making databases until `end`; the database to copy, if it is there."""
        self._holder = psycopg2.connect(self._url)
        self._holder.autocommit = True
        with self._holder.cursor() as cursor:
            cursor.execute(ONE_AT_A_TIME)
            return self.name if self._is_there(cursor) else None

    @contextmanager
    def copied(self, name: str) -> Iterator[bool]:
        """A database of this name for the block, if there is one to copy."""
        with closing(psycopg2.connect(self._url)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute(ONE_AT_A_TIME)
            if there := self._is_there(cursor):
                cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{self.name}"')
        try:
            yield there
        finally:
            with closing(psycopg2.connect(self._url)) as connection, connection.cursor() as cursor:
                connection.autocommit = True
                cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')

    def _is_there(self, cursor: psycopg2.extensions.cursor) -> bool:
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [self.name])
        return bool(cursor.rowcount)

    def end(self, made: str) -> None:
        """Copy this database, to which nobody is connected, unless there is a copy; those of other states of the code go."""
        assert self._holder is not None
        with closing(self._holder), self._holder.cursor() as cursor:
            if not self._is_there(cursor):
                cursor.execute(OTHERS, [self.name])
                for (other,) in cursor.fetchall():
                    cursor.execute(f'DROP DATABASE IF EXISTS "{other}"')
                cursor.execute(f'CREATE DATABASE "{self.name}" TEMPLATE "{made}"')
