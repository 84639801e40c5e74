"""Which task parameters, columns and configuration keys a rule looks at: found by watching it judge.

So that "what would change this" is true of every rule, also of those from other packages. Not here: what to change (`remedies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from brokerage.rules.decision.declare import Filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import ColumnProperty, Columns


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """Names in the order in which they were first looked at: fields of the ask, columns of the table, keys."""

    ask: tuple[str, ...]
    columns: tuple[str, ...]
    keys: tuple[str, ...]


def rule_inputs(rule: Filter, ask: Ask, columns: Columns, config: Config) -> RuleInputs:
    """What the rule looks at for this ask; `ask` is the one that the policy prepared."""
    names_read: tuple[dict[str, None], dict[str, None], dict[str, None]] = ({}, {}, {})
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rule(_watched_ask(ask, names_read[0]), _watched_columns(columns, names_read[1]), _WatchedConfig(config, names_read[2]))
    return RuleInputs(*(tuple(names) for names in names_read))


def _watched_ask(ask: Ask, names_read: dict[str, None]) -> Ask:
    names = {f.name for f in fields(Ask)}

    class Watched(Ask):
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            if name in names:
                names_read[name] = None
            return super().__getattribute__(name)

    watched = object.__new__(Watched)
    for name in names:
        object.__setattr__(watched, name, getattr(ask, name))
    return watched


def _watched_columns(table: Columns, names_read: dict[str, None]) -> Columns:
    kind = type(table)
    names = {f.name for f in fields(kind)}

    class Watched(kind):  # type: ignore[misc, valid-type]
        def __getattribute__(self, name: str) -> Any:
            if name in names:
                names_read[name] = None
            elif isinstance(getattr(kind, name, None), ColumnProperty):
                names_read.update(dict.fromkeys(_bottom(kind, (name,))))
            return super().__getattribute__(name)

        def base_for(self, columns: tuple[str, ...]) -> Columns:
            """What is made of columns is made of those."""
            names_read.update(dict.fromkeys(_bottom(kind, columns)))
            base: Columns = table.base_for(columns)
            return base

    watched: Columns = object.__new__(Watched)
    watched.__dict__.update(table.__dict__)
    return watched


def _bottom(kind: type[Columns], names: Iterable[str]) -> Iterator[str]:
    """The columns that these are, or are made of."""
    for name in names:
        column = getattr(kind, name, None)
        if isinstance(column, ColumnProperty):
            yield from _bottom(kind, column.of)
        else:
            yield name


class _WatchedConfig(Mapping[str, Any]):
    """A configuration that notes which keys are there and looked at."""

    def __init__(self, config: Config, seen: dict[str, None]) -> None:
        self._config, self._seen = config, seen

    def __getitem__(self, name: str) -> Any:
        value = self._config[name]
        self._seen[name] = None
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def __len__(self) -> int:
        return len(self._config)
