"""Statements that PostgreSQL plans once per connection.

Psycopg2 has no server-side binding, so PREPARE and EXECUTE do it (decision G2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast
from uuid import UUID

import psycopg2
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, OperationalError, connections
from psycopg2.errors import DuplicatePreparedStatement
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - a class with a small name

from broker_site.foundation.sql.postgresql.base import DatabaseWrapper

Rows = list[tuple[Any, ...]]


class AnswerLost(OperationalError):
    """The connection broke before the answer came: what was asked may be done all the same."""


def was_undone(fault: Exception) -> bool:
    """Whether nothing was done of what a transaction was asked, which ended with this fault."""
    return isinstance(fault, DatabaseError | InterfaceError) and not isinstance(fault, AnswerLost)


class Prepared:
    """One statement with positional parameters `$1 ...`, prepared at a connection's first use of it."""

    def __init__(self, name: str, types: str, sql: str) -> None:
        self.name, self.sql = name, sql
        n = len(types.split(","))
        self._prepare = f"PREPARE {name} ({types}) AS {sql}"
        self.execute = f"EXECUTE {name} ({', '.join(['%s'] * n)})"
        self._texts: dict[tuple[type, ...], str] = {}

    def run(self, *values: Any) -> Rows:
        """Execute with `values`: all rows."""
        return run_together([Call(self, values)])

    def with_values(self, *values: Any) -> Call:
        """To be executed with these values by `run_together`."""
        return Call(self, values)

    def written(self, values: tuple[Any, ...], cursor: Cursor) -> bytes:
        """The text that executes it with `values`.

        Numbers and UUIDs look the same to PostgreSQL as here; psycopg2, which makes an object for each value, is left to the
        others.
        """
        text = self._text_of(tuple(map(type, values)))
        others = [value for value in values if type(value) not in _WRITTEN]
        if not others:
            return (text % values).encode()
        return cursor.mogrify(text % tuple(value for value in values if type(value) in _WRITTEN), others)

    def _text_of(self, kinds: tuple[type, ...]) -> str:
        """The text that executes it with values of these types, with a place for each value."""
        if (text := self._texts.get(kinds)) is None:
            text = self._texts[kinds] = self.execute % tuple(_WRITTEN.get(kind, "%%s") for kind in kinds)
        return text

    def ensure(self, django: DatabaseWrapper, cursor: Cursor) -> None:
        """Prepare it, unless the session has done so before."""
        if self.name in django.prepared:
            return
        try:
            cursor.execute(self._prepare)
        except DuplicatePreparedStatement:  # a run was ended by its time limit right after; this one fails, the next does not
            django.prepared.add(self.name)
            raise
        django.prepared.add(self.name)


class Call(NamedTuple):
    statement: Prepared
    values: tuple[Any, ...]

    def run(self) -> Rows:
        """Execute it by itself: all rows."""
        return self.statement.run(*self.values)


def run_together(calls: list[Call]) -> Rows:
    """Execute them one after the other in a single round trip: the rows of the last one; what the others give is dropped."""
    if not calls:
        return []
    django, asked = _connection(), False
    try:
        with django.plain_cursor() as cursor:
            for statement, _ in calls:
                statement.ensure(django, cursor)
            text = b";".join([statement.written(values, cursor) for statement, values in calls])
            asked = True
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else []
    except psycopg2.Error as error:
        # A connection that was broken before has been asked nothing.
        if asked and error.pgcode is None and django.connection is not None and django.connection.closed:
            django.errors_occurred = True  # as `wrap_database_errors` would
            raise AnswerLost(*error.args) from error
        with django.wrap_database_errors:
            raise


_WRITTEN = {int: "%d", UUID: "'%s'", float: "'%r'::float8"}
"""How values that look the same to PostgreSQL as here are written: floats are for parameters of float8."""


def array_text(values: Iterable[bool | float | UUID | None]) -> str:
    """An array as PostgreSQL reads it: psycopg2 would quote one value after the other, and knows no type of an empty one."""
    return f"{{{','.join('NULL' if value is None else str(value) for value in values)}}}"


def _connection() -> DatabaseWrapper:
    """Django's connection, ready for use.

    Its wrapping of cursors, which costs as much as a short statement, is left out; what that is good for (a working connection,
    Django's exceptions, no statement in a broken transaction) is done here and by `wrap_database_errors`.
    """
    django = cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS])
    django.close_if_health_check_failed()
    django.ensure_connection()
    django.validate_no_broken_transaction()
    return django
