"""One queue, one task, and the real filters and weights verdicts_of about them: what the families of the brokers share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import brokerage.config_keys
import brokerage.policies
from broker_site.foundation.gdpconfig.values import Config
from brokerage.rules.decision.declare import FILTERS, WEIGHTS, Relaxation
from brokerage.rules.decision.pipeline import at
from brokerage.rules.facts.ask import Ask, Chunk, Usage
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.snapshot import Queues

PARTS = ("jobbroker", "anal_jobbroker", "taskbrokerage", "core")
"""Components that the brokers read."""


@cache
def defaults() -> Mapping[str, Any]:
    """The configuration of the brokers without overrides."""
    config = Config()
    brokers = {key: value for part in PARTS for key, value in config.component(part).items()}
    return {**brokers, **config.component("prio_mgr", app=brokerage.config_keys.SERVER)}


def config_with(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The defaults with those keys that a case gives, under the case's names."""
    return {**defaults(), **{key: given[name] for name, key in names.items() if name in given}}


def queue(**columns: Any) -> Queues:
    """The one queue; None = not given."""
    return Queues.from_rows([{"name": "Q", **columns}])


def task(**values: Any) -> Ask:
    """The one task; None = not given. `chunk` and `usage` are theirs."""
    return Ask(**_without_nulls(values))


def chunk(**values: Any) -> Chunk:
    """Its input; None = not given."""
    return Chunk(**_without_nulls(values))


def usage(**values: int | None) -> Usage:
    """What its user has; None = not given."""
    return Usage(**_without_nulls(values))


def times(value: float | None, factor: float) -> float | None:
    """The value in another unit; None = not given."""
    return None if value is None else value * factor


def _without_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def verdicts_of(
    name: str, ask: Ask, table: Columns, config: Mapping[str, Any] | None = None
) -> tuple[tuple[bool, ...], dict[str, Any]]:
    """The verdicts of a filter on the one queue, by criterion, and the numbers it compared."""
    passes, numbers = FILTERS[name](ask, table, defaults() if config is None else config)
    strict = passes.strict if isinstance(passes, Relaxation) else passes
    verdicts = tuple(bool(np.broadcast_to(np.asarray(verdict), (1,))[0]) for verdict in strict)
    return verdicts, {number: at(value, 0) for number, value in numbers.items()}


def factor_of(name: str, ask: Ask, table: Columns, config: Mapping[str, Any] | None = None) -> float:
    return float(at(WEIGHTS[name](ask, table, defaults() if config is None else config), 0))
