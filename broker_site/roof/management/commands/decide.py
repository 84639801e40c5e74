"""`manage.py decide --task FILE --grid FILE ...`: the decision that the running system would take, from documents alone."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.values import Config, from_document
from broker_site.foundation.kernel.verdict import Problem
from brokerage.feeds.document import load_document
from brokerage.rules.decision.assembly import DecisionRequest, decide_task
from brokerage.rules.decision.policy_choice import NoPolicy, policy_named
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.explain.explanation import decision_document
from brokerage.rules.facts.ask import Ask, BadAsk
from brokerage.rules.grid.attributes import BadGrid, moment
from brokerage.rules.grid.document import read_grid
from brokerage.rules.grid.measurements import read_facts
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts


class Command(BaseCommand):
    """Prints a decision as JSON; needs no database and writes nothing."""

    help = "Decide where the jobs of one task go, from a task document and a grid document, without a database."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The documents, and what else a decision depends on."""
        parser.add_argument("--task", type=Path, required=True, metavar="FILE", help="the ask, format gridbroker-ask/1")
        parser.add_argument("--grid", type=Path, required=True, metavar="FILE", help="the grid, format gridbroker-grid/1")
        parser.add_argument("--config", type=Path, metavar="FILE", help="overrides: {component: {key: value}}")
        parser.add_argument("--policy", metavar="NAME", help="default: by label and VO of the task, as configured")
        parser.add_argument("--now", metavar="ISO", help="default: the time of the grid document, else that of the clock")
        parser.add_argument("--seed", default="0", metavar="N", help="for policies that draw")

    def handle(self, *args: Any, **options: Any) -> None:
        """Decide; CommandError with a line `file: path: rule: message` for each fault of a document."""
        ask, config = _ask(options["task"]), BrokerConfig(_config(options["config"]).component)
        try:
            policy = policy_named(options["policy"]) if options["policy"] else config.job_broker(ask)
            snapshot = _snapshot(options["grid"], options["now"])
            decision = decide_task(DecisionRequest(snapshot, TaskFacts(), ask, policy, config, options["seed"]))
        except NoPolicy as none:
            raise CommandError(f"{none}") from none
        self.stdout.write(json.dumps(decision_document(decision), indent=1, allow_nan=False, ensure_ascii=False))


def _document(file: Path) -> Any:
    try:
        return load_document(file)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from error
    except BadGrid as bad:
        raise _refused(file, bad.problems) from bad


def _ask(file: Path) -> Ask:
    document = _document(file)
    if not isinstance(document, dict):
        raise _refused(file, [Problem("", "type", "expected an object")])
    try:
        return Ask.from_document(document)
    except BadAsk as bad:
        raise _refused(file, bad.problems) from bad


def _config(file: Path | None) -> Config:
    if file is None:
        return Config()
    try:
        return from_document(_document(file))
    except BadConfig as bad:
        raise _refused(file, bad.problems) from bad


def _snapshot(file: Path, now: str | None) -> GridSnapshot:
    document = _document(file)
    try:
        grid = read_grid(document)
        facts = read_facts(document, grid)
    except BadGrid as bad:
        raise _refused(file, bad.problems) from bad
    try:
        at = moment(now) if now else facts.now or datetime.now(UTC)
    except ValueError as error:
        raise CommandError(f"--now: expected a time like 2026-11-21T12:00:00Z, found {now!r}") from error
    return GridSnapshot(grid, facts, at)


def _refused(file: Path, problems: Sequence[Problem]) -> CommandError:
    lines = [f"{p.field or 'document'}: {p.rule}: {p.message}" for p in problems]
    return CommandError("\n".join([f"{file} is refused:", *lines]))
