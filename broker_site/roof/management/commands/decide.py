"""`manage.py decide --task FILE --grid FILE ...`: the decision that the running system would take, from documents alone."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation.gdpconfig.values import Config, from_document
from broker_site.foundation.outside_data import OutsideDataError
from brokerage.feeds.document import load_document
from brokerage.rules.decision.assembly import DecisionRequest, decide_task
from brokerage.rules.decision.policy_choice import NoPolicy, policy_named
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.explain.explanation import decision_document
from brokerage.rules.facts.ask import Ask
from brokerage.rules.grid.attributes import moment
from brokerage.rules.grid.document import Grid, read_grid
from brokerage.rules.grid.measurements import Facts, read_facts
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts

T = TypeVar("T")


class Command(BaseCommand):
    help = "Decide where the jobs of one task go, from a task document and a grid document, without a database."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--task", type=Path, required=True, metavar="FILE", help="the ask, format gridbroker-ask/1")
        parser.add_argument("--grid", type=Path, required=True, metavar="FILE", help="the grid, format gridbroker-grid/1")
        parser.add_argument("--config", type=Path, metavar="FILE", help="overrides: {component: {key: value}}")
        parser.add_argument("--policy", metavar="NAME", help="default: by label and VO of the task, as configured")
        parser.add_argument("--now", metavar="ISO", help="default: the time of the grid document, else that of the clock")
        parser.add_argument("--seed", default="0", metavar="N", help="for policies that draw")

    def handle(self, *args: Any, **options: Any) -> None:
        """Decide; CommandError with a line `file: path: rule: message` for each fault of a document."""
        ask = _read(options["task"], Ask.from_document)
        config = BrokerConfig((_read(options["config"], from_document) if options["config"] else Config()).component)
        try:
            policy = policy_named(options["policy"]) if options["policy"] else config.job_broker(ask)
            snapshot = _snapshot(options["grid"], options["now"])
            decision = decide_task(DecisionRequest(snapshot, TaskFacts(), ask, policy, config, options["seed"]))
        except NoPolicy as none:
            raise CommandError(f"{none}") from none
        self.stdout.write(json.dumps(decision_document(decision), indent=1, allow_nan=False, ensure_ascii=False))


def _read(file: Path, reader: Callable[[Any], T]) -> T:
    """What the document in a file says; CommandError with a line for each fault."""
    try:
        return reader(load_document(file))
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from error
    except OutsideDataError as bad:
        lines = [f"{p.field or 'document'}: {p.rule}: {p.message}" for p in bad.problems]
        raise CommandError("\n".join([f"{file} is refused:", *lines])) from bad


def _grid(document: Any) -> tuple[Grid, Facts]:
    grid = read_grid(document)
    return grid, read_facts(document, grid)


def _snapshot(file: Path, now: str | None) -> GridSnapshot:
    grid, facts = _read(file, _grid)
    try:
        at = moment(now) if now else facts.now or datetime.now(UTC)
    except ValueError as error:
        raise CommandError(f"--now: expected a time like 2026-11-21T12:00:00Z, found {now!r}") from error
    return GridSnapshot(grid, facts, at)
