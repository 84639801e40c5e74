"""`manage.py criteria [POLICY]`: what each brokerage policy judges by, in its order, as Markdown; needs no database."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand

from brokerage.rules.decision.declare import POLICIES, Best, Policy


class Command(BaseCommand):
    help = "Print the criteria and weights of a brokerage policy, or of all, as Markdown."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("policy", nargs="?", choices=list(POLICIES), metavar="POLICY", help=f"one of {', '.join(POLICIES)}")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = [POLICIES[options["policy"]]] if options["policy"] else POLICIES.values()
        self.stdout.write("\n\n".join("\n".join(page(policy)) for policy in chosen))


def page(policy: Policy) -> Iterator[str]:
    yield f"## {policy.name}"
    yield ""
    yield from (f"VO {policy.vo}. {_one_line(policy.__doc__)}", "")
    yield "| criterion | kind | filter | a candidate passes when | keys |"
    yield "|---|---|---|---|---|"
    for rule in policy.rules:
        for criterion in rule.criteria:
            yield _row(f"-{criterion.label}", criterion.kind, rule.name, _one_line(rule.doc), ", ".join(rule.keys))
    for criterion in policy.criteria[len(policy.judged) :]:
        yield _row(f"-{criterion.label}", criterion.kind, "the choice", f"not when {criterion.reason}", "")
    yield ""
    yield "| weight | meaning | keys |"
    yield "|---|---|---|"
    for factor in policy.weights:
        yield _row(factor.name, _one_line(factor.doc), ", ".join(factor.keys))
    yield ""
    chosen = f"The best {policy.select.key}" if isinstance(policy.select, Best) else "One, drawn in proportion to its weight,"
    yield f"{chosen} of those that pass; without any, the task waits {policy.otherwise.key}."


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _one_line(doc: str | None) -> str:
    """What a rule does, without its source."""
    return " ".join((doc or "").split()).partition(" Source:")[0]
