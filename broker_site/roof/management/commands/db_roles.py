"""`manage.py db_roles`: the rights in PostgreSQL of the role of web, worker and beat, and of the one that pages read as."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import psycopg2
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from broker_site.foundation.sql.roles import APPLICATION, MONITORING, grant, statements

OWNER = "SELECT tableowner FROM pg_tables WHERE tablename = 'access_auditseal' AND schemaname = current_schema()"


class Command(BaseCommand):
    """To be run as the owner of the tables, after `migrate`."""

    help = (
        "Print, or run, the SQL that lets a role read and write rows, only add to the audit, and make no tables, "
        "and that lets another one read what pages show."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("role", nargs="?", default=APPLICATION, help=f"the role, which must exist (default {APPLICATION})")
        parser.add_argument(
            "--monitoring",
            metavar="ROLE",
            help=f"the role that pages read as, which must exist (default {MONITORING}, if there is one)",
        )
        parser.add_argument("--apply", action="store_true", help="run the SQL instead of printing it")

    def handle(self, *args: Any, **options: Any) -> None:
        """CommandError: a role is not there, or owns the tables, or is named twice."""
        application, monitoring = options["role"], options["monitoring"] or MONITORING
        with connection.cursor() as cursor:
            cursor.execute(OWNER)
            row = cursor.fetchone()
            if row is None:
                raise CommandError("the database has not the tables of this release: run manage.py migrate")
            (owner,) = row
            if monitoring == application:
                raise CommandError(f"{monitoring} is the role of web, worker and beat: name another that pages read as")
            cursor.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [[application, monitoring]])
            roles = {name for (name,) in cursor.fetchall()}
            if monitoring not in roles and not options["monitoring"]:
                self.stderr.write(f"there is no role {monitoring}: pages read as {application}")
                monitoring = None
            for role in (application, *([monitoring] if monitoring else [])):
                if owner == role:
                    raise CommandError(f"the role {role} owns the tables, so it may change everything: name another")
                if role not in roles:
                    raise CommandError(
                        f"there is no role {role}: CREATE ROLE {connection.ops.quote_name(role)} LOGIN PASSWORD ..."
                    )
            for statement in statements(owner, application, monitoring):
                if not options["apply"]:
                    self.stdout.write(f"{statement.as_string(cursor.cursor)};")
        if options["apply"]:
            self._apply(owner, application, monitoring)

    def _apply(self, owner: str, application: str, monitoring: str | None) -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                grant(cursor.cursor, owner, application, monitoring)
        except psycopg2.Error as error:
            raise CommandError(f"not changed: {str(error).strip()}") from error
        self.stdout.write(f"{application} reads and writes rows of the tables of {owner}, and only adds to the audit")
        if monitoring:
            self.stdout.write(f"{monitoring} reads what pages show")
