"""`manage.py check_invariants [--json]`: counts the violations of every invariant of the data; exit 1 if there is any."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from brokerage.queries.invariants import Finding, check


class Command(BaseCommand):
    help = "Count violations of every invariant of the data on one snapshot; exit 1 if there is any."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON document instead of text")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = check()
        total = sum(f.violations for f in findings)
        if options["json"]:
            self.stdout.write(json.dumps({"violations": total, "invariants": [_document(f) for f in findings]}, indent=1))
        else:
            for finding in findings:
                if finding.violations or options["verbosity"] > 1:
                    self.stdout.write(f"{finding.invariant.name}: {finding.violations}  {finding.invariant.says}")
                    for example in finding.examples:
                        self.stdout.write(f"    {example}")
            self.stdout.write(f"{len(findings)} invariants, {total} violations")
        if total:
            sys.exit(1)


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.invariant.name,
        "says": finding.invariant.says,
        "violations": finding.violations,
        "examples": list(finding.examples),
        "seconds": round(finding.seconds, 4),
    }
