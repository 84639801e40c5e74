"""What `check --deploy` says of the role by which the database is reached: one that may change the audit is warned of."""

from __future__ import annotations

from typing import Any

from django.core import checks
from django.db import DatabaseError, connection

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
