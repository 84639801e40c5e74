"""What would change a verdict: the attribute of the queue, the task parameter, the configuration key, and what only time changes.

Here: from what a rule looks at to what somebody can change, with a value that would just do where the criterion names need and
limit: one by which the rule was judged again. Not here: trying it on the whole decision (`what_if`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from math import ceil, floor, isfinite
from typing import Any, Literal

import numpy as np

from brokerage.rules.decision.declare import Criterion, Filter, Relaxation
from brokerage.rules.decision.pipeline import at
from brokerage.rules.explain.edits import NAMES, PARAMETERS
from brokerage.rules.explain.explanation import finite
from brokerage.rules.explain.rule_inputs import RuleInputs
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns
from brokerage.rules.grid.attributes import FURTHER, QUEUE
from brokerage.rules.grid.pseudo_queues import RESIZED

Where = Literal["queue", "task", "configuration", "moment"]

_SWITCHES = ("max_io_intensity", "use_only_local_data", "allow_no_pilot", "gpu", "allowed_processing", "excluded_processing")
_ATTRIBUTES: Mapping[str, str] = {
    **{name: name for name, parameter in {**QUEUE, **FURTHER}.items() if parameter.kind != "object"},
    **dict.fromkeys(_SWITCHES, "catchall"),
    "any_release": "releases",
    "cloud": "cloud",
}
"""Column of a queue -> the attribute of the grid document that it comes from."""

_TOLD_BY_SITES: Mapping[str, str] = {"station_sites": "sites that offer one of the stations, by what they advertised last"}
"""Fields of the ask that no parameter of a task sets."""

LARGEST = 10**15
"""No value beyond is tried."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing that a verdict depends on.

    `value`: what it is now. `edit`: its name in a what-if, empty where it cannot be edited. `enough`: a value with which this
    criterion just passes, where that follows from the numbers.
    """

    where: Where
    name: str
    value: Any
    about: str
    edit: str = ""
    enough: Any = None


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A criterion that the candidate of a row fails, with its rule, what that judges, and the numbers of this candidate."""

    rule: Filter
    criterion: Criterion
    ask: Ask
    table: Columns
    config: Config
    row: int
    numbers: Mapping[str, Any]

    def passes(self, table: Columns, config: Config) -> bool:
        """Whether the candidate passes on another table or configuration."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            verdicts, _ = self.rule(self.ask, table, config)
        strict = verdicts.strict if isinstance(verdicts, Relaxation) else verdicts
        return bool(at(strict[self.rule.criteria.index(self.criterion)], self.row))

    def with_column(self, name: str, value: float) -> bool:
        """Whether it passes with this value in a column."""
        column = getattr(self.table, name).copy()
        column[self.row] = value
        return self.passes(self.table.with_columns(**{name: column}), self.config)

    def with_key(self, name: str, value: float) -> bool:
        """Whether it passes with this value of a configuration key."""
        return self.passes(self.table, {**self.config, name: value})


def remedies(check: FailedCheck, inputs: RuleInputs) -> tuple[Remedy, ...]:
    """What one criterion depends on for one candidate, what it compares first; `inputs`: what its rule looks at."""
    depends_on = [*_of_queue(check, inputs), *_of_task(inputs, check.ask), *_of_config(check, inputs)]
    named = check.criterion.gap or ()
    return tuple(
        sorted(depends_on, key=lambda remedy: (remedy.enough is None, remedy.where == "moment", remedy.name not in named))
    )


def _of_queue(check: FailedCheck, inputs: RuleInputs) -> Iterator[Remedy]:
    table, row = check.table, check.row
    docs = {field.name: field.metadata["doc"] for field in fields(table)}
    queue = table.name[row].item()
    unified_name = getattr(table, "unified_name", None)
    unified = unified_name is not None and bool(unified_name[row])
    if unified_name is not None and unified:
        queue = unified_name[row].item()
    for column in inputs.columns:
        if column in ("name", "unified_name"):
            continue
        value = finite(at(getattr(table, column), row))
        attribute = _ATTRIBUTES.get(column, "") if table.noun == "queue" else ""
        edit = f"queue.{queue}.{attribute}" if attribute else ""
        if column == "space_gb" and getattr(table, "storage", None) is not None and table.storage[row]:  # type: ignore[attr-defined]
            edit = f"storage.{table.storage[row]}.free_gb"  # type: ignore[attr-defined]
        own = attribute == column and not (unified and column in RESIZED)
        enough = _enough(check, column, partial(check.with_column, column)) if own else None
        yield Remedy("queue" if attribute else "moment", attribute or column, value, docs[column], edit, enough)


def _of_task(inputs: RuleInputs, ask: Ask) -> Iterator[Remedy]:
    for field_name in inputs.ask:
        value = getattr(ask, field_name)
        if field_name in _TOLD_BY_SITES:
            yield Remedy("moment", field_name, value, _TOLD_BY_SITES[field_name], field_name)
        elif field_name in PARAMETERS and value not in (None, "", (), False, 0):
            name = NAMES.get(field_name, field_name)
            yield Remedy("task", name, value, PARAMETERS[name].doc, name)


def _of_config(check: FailedCheck, inputs: RuleInputs) -> Iterator[Remedy]:
    names = {number: name for name in check.criterion.gap or () if _is_number(number := check.numbers.get(name))}
    for key in inputs.keys:
        value = check.config[key]
        name = names.get(value, "") if _is_number(value) else ""
        enough = _enough(check, name, partial(check.with_key, key)) if name else None
        yield Remedy("configuration", key, value, "", f"config.{key}", enough)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _enough(check: FailedCheck, name: str, passes: Callable[[int], bool]) -> int | None:
    """The whole number in the place of what is needed, or of the limit, with which the criterion just passes; None where there is
    none.

    The other one of the two is nearly it: some rules take the limit itself, others only what is beyond, or a part of it.
    """
    gap = check.criterion.gap
    if gap is None or name not in gap:
        return None
    value: Any = check.numbers.get(name)
    target: Any = check.numbers.get(gap[1 - gap.index(name)])
    if not _is_number(value) or not _is_number(target):
        return None
    up = target > value or (target == value and name == gap[1])
    way = 1 if up else -1
    good = int(ceil(target) if up else floor(target))
    bad, step = good - way, 1
    while 0 <= good <= LARGEST and not passes(good):
        bad, good, step = good, good + way * step, step * 2
    if not 0 <= good <= LARGEST:
        return None
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if passes(middle) else (good, middle)
    return good
