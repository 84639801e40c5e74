"""`manage.py conformance FILE...`: conformance cases against the real decision functions."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from broker_site.conformance.runner import main


class Command(BaseCommand):
    """Run files of conformance cases; exit 1 if any failed. Pure families need no database."""

    help = "Run conformance cases: one line per failing case, last line `N passed, M failed`."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The files."""
        parser.add_argument("files", nargs="+", metavar="FILE", help="JSON file of cases")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run them."""
        code = main(options["files"], self.stdout.write)
        if code:
            sys.exit(code)
