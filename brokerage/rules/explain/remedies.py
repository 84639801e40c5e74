"""What would change a verdict: the attribute of the queue, the task parameter, the configuration key, and what only time changes.

Here: from what a rule looks at to what somebody can change, with a value that would just do where the criterion names need and
limit. Not here: trying it (`what_if`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import ceil, floor, isfinite
from typing import Any, Literal

from brokerage.rules.decision.declare import Criterion
from brokerage.rules.decision.pipeline import at
from brokerage.rules.explain.edits import NAMES, PARAMETERS
from brokerage.rules.explain.explanation import finite
from brokerage.rules.explain.rule_inputs import RuleInputs
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns
from brokerage.rules.grid.attributes import FURTHER, QUEUE

Where = Literal["queue", "task", "configuration", "moment"]

_SWITCHES = ("max_io_intensity", "use_only_local_data", "allow_no_pilot", "gpu", "allowed_processing", "excluded_processing")
_ATTRIBUTES: Mapping[str, str] = {
    **{name: name for name, parameter in {**QUEUE, **FURTHER}.items() if parameter.kind != "object"},
    **dict.fromkeys(_SWITCHES, "catchall"),
    "any_release": "releases",
    "cloud": "cloud",
}
"""Column of a queue -> the attribute of the grid document that it comes from."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing that a verdict depends on.

    `value`: what it is now. `edit`: its name in a what-if, empty where it cannot be edited. `enough`: a value with which this
    criterion would just pass, where that follows from the numbers.
    """

    where: Where
    name: str
    value: Any
    about: str
    edit: str = ""
    enough: Any = None


def remedies(
    criterion: Criterion, inputs: RuleInputs, ask: Ask, table: Columns, config: Config, row: int, numbers: Mapping[str, Any]
) -> tuple[Remedy, ...]:
    """What one criterion depends on for one candidate, what it compares first; `numbers` are those of this candidate."""
    depends_on = [
        *_of_queue(criterion, inputs, table, row, numbers),
        *_of_task(inputs, ask),
        *_of_config(criterion, inputs, config, numbers),
    ]
    named = criterion.gap or ()
    return tuple(
        sorted(depends_on, key=lambda remedy: (remedy.enough is None, remedy.where == "moment", remedy.name not in named))
    )


def _of_queue(criterion: Criterion, inputs: RuleInputs, table: Columns, row: int, numbers: Mapping[str, Any]) -> Iterator[Remedy]:
    docs = {field.name: field.metadata["doc"] for field in fields(table)}
    queue = table.name[row].item()
    unified_name = getattr(table, "unified_name", None)
    if unified_name is not None and unified_name[row]:
        queue = unified_name[row].item()
    for column in inputs.columns:
        if column in ("name", "unified_name"):
            continue
        value = finite(at(getattr(table, column), row))
        attribute = _ATTRIBUTES.get(column, "") if table.noun == "queue" else ""
        edit = f"queue.{queue}.{attribute}" if attribute else ""
        if column == "space_gb" and getattr(table, "storage", None) is not None and table.storage[row]:  # type: ignore[attr-defined]
            edit = f"storage.{table.storage[row]}.free_gb"  # type: ignore[attr-defined]
        enough = _enough(criterion, column, numbers) if attribute == column else None
        yield Remedy("queue" if attribute else "moment", attribute or column, value, docs[column], edit, enough)


def _of_task(inputs: RuleInputs, ask: Ask) -> Iterator[Remedy]:
    for field_name in inputs.ask:
        value = getattr(ask, field_name)
        if field_name in PARAMETERS and value not in (None, "", (), False, 0):
            name = NAMES.get(field_name, field_name)
            yield Remedy("task", name, value, PARAMETERS[name].doc, name)


def _of_config(criterion: Criterion, inputs: RuleInputs, config: Config, numbers: Mapping[str, Any]) -> Iterator[Remedy]:
    limit = criterion.gap[1] if criterion.gap else ""
    for key in inputs.keys:
        value = config[key]
        bound = limit if not isinstance(value, bool) and value is not None and value == numbers.get(limit) else ""
        yield Remedy("configuration", key, value, "", f"config.{key}", _enough(criterion, bound, numbers) if bound else None)


def _enough(criterion: Criterion, name: str, numbers: Mapping[str, Any]) -> int | None:
    """The whole number at the limit with which what is needed would just pass."""
    if criterion.gap is None or name != criterion.gap[1]:
        return None
    need, limit = numbers.get(criterion.gap[0]), numbers.get(name)
    if not isinstance(need, int | float) or not isinstance(limit, int | float) or not isfinite(need) or need == limit:
        return None
    return int(ceil(need) if need > limit else floor(need))
