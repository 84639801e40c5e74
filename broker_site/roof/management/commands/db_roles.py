"""`manage.py db_roles`: the rights in PostgreSQL of the role that web, worker and beat work as."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import psycopg2
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from broker_site.foundation.sql.roles import APPLICATION, grant, statements

OWNER = "SELECT tableowner FROM pg_tables WHERE tablename = 'access_auditseal' AND schemaname = current_schema()"


class Command(BaseCommand):
    """To be run as the owner of the tables, after `migrate`."""

    help = "Print, or run, the SQL that lets a role read and write rows, only add to the audit, and make no tables."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", nargs="?", default=APPLICATION, help=f"the role, which must exist (default {APPLICATION})")
        parser.add_argument("--apply", action="store_true", help="run the SQL instead of printing it")

    def handle(self, *args: Any, **options: Any) -> None:
        """CommandError: the role is not there, or owns the tables."""
        role = options["role"]
        with connection.cursor() as cursor:
            cursor.execute(OWNER)
            row = cursor.fetchone()
            if row is None:
                raise CommandError("the database has not the tables of this release: run manage.py migrate")
            (owner,) = row
            if owner == role:
                raise CommandError(f"the role {role} owns the tables, so it may change everything: name another")
            cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
            if not cursor.rowcount:
                raise CommandError(f"there is no role {role}: CREATE ROLE {connection.ops.quote_name(role)} LOGIN PASSWORD ...")
            for statement in statements(owner, role):
                if not options["apply"]:
                    self.stdout.write(f"{statement.as_string(cursor.cursor)};")
        if options["apply"]:
            self._apply(owner, role)

    def _apply(self, owner: str, role: str) -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                grant(cursor.cursor, owner, role)
        except psycopg2.Error as error:
            raise CommandError(f"not changed: {str(error).strip()}") from error
        self.stdout.write(f"{role} reads and writes rows of the tables of {owner}, and only adds to the audit")
