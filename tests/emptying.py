"""After a test with transactions of its own, only the tables that hold rows are emptied.

Django's `flush` cuts all of them and makes content types and permissions anew, which takes longer than most of these tests.
"""

from __future__ import annotations

from functools import cache

from django.db import connections
from django.test import TransactionTestCase

from broker_site.foundation.gdpconfig.reading import forget

MADE_BY_MIGRATE = {"django_content_type", "auth_permission"}
"""Tables that are the same after every test; `django_migrations` is none of Django's own list."""


@cache
def _tables(alias: str) -> tuple[str, ...]:
    found = connections[alias].introspection.django_table_names(only_existing=True, include_views=False)
    return tuple(sorted(set(found) - MADE_BY_MIGRATE))


def empty_tables(case: TransactionTestCase) -> None:
    """Takes the place of `TransactionTestCase._fixture_teardown`."""
    for alias in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        quoted = connections[alias].ops.quote_name
        with connections[alias].cursor() as cursor:
            cursor.execute(
                " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT FROM {quoted(name)})" for name in _tables(alias))
            )
            if filled := [quoted(name) for (name,) in cursor.fetchall()]:
                cursor.execute(f"TRUNCATE {', '.join(filled)} CASCADE")
    forget()  # as `flush` makes a process do
