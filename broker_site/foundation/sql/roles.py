"""The rights of the role that web, worker and beat work as, apart from those of the role that owns the tables.

It reads and writes rows, makes no tables, and of the audit it can only add rows. One list of statements for the private
PostgreSQL (`embedded`) and for any other (`manage.py db_roles`).
"""

from __future__ import annotations

from collections.abc import Iterator

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - the name of a class

APPLICATION = "gridbroker_application"
"""The role's name, where nobody chooses another."""

ROWS = (
    "GRANT USAGE ON SCHEMA public TO {application}",
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {application}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {application}",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {application}",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {application}",
)
AUDIT = (
    "REVOKE UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON access_audit, access_auditseal FROM {application}",
    "REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON django_migrations FROM {application}",
    "GRANT TRUNCATE ON agency_writeprobe TO {application}",
)
"""Of tables that migrations have made."""


def statements(owner: str, application: str) -> Iterator[sql.Composed]:
    """To be run by the owner, or a superuser, in the broker's database, after its migrations; again does no harm."""
    for text in (*ROWS, *AUDIT):
        yield sql.SQL(text).format(owner=sql.Identifier(owner), application=sql.Identifier(application))


def grant(cursor: Cursor, owner: str, application: str) -> None:
    """Run them; of a database without tables only those that need none."""
    cursor.execute("SELECT to_regclass('access_auditseal') IS NOT NULL")
    row = cursor.fetchone()
    complete = row is not None and row[0]
    for statement in list(statements(owner, application))[: None if complete else len(ROWS)]:
        cursor.execute(statement)
