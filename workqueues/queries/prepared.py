"""Statements that PostgreSQL plans once per connection.

Psycopg2 has no server-side binding, so PREPARE and EXECUTE do it (decision G2).
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, connections

_prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


class Prepared:
    """One statement with positional parameters `$1 ...`; `run` prepares it on a connection's first use."""

    def __init__(self, name: str, types: str, sql: str) -> None:
        self.name, self.sql = name, sql
        n = len(types.split(","))
        self._prepare = f"PREPARE {name} ({types}) AS {sql}"
        self._execute = f"EXECUTE {name} ({', '.join(['%s'] * n)})"

    def run(self, *values: Any) -> list[tuple[Any, ...]]:
        """Execute with `values`: all rows.

        On the driver's own cursor, since Django's wrapping of each cursor costs as much as a short statement; what that wrapping
        is good for (a connection that works, Django's exceptions, no statement in a broken transaction) is done here.
        """
        django = connections[DEFAULT_DB_ALIAS]
        django.close_if_health_check_failed()
        django.ensure_connection()
        django.validate_no_broken_transaction()
        with django.wrap_database_errors, django.create_cursor() as cursor:
            known = _prepared.setdefault(django.connection, set())
            if self.name not in known:
                cursor.execute(self._prepare)
                known.add(self.name)
            cursor.execute(self._execute, values)
            return cursor.fetchall() if cursor.description else []
