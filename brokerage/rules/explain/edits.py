"""What somebody changes to see what would become of a decision: task parameters, attributes of the grid, configuration values.

Read from `name=value` and checked with the same types as submission, grid document and configuration. Pure; nothing is written.
Not here: deciding before and after (`what_if`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from broker_site.foundation.gdpconfig.keys import APP, KEYS, BadConfig
from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import AS_GIVEN, WHOLE, Flag, parts
from broker_site.foundation.outside_data import problems as faults
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.facts.ask import SIGNED, Ask, Chunk
from brokerage.rules.grid.attributes import (
    FLAGS,
    FURTHER,
    QUEUE,
    SITE,
    STORAGE,
    Attribute,
    BadGrid,
    Table,
    in_a_line,
    number_from_text,
)
from brokerage.rules.grid.document import Grid
from brokerage.rules.grid.overrides import Kind, laid_over, value_in
from workqueues.rules.task_parameters import TASK_PARAMETERS, TaskParameters
from workqueues.rules.task_parameters.declaration import Names

MOST = 50
"""Edits at once."""
EVERY = "*"
"""Stands for all entries of a part of the grid."""
_RENAMED = {"current_priority": "priority", "trans_uses": "release"}
_BY_NAME = {
    "includedSite": "included_sites",
    "excludedSite": "excluded_sites",
    "bannedSites": "banned_sites",
    "stations": "stations",
    "gshare": "share",
}
_TYPES: Mapping[Any, Any] = {
    str: str,
    int: Annotated[int, Field(ge=0, le=1e15), WHOLE],
    float: Annotated[float, Field(ge=0, le=1e15), AS_GIVEN],
    bool: Flag,
    tuple[str, ...]: Names,
}
_SIGNED: Mapping[Any, Any] = {
    int: Annotated[int, Field(ge=-1e9, le=1e15), WHOLE],
    float: Annotated[float, Field(ge=-1e9, le=1e15), AS_GIVEN],
}
_PARTS: Mapping[Kind, tuple[str, Table]] = {
    "queue": ("queues", QUEUE),
    "site": ("sites", SITE),
    "storage": ("storages", STORAGE),
}
_PLACES: tuple[Kind | Literal["config"], ...] = (*_PARTS, "config")
_HINTS: Mapping[type, Mapping[str, Any]] = {owner: get_type_hints(owner) for owner in (Ask, Chunk)}


class BadEdits(ValueError):
    """Edits that cannot be made; `problems` has each with its field and rule."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.rule}: {p.message}" for p in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: `ramCount`, `queue.ALPHA.maxrss`, `storage.ALPHA_DISK.free_gb`, `site.A.state`, `config.NQUEUELIMITSITE`."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class EditResult:
    """An edit that was made: what was there before (None = not given; of several entries the first one's)."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class AskField:
    """A field of the ask that can be changed: its type, and the value that an empty text stands for."""

    name: str
    type: Any
    default: Any = None
    doc: str = ""


def _ask_fields() -> Mapping[str, AskField]:
    """Name of a task parameter, or of a field of the ask -> the field."""
    ask_fields: dict[str, AskField] = {}
    for owner, prefix in ((Ask, ""), (Chunk, "chunk.")):
        for name, hint in _HINTS[owner].items():
            kind = next((k for k in _TYPES if hint in (k, k | None)), None)
            if kind is not None and name not in ("task_id", "vo"):
                ask_fields[prefix + name] = AskField(prefix + name, (_SIGNED if name in SIGNED else _TYPES)[kind])
    for parameter in TASK_PARAMETERS.values():
        field_name = _BY_NAME.get(parameter.name) or _RENAMED.get(parameter.column, parameter.column)
        if field_name in ask_fields and not parameter.row:
            declared = TaskParameters.model_fields[parameter.name]
            declared_type = Annotated[declared.annotation, *declared.metadata, declared]  # type: ignore[name-defined]
            ask_fields[parameter.name] = ask_fields[field_name] = AskField(
                field_name, declared_type, parameter.default, parameter.doc
            )
    return MappingProxyType(ask_fields | {alias: ask_fields[field_name] for alias, field_name in _BY_NAME.items()})


PARAMETERS = _ask_fields()

_ALWAYS: Mapping[str, Any] = MappingProxyType(
    {
        prefix + declared.name: declared.default
        for owner, prefix in ((Ask, ""), (Chunk, "chunk."))
        for declared in fields(owner)
        if _HINTS[owner][declared.name] in _TYPES and declared.default is not MISSING
    }
)
"""Fields of the ask that always have a value -> the one that stands for nothing."""

NAMES: Mapping[str, str] = MappingProxyType({f.name: n for n, f in reversed(list(PARAMETERS.items())) if n != f.name})
"""Field of the ask -> the task parameter that sets it."""


def read_edits(texts: Iterable[str]) -> tuple[Edit, ...]:
    """Edits as they come from a command line or an address: `name=value`. BadEdits for a text without name or `=`."""
    edits, problems = [], []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            problems.append(Problem(text[:100] or "what-if", "form", "expected name=value, as ramCount=4000"))
        else:
            edits.append(Edit(name.strip(), value.strip()))
    if len(edits) > MOST:
        problems.append(Problem("what-if", "range", f"{len(edits)} edits, at most {MOST} at once"))
    if problems:
        raise BadEdits(problems)
    return tuple(edits)


def edited_ask(ask: Ask, edits: Sequence[Edit]) -> tuple[Ask, list[EditResult], list[Problem]]:
    """The ask with the edits of the task; those of grid and configuration are left alone."""
    done: list[EditResult] = []
    problems: list[Problem] = []
    for edit in edits:
        if _place(edit.name) != "task":
            continue
        if edit.name not in PARAMETERS:
            message = f"a task has no {edit.name[:60]!r} that can be changed here"
            problems.append(_unknown(edit.name, message, edit.name, PARAMETERS))
            continue
        field_name = PARAMETERS[edit.name].name
        value, problem = _of_ask(PARAMETERS[edit.name], edit)
        if problem is not None:
            problems.append(problem)
            continue
        if value is None:
            value = _ALWAYS.get(field_name)
        attribute = field_name.removeprefix("chunk.")
        before = getattr(ask if attribute == field_name else ask.chunk, attribute)
        done.append(EditResult(edit.name, before, value))
        if attribute == field_name:
            ask = replace(ask, **{attribute: value})
        else:
            ask = replace(ask, chunk=replace(ask.chunk, **{attribute: value}))
    return ask, done, problems


def edited_grid(grid: Grid, edits: Sequence[Edit]) -> tuple[Grid, list[EditResult], list[Problem]]:
    """The grid with the edits of queues, sites and storages."""
    done: list[EditResult] = []
    problems: list[Problem] = []
    for edit in edits:
        place = _place(edit.name)
        if place == "task" or place == "config":
            continue
        part, table = _PARTS[place]
        name, _, attribute = edit.name.partition(".")[2].rpartition(".")
        entries: tuple[Any, ...] = getattr(grid, part)
        at = [i for i, entry in enumerate(entries) if name in (entry.name, EVERY)]
        attributes = {k: p for k, p in {**table, **(FURTHER if place == "queue" else {})}.items() if p.kind != "object"}
        if not at:
            message = f"the grid has no {place} {name[:60]!r}"
            problems.append(_unknown(edit.name, message, name, (entry.name for entry in entries)))
        elif attribute not in attributes:
            message = f"a {place} has no attribute {attribute[:60]!r} that can be changed here"
            problems.append(_unknown(edit.name, message, attribute, attributes))
        else:
            value, problem = _of_grid(attributes[attribute], edit)
            if problem is not None:
                problems.append(problem)
                continue
            done.append(EditResult(edit.name, value_in(place, attribute, entries[at[0]].columns), value))
            edited = {i: replace(entries[i], columns=laid_over(place, entries[i].columns, {attribute: value})) for i in at}
            grid = replace(grid, **{part: tuple(edited.get(i, entry) for i, entry in enumerate(entries))})
    return grid, done, problems


def edited_config(
    config: BrokerConfig, policies: Sequence[Policy], vo: str, edits: Sequence[Edit]
) -> tuple[BrokerConfig, list[EditResult], list[Problem]]:
    """The configuration with its edits, for the policies that a decision asks; the first is the one that decides."""
    done: list[EditResult] = []
    problems: list[Problem] = []
    changes: dict[str, Any] = {}
    read = list(dict.fromkeys(key for policy in policies for key in policy.keys))
    for edit in edits:
        if _place(edit.name) != "config":
            continue
        name = edit.name.partition(".")[2]
        places = [place.rpartition(":") for policy in policies for place in policy.components]
        value = _key_value(name, edit.value, [(app or APP, component) for app, _, component in places], read)
        if isinstance(value, Problem):
            problems.append(replace(value, field=edit.name))
        else:
            before = next((values[name] for policy in policies if name in (values := config.values(policy, vo))), None)
            done.append(EditResult(edit.name, before, value[0]))
            changes[name] = value[0]
    return BrokerConfig(config.component, changes), done, problems


def _key_value(name: str, value: Any, places: Sequence[tuple[str, str]], read: Sequence[str]) -> tuple[Any] | Problem:
    """The typed value of a key that a policy reads, or what is wrong with name or value."""
    for app, component in reversed(places):
        try:
            keys = KEYS.matching(component, name, app)
        except BadConfig:
            continue
        if not any(key.name in read for key in keys):
            break
        try:
            return (keys[0].accept(value),)
        except BadConfig as bad:
            return Problem(name, bad.problems[0].rule, bad.problems[0].message)
    return _unknown(name, f"the decision reads no configuration key {name[:60]!r}", name, read)


def _place(name: str) -> Kind | Literal["config", "task"]:
    """Which part of the question an edit is about."""
    return next((place for place in _PLACES if name.startswith(f"{place}.")), "task")


def _of_ask(field: AskField, edit: Edit) -> tuple[Any, Problem | None]:
    raw: Any = edit.value
    kind = next((part for part in parts(field.type) if part in (bool, int, float, str)), tuple)
    try:
        if kind is bool and isinstance(raw, str):
            raw = FLAGS.get(raw.lower(), raw)
        elif kind in (int, float) and raw != "":
            raw = number_from_text(raw)
        empty = raw is None or (raw == "" and kind is not str)
        strict = ConfigDict(strict=True, allow_inf_nan=False)
        nothing = None if field.default == "" else field.default
        value: Any = nothing if empty else TypeAdapter(field.type, config=strict).validate_python(raw)
    except ValidationError as error:
        return None, next(faults(error, field.type, edit.name))
    except ValueError as error:
        return None, Problem(edit.name, "type", str(error))
    # As the task keeps them.
    return tuple(value or ()) if kind is tuple else json.dumps(value) if isinstance(value, dict) else value, None


def _of_grid(attribute: Attribute, edit: Edit) -> tuple[Any, Problem | None]:
    try:
        return attribute.read(attribute.from_text(edit.value) if isinstance(edit.value, str) else edit.value), None
    except BadGrid as bad:
        return None, Problem(edit.name, bad.problems[0].rule, in_a_line(bad.problems[0]))


def _unknown(field: str, message: str, name: str, names: Iterable[str]) -> Problem:
    near = nearest(name, names)
    return Problem(field[:100], "unknown", message + (f"; the nearest known one is {near}" if near else ""))
