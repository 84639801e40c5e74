"""`manage.py check_audit`: holds the audit against its seals; exit 1 if a row was changed, removed or inserted."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand

from broker_site.foundation.access.seals import check

SHOWN = 50
"""Faults that the text names."""


class Command(BaseCommand):
    """May run beside a working system."""

    help = "Find rows of the audit that were changed, removed or inserted after they were sealed; exit 1 if there are any."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--expect",
            type=_head,
            metavar="NUMBER:HASH",
            help="a seal that was noted earlier, as this command and the log tell it",
        )
        parser.add_argument("--json", action="store_true", help="one JSON document instead of text")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = check(options["expect"])
        if options["json"]:
            since = findings.oldest_unsealed
            document = {
                "seals": findings.seals,
                "rows": findings.rows,
                "unsealed": findings.unsealed,
                "unsealed_since": since.isoformat() if since else None,
                "head": findings.head,
                "faults": findings.faults,
            }
            self.stdout.write(json.dumps(document, indent=1))
        else:
            for fault in findings.faults[:SHOWN]:
                self.stdout.write(fault)
            if len(findings.faults) > SHOWN:
                self.stdout.write(f"{len(findings.faults) - SHOWN} more")
            age = f", since {findings.oldest_unsealed:%Y-%m-%d %H:%M:%S}" if findings.oldest_unsealed else ""
            self.stdout.write(
                f"{findings.rows} rows in {findings.seals} seals, {len(findings.faults)} faults;"
                f" {findings.unsealed} rows not sealed yet{age}"
            )
            if findings.head:
                self.stdout.write(f"last seal {findings.head}")
        if findings.faults:
            sys.exit(1)


def _head(text: str) -> tuple[int, str]:
    if not re.fullmatch(r"[1-9][0-9]{0,17}:[0-9a-f]{64}", text):
        raise ArgumentTypeError("must be the number of a seal and its hash, as 7:9f86d0...")
    number, _, digest = text.partition(":")
    return int(number), digest
