"""After a test with transactions of its own, only the tables that hold rows are emptied.

Django's `flush` cuts all of them and makes content types and permissions anew, which takes longer than most of these tests. They
are cut, and their rows not deleted: rows of the next test would fill the holes in any order.
"""

from __future__ import annotations

from functools import cache

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.backends.utils import CursorWrapper
from django.test import TransactionTestCase
from psycopg2.errors import DeadlockDetected

from broker_site.foundation.gdpconfig.reading import forget

MADE_BY_MIGRATE = {"django_content_type", "auth_permission"}
"""Tables that are the same after every test; `django_migrations` is none of Django's own list."""

CUTS = 5
WRITTEN = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY (%s) AND pg_relation_size(c.oid) > 0
"""
"""To look into each of all tables takes longer than to ask for the sizes of their files."""
WITHOUT_TRIGGERS = "SET LOCAL session_replication_role = replica"
WITH_TRIGGERS = "SET LOCAL session_replication_role = origin"
MAY_DO_WITHOUT = "SELECT has_parameter_privilege('session_replication_role', 'SET')"


@cache
def _tables(alias: str) -> list[str]:
    found = connections[alias].introspection.django_table_names(only_existing=True, include_views=False)
    return sorted(set(found) - MADE_BY_MIGRATE)


@cache
def may_do_without_triggers(alias: str = DEFAULT_DB_ALIAS) -> bool:
    """Whether this connection may set aside the triggers that guard rows and foreign keys."""
    with connections[alias].cursor() as cursor:
        cursor.execute(MAY_DO_WITHOUT)
        return bool(cursor.fetchone()[0])


def _cut(cursor: CursorWrapper, filled: list[str]) -> None:
    """A server that still runs may be at these tables: who is told of a deadlock begins again."""
    for attempt in range(CUTS):
        try:
            cursor.execute(f"TRUNCATE {', '.join(filled)} CASCADE")
            return
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected) or attempt == CUTS - 1:
                raise


def empty_tables(case: TransactionTestCase) -> None:
    """Takes the place of `TransactionTestCase._fixture_teardown`."""
    for alias in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        quoted = connections[alias].ops.quote_name
        with connections[alias].cursor() as cursor:
            cursor.execute(WRITTEN, [_tables(alias)])
            if written := [name for (name,) in cursor.fetchall()]:
                cursor.execute(
                    " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT FROM {quoted(name)})" for name in written)
                )
                if filled := [quoted(name) for (name,) in cursor.fetchall()]:
                    _cut(cursor, filled)
    forget()  # as `flush` makes a process do
