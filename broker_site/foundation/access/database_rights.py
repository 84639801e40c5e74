"""What `check --deploy` says of the roles by which the database is reached.

It warns of one of web, worker and beat that may change the audit, and of one of pages that may write or that reads secrets.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection, connections

from broker_site.foundation.sql.roles import SECRET_TABLES

RIGHTS = """
SELECT r.rolname, r.rolsuper, r.rolcreatedb, r.rolcreaterole, pg_has_role(r.oid, c.relowner, 'MEMBER'),
  has_table_privilege(r.oid, c.oid, 'UPDATE') OR has_table_privilege(r.oid, c.oid, 'DELETE')
    OR has_table_privilege(r.oid, c.oid, 'TRUNCATE')
FROM pg_roles r LEFT JOIN pg_class c ON c.oid = to_regclass('access_audit') WHERE r.rolname = current_user
"""
NAMES = ("is a superuser", "may make databases", "may make roles", "owns the tables", "may change the audit")
HINT = (
    "Let web, worker and beat work as a role of their own: manage.py db_roles, run as the owner of the tables. "
    "Commands that the owner runs (migrate, db_roles, after_restore) may be warned of this."
)

MONITORING_RIGHTS = """
WITH tables AS (SELECT oid, relname, relowner FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace)
SELECT r.rolname, r.rolsuper, r.rolcreatedb, r.rolcreaterole,
  has_schema_privilege(r.oid, 'public', 'CREATE') OR EXISTS (SELECT FROM tables WHERE pg_has_role(r.oid, relowner, 'MEMBER')),
  EXISTS (SELECT FROM tables WHERE has_any_column_privilege(r.oid, oid, 'INSERT, UPDATE')
    OR has_table_privilege(r.oid, oid, 'DELETE, TRUNCATE, TRIGGER')),
  EXISTS (SELECT FROM tables WHERE relname = ANY(%s) AND (has_table_privilege(r.oid, oid, 'SELECT')
    OR relname NOT IN ('access_audit', 'access_credential') AND has_any_column_privilege(r.oid, oid, 'SELECT')
    OR relname = 'access_credential' AND has_column_privilege(r.oid, oid, 'secret', 'SELECT')))
FROM pg_roles r WHERE r.rolname = current_user
"""
MONITORING_NAMES = (
    *("is a superuser", "may make databases", "may make roles"),
    *("may make tables", "may write", "reads credentials, sessions or the audit"),
)
MONITORING_HINT = (
    "Let pages read as a role that can do nothing else: MONITORING_DATABASE_URL names it, and manage.py db_roles, run as the "
    "owner of the tables, gives it its rights."
)


@checks.register(checks.Tags.security, deploy=True)
def check_database_rights(app_configs: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """access.W001; access.I001: nobody could be asked."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(RIGHTS)
            role, *rights = cursor.fetchone()
    except DatabaseError:
        return [checks.Info("The database does not answer: the rights of its role were not looked at.", id="access.I001")]
    finally:
        if not connection.in_atomic_block:
            connection.close()
    if not any(rights):
        return []
    words = ", ".join(name for name, has in zip(NAMES, rights, strict=True) if has)
    return [
        checks.Warning(
            f"The role {role} of DATABASE_URL {words}: the audit can be changed by those who write it.",
            hint=HINT,
            id="access.W001",
        )
    ]


@checks.register(checks.Tags.security, deploy=True)
def check_monitoring_rights(app_configs: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """access.W002; access.I002: nobody could be asked."""
    reading = connections[settings.MONITORING_DATABASE]
    try:
        with reading.cursor() as cursor:
            cursor.execute(MONITORING_RIGHTS, [list(SECRET_TABLES)])
            role, *rights = cursor.fetchone()
    except DatabaseError:
        return [
            checks.Info("The database of the pages does not answer: the rights of its role were not looked at.", id="access.I002")
        ]
    finally:
        if not reading.in_atomic_block:
            reading.close()
    if not any(rights):
        return []
    words = ", ".join(name for name, has in zip(MONITORING_NAMES, rights, strict=True) if has)
    return [checks.Warning(f"The pages read as the role {role}, which {words}.", hint=MONITORING_HINT, id="access.W002")]
