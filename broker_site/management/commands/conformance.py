"""`manage.py conformance FILE... [--policy NAME]`: cases against the real decision functions, and the suite of policies."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker_site.conformance.policies import CHECKS, TRIALS
from broker_site.conformance.runner import main
from brokerage.rules.policy_choice import NoPolicy, policy_named


class Command(BaseCommand):
    """Run files of conformance cases, or the suite of policies for one; exit 1 if anything failed. Needs no database."""

    help = "Run conformance cases: one line per failing case, last line `N passed, M failed`. Or check a policy."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The files."""
        parser.add_argument("files", nargs="*", metavar="FILE", help="JSON file of cases")
        parser.add_argument("--policy", metavar="NAME", help="run the suite for policies on this one, say of a plugin")
        parser.add_argument("--trials", type=int, default=TRIALS, metavar="N", help=f"questions of each check, {TRIALS} usually")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run them."""
        if not options["files"] and not options["policy"]:
            raise CommandError("name files of cases, or a policy with --policy")
        code = main(options["files"], self.stdout.write) if options["files"] else 0
        if options["policy"]:
            code = max(code, self._policy(options["policy"], options["trials"]))
        if code:
            sys.exit(code)

    def _policy(self, name: str, trials: int) -> int:
        try:
            policy = policy_named(name)
        except NoPolicy as none:
            raise CommandError(f"{none}") from none
        failed = 0
        for check, ask in CHECKS.items():
            try:
                ask(policy, trials)
            except AssertionError as why:
                failed += 1
                self.stdout.write(f"{check} FAILED {why}")
        self.stdout.write(f"policy {name}: {len(CHECKS) - failed} checks passed, {failed} failed")
        return 1 if failed else 0
