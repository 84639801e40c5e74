"""Statements that PostgreSQL plans once per connection.

Psycopg2 has no server-side binding, so PREPARE and EXECUTE do it (decision G2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connection

_prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


class Prepared:
    """One statement with positional parameters `$1 ...`; `run` prepares it on a connection's first use."""

    def __init__(self, name: str, types: str, sql: str) -> None:
        self.name, self.sql = name, sql
        n = len(types.split(","))
        self._prepare = f"PREPARE {name} ({types}) AS {sql}"
        self._execute = f"EXECUTE {name} ({', '.join(['%s'] * n)})"

    def run(self, *values: Any) -> list[tuple[Any, ...]]:
        """Execute with `values`: all rows."""
        with connection.cursor() as cursor:
            known = _prepared.setdefault(connection.connection, set())
            if self.name not in known:
                cursor.execute(self._prepare)
                known.add(self.name)
            cursor.execute(self._execute, values)
            rows: Sequence[tuple[Any, ...]] = cursor.fetchall() if cursor.description else ()
            return list(rows)
