"""How a parameter is declared, and reading what was declared: types, known names, what must be given, what works today.

A name that nobody declared is refused with the nearest known one; one whose row is not built yet is refused with that row
(decisions F3, F4), so that no wish is silently ignored. Not here: the parameters (`document`, `items`) and rules over several of
them (`rules.refine`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, GetJsonSchemaHandler, PlainValidator
from pydantic_core import CoreSchema

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import AS_GIVEN, LARGEST, NOT_BLANK, WHOLE, fault, found, problem, read_partly
from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.jobs.post_processors import POST_PROCESSORS

MOST_ID = 10**12
"""Largest number of a task that may be named."""

LONGEST_SHORT_NAME = 64
"""Characters of a name that jobs require of a resource."""

MOST_FIELDS = 100
"""Largest number that a list of counts may hold, and most entries of a list."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Parameter:
    """What is declared of a name beside its type.

    `required`: it must be given. `row`: the row of the mission that builds it; with one it does not work yet. `column`: where it
    ends in the task's row. `code`: its letters in the split rule. `lines`: its text may have several lines; None: it is no text.
    """

    name: str
    doc: str
    default: object = None
    required: bool = False
    row: str = ""
    column: str = ""
    code: str = ""
    lines: bool | None = None

    @property
    def supported(self) -> bool:
        """Whether a task that uses it can run today."""
        return not self.row

    def asks(self, value: object) -> bool:
        """Whether `value` wishes for something: false, zero, empty and the default do not."""
        return bool(value) and value != self.default

    def refusal(self, path: str) -> Problem:
        """What is answered to a wish that nothing fulfils yet."""
        return problem(path + self.name, "not_supported_yet", f"{self.doc} Not supported yet")


@lru_cache
def parameters(model: type[BaseModel]) -> Mapping[str, Parameter]:
    """What a model declares, by name."""
    fields = model.model_fields.items()
    return MappingProxyType({n: Parameter(n, f.description or "", f.default, **(f.json_schema_extra or {})) for n, f in fields})  # type: ignore[arg-type]


def read(model: type[M], data: Mapping[str, object], path: str = "", noun: str = "parameter") -> tuple[M, list[Problem]]:
    """What is well typed in the data (null is not given), and what is wrong with the rest; `path` ends where the names begin."""
    declared = parameters(model)
    values = {name: value for name, value in data.items() if value is not None or name not in declared}
    draft, problems = read_partly(model, values, path.removesuffix("."), noun)
    problems += [p.refusal(path) for n in values if (p := declared.get(n)) is not None and p.row and p.asks(values[n])]
    problems += [problem(path + p.name, "required", f"must be given: {p.doc}") for p in _required(model) if p.name not in values]
    return draft, problems


@lru_cache
def _required(model: type[BaseModel]) -> tuple[Parameter, ...]:
    return tuple(parameter for parameter in parameters(model).values() if parameter.required)


def parameter(doc: str, default: object = None, **about: object) -> Any:
    """A field of a model: limits as pydantic calls them, the rest as in `Parameter`."""
    limits = {name: about.pop(name) for name in ("ge", "le", "max_length", "pattern") if name in about}
    return Field(default, description=doc, json_schema_extra=about, **limits)  # type: ignore[call-overload]


def text(
    doc: str, column: str = "", *, length: int = 0, pattern: str = "", default: str = "", lines: bool = False, **about: object
) -> Any:
    """A text, no longer than its column, on one line unless it may have `lines`; `pattern` is for texts that are not empty."""
    limits: dict[str, object] = {"pattern": f"^({pattern})?$"} if pattern else {}
    if length or column:
        limits["max_length"] = length or TASK[column]
    return parameter(doc, default, lines=lines, **limits, **about, **({"column": column} if column else {}))


def names(doc: str, **about: object) -> Any:
    """A list of names, each on one line."""
    return parameter(doc, (), lines=False, **about)


def number(doc: str, *, low: float = 0, high: float = LARGEST, default: float = 0, **about: object) -> Any:
    """A number within limits, both inclusive; a default outside of them stands for nothing."""
    return parameter(doc, default, ge=low, le=high, **about)


def flag(doc: str, **about: object) -> Any:
    """A switch, off unless given."""
    return parameter(doc, False, **about)


@dataclass(frozen=True, slots=True, eq=False)
class _Said:
    """What the JSON schema of a type says besides: what a function checks that pydantic cannot read."""

    words: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), **self.words}


def _not_blank(text: str) -> str:
    if not text.strip():
        raise fault("required", "must not be empty")
    return text


def _names(value: object) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise fault("type", f"expected a list of names or one text with commas, found {found(value)}")
    return tuple(dict.fromkeys(name.strip() for name in listed if name.strip()))


