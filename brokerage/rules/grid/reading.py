"""How the parts of a grid document are read: every fault with its path and rule, what is not used noted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from broker_site.foundation.kernel.verdict import Problem
from brokerage.rules.grid.attributes import Table, read_value
from workqueues.rules.task_parameters import problem

_MOST = 200


class BadGrid(ValueError):
    """A document that cannot be used; `problems` has every fault (200 at most) with the path of its place and its rule."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems[:5]))
        self.problems = tuple(problems[:_MOST])


@dataclass(slots=True)
class Reading:
    """What was found on the way through a document."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, path: str, rule: str, message: str) -> None:
        """Note a fault."""
        self.problems.append(problem(path, rule, message))

    def end(self) -> None:
        """Raise BadGrid if there was a fault."""
        if self.problems:
            raise BadGrid(self.problems)


def read_columns(table: Table, raw: Mapping[str, Any], path: str, reading: Reading) -> dict[str, Any]:
    """The values of all attributes of a table, defaults for what is missing."""
    columns: dict[str, Any] = {}
    for name, parameter in table.items():
        value, rule, message = read_value(parameter, raw.get(name))
        if parameter.required and raw.get(name) in (None, ""):
            rule, message = "required", parameter.doc
        if rule:
            reading.fault(f"{path}.{name}", rule, message)
        columns[name] = value
    return columns


def unknown(known: Table, raw: Mapping[str, Any], path: str, reading: Reading) -> dict[str, Any]:
    """The attributes that the table does not have: noted, and kept as they came."""
    kept = {name: value for name, value in raw.items() if name not in known}
    reading.notes += [f"{path}.{name}: not known; kept among the attributes" for name in kept]
    return kept
