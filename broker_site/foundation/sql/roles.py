"""The rights of the two roles that work with the tables, apart from those of the role that owns them.

Web, worker and beat read and write rows, make no tables, and of the audit they can only add rows. Pages read as a role of their
own, which sees what they show and can write nothing. One list of statements for the private PostgreSQL (`embedded`) and for any
other (`manage.py db_roles`).
"""

from __future__ import annotations

from collections.abc import Iterator

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - the name of a class

APPLICATION, MONITORING = "gridbroker_application", "gridbroker_monitoring"
"""The names of the roles, where nobody chooses others."""

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

SECRET_TABLES = (
    *("access_credential", "access_user", "access_user_groups", "access_user_user_permissions", "access_role"),
    *("access_audit", "access_auditseal", "auth_group", "auth_group_permissions", "auth_permission"),
    *("django_session", "django_admin_log", "django_content_type", "django_migrations"),
)
"""Credentials, people, sessions, audit: what no page shows but for the columns granted below."""
READING = (
    "GRANT USAGE ON SCHEMA public TO {monitoring}",
    "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {monitoring}",
    "REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {monitoring}",
    "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {monitoring}",
    f"REVOKE ALL ON {', '.join(SECRET_TABLES)} FROM {{monitoring}}",
    "GRANT SELECT (at, who, act) ON access_audit TO {monitoring}",
    "GRANT SELECT (id, prefix, revoked_at) ON access_credential TO {monitoring}",
)
"""Of tables that migrations have made. A table of a later release is not read before these run again."""


def statements(owner: str, application: str, monitoring: str | None) -> Iterator[sql.Composed]:
    """To be run by the owner, or a superuser, in the broker's database, after its migrations; again does no harm.

    Without a role for reading, pages read as the application.
    """
    for text in (*ROWS, *AUDIT):
        yield sql.SQL(text).format(owner=sql.Identifier(owner), application=sql.Identifier(application))
    if monitoring:
        for text in READING:
            yield sql.SQL(text).format(monitoring=sql.Identifier(monitoring))


def grant(cursor: Cursor, owner: str, application: str, monitoring: str | None) -> None:
    """Run them; of a database without tables only those that need none."""
    cursor.execute("SELECT to_regclass('access_auditseal') IS NOT NULL")
    row = cursor.fetchone()
    complete = row is not None and row[0]
    for statement in list(statements(owner, application, monitoring))[: None if complete else len(ROWS)]:
        cursor.execute(statement)