def _short_names(value: object) -> tuple[str, ...]:
    names = _names(value)
    if len(names) > MOST_FIELDS:
        raise fault("length", f"{len(names)} names, expected at most {MOST_FIELDS}")
    if longest := max(names, key=len, default="")[LONGEST_SHORT_NAME:]:
        length = LONGEST_SHORT_NAME + len(longest)
        raise fault("length", f"a name of {length} characters, expected at most {LONGEST_SHORT_NAME}")
    return names


def _counts(value: object) -> tuple[int, ...]:
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    counts = tuple(_count(part.strip() if isinstance(part, str) else part) for part in listed)
    if not 0 < len(counts) <= MOST_FIELDS or not all(0 < count <= MOST_FIELDS for count in counts):
        message = f"expected whole numbers from 1 to {MOST_FIELDS}, as a list or with commas, found {found(value)}"
        raise fault("type", message)
    return counts


def _task_ids(value: object) -> tuple[int, ...]:
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    ids = tuple(dict.fromkeys(_whole(part.strip() if isinstance(part, str) else part) for part in listed if part != ""))
    if len(ids) > MOST_FIELDS or not all(0 < id_ <= MOST_ID for id_ in ids):
        message = f"expected at most {MOST_FIELDS} numbers of tasks, as a list or with commas, found {found(value)}"
        raise fault("type", message)
    return ids


def _whole(part: object) -> int:
    if isinstance(part, str):
        return int(part) if part.isascii() and part.isdigit() and len(part) <= len(str(MOST_ID)) else 0
    return part if type(part) is int else 0


def _count(part: object) -> int:
    if isinstance(part, str):
        return int(part) if part.isascii() and part.isdigit() and len(part) <= 3 else 0
    return part if type(part) is int else 0


def _architecture(value: object) -> object:
    if not isinstance(value, str | dict):
        raise fault("type", f"expected a text or an object, found {found(value)}")
    length = len(value if isinstance(value, str) else json.dumps(value))
    if length > TASK["architecture"]:
        raise fault("length", f"{length} characters, the limit of the column architecture is {TASK['architecture']}")
    return value


def _post_processing(value: dict[str, Any]) -> dict[str, Any]:
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise fault("required", "must give the name of a post-processor")
    if name not in POST_PROCESSORS:
        near = nearest(name, POST_PROCESSORS)
        raise fault("exists", f"no post-processor {name[:100]} is installed" + (f"; the nearest name is {near}" if near else ""))
    return value


Whole = Annotated[int, WHOLE]
Amount = Annotated[float, AS_GIVEN]
"""Whole numbers and others, for fields that `number` declares."""
Count = Annotated[int, Field(ge=0, le=LARGEST), WHOLE]
Percent = Annotated[float, Field(ge=0, le=100), AS_GIVEN]
"""The same where zero is something else than not given: `Count | None`."""
Given = Annotated[str, AfterValidator(_not_blank), _Said({"pattern": NOT_BLANK})]
Names = Annotated[tuple[str, ...], BeforeValidator(_names, json_schema_input_type=list[str] | str)]
"""Each name once; read from a list, or from one text with commas."""
ShortNames = Annotated[tuple[str, ...], BeforeValidator(_short_names, json_schema_input_type=list[str] | str)]
"""The same, each of at most 64 characters."""
_Field = Annotated[int, Field(ge=1, le=MOST_FIELDS)]
_FIELD = r"(0{0,2}[1-9]|0?[1-9][0-9]|100)"
Counts = Annotated[
    tuple[int, ...],
    BeforeValidator(
        _counts,
        json_schema_input_type=Annotated[list[_Field], Field(min_length=1, max_length=MOST_FIELDS)]
        | _Field
        | Annotated[str, Field(pattern=f"^{_FIELD}(,{_FIELD}){{0,{MOST_FIELDS - 1}}}$")],
    ),
]
"""Whole numbers from 1 on; read from a list, from one number, or from a text with commas."""
_TaskId = Annotated[int, Field(ge=1, le=MOST_ID)]
_TASK_ID = r"[1-9][0-9]{0,11}"
TaskIds = Annotated[
    tuple[int, ...],
    BeforeValidator(
        _task_ids,
        json_schema_input_type=Annotated[list[_TaskId], Field(max_length=MOST_FIELDS)]
        | _TaskId
        | Annotated[str, Field(pattern=f"^({_TASK_ID}(,{_TASK_ID}){{0,{MOST_FIELDS - 1}}})?$")],
    ),
]
"""Numbers of tasks, each once; read from a list, from one number, or from a text with commas."""
Architecture = Annotated[str | dict[str, Any], PlainValidator(_architecture, json_schema_input_type=str | dict[str, Any])]
_NAMED = {"properties": {"name": {"type": "string", "minLength": 1, "required": True}}}
PostProcessing = Annotated[dict[str, Any], AfterValidator(_post_processing), _Said(_NAMED)]
"""The name of a post-processor, and what else it wants to know."""
