"""`manage.py conformance FILE... [--policy NAME] [...]`: cases against the real decision functions; suites."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker_site.foundation.kernel.registry import UnknownName
from broker_site.roof.conformance import dispatch_policies, policies, splitters
from broker_site.roof.conformance.runner import main
from brokerage.rules.decision.policy_choice import policy_named
from brokerage.rules.dispatch.dispatch_policy import DISPATCH_POLICIES
from workqueues.splitters.choice import SPLITTERS


class Command(BaseCommand):
    help = (
        "Run conformance cases: one line per failing case, last line `N passed, M failed`. "
        "Or check a policy, a splitter or a dispatch policy."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="*", metavar="FILE", help="JSON file of cases")
        parser.add_argument("--policy", metavar="NAME", help="run the suite for policies on this one, say of a plugin")
        parser.add_argument("--splitter", metavar="NAME", help="run the suite for splitters on this one")
        parser.add_argument("--dispatch-policy", metavar="NAME", help="run the suite for dispatch policies on this one")
        usual = f"{policies.TRIALS} usually, of a splitter {splitters.TRIALS}"
        parser.add_argument("--trials", type=int, metavar="N", help=f"questions of each check, {usual}")

    def handle(self, *_args: Any, **options: Any) -> None:
        if not any(options[given] for given in ("files", "policy", "splitter", "dispatch_policy")):
            raise CommandError("name files of cases, or a rule with --policy, --splitter or --dispatch-policy")
        code = main(options["files"], self.stdout.write) if options["files"] else 0
        try:
            if name := options["policy"]:
                trials = options["trials"] or policies.TRIALS
                code = max(code, self._suite(f"policy {name}", policies.CHECKS, policy_named(name), trials))
            if name := options["splitter"]:
                trials = options["trials"] or splitters.TRIALS
                code = max(code, self._suite(f"splitter {name}", splitters.CHECKS, SPLITTERS[name], trials))
            if name := options["dispatch_policy"]:
                trials, rule = options["trials"] or dispatch_policies.TRIALS, DISPATCH_POLICIES[name]
                code = max(code, self._suite(f"dispatch policy {name}", dispatch_policies.CHECKS, rule, trials))
        except UnknownName as unknown:
            raise CommandError(f"{unknown}") from unknown
        if code:
            sys.exit(code)

    def _suite(self, name: str, checks: Mapping[str, Callable[[Any, int], None]], rule: Any, trials: int) -> int:
        failures = 0
        for label, check in checks.items():
            try:
                check(rule, trials)
            except AssertionError as why:
                failures += 1
                self.stdout.write(f"{label} FAILED {why}")
        self.stdout.write(f"{name}: {len(checks) - failures} checks passed, {failures} failed")
        return 1 if failures else 0
