"""Reading of data from outside: pydantic checks it, every fault becomes a problem with its field, its rule and one short line.

Here: the error, the words for what pydantic finds, the types that most documents share. Not here: the declarations (each
document has its own models), and what is checked before: size, depth and characters.

Rules: required, type, range, length, choice, format, unknown, json; a validator of a model raises its own with `fault`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from itertools import islice
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, TypeAdapter, ValidationError, ValidationInfo, WrapValidator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem

LARGEST = 999_999_999
"""Largest whole number that a NUMBER(9) column of the field's documents holds."""

MOST_PROBLEMS: Final = 200
MOST_HINTS: Final = 20
"""So many unknown names are answered with the nearest known one: looking for it takes time."""

NOT_BLANK: Final = r"[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""What a text must hold that may not be blank: a pattern, as what \\s stands for differs between readers of patterns."""

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


class OutsideDataError(ValueError):
    """Data that cannot be used; `problems` has every fault (200 at most) with the path of its place and its rule."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)[:MOST_PROBLEMS]
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in self.problems[:5]))


@dataclass(frozen=True, slots=True)
class Expected:
    """What a field takes, in words, where its type does not say it well: a mark for `Annotated`."""

    words: str


def problem(field: str, rule: str, message: str) -> Problem:
    """A problem whose message is one short line."""
    return Problem(field, rule, message if len(message) <= 500 else message[:497] + "...")


def found(value: object) -> str:
    """A value as messages show it: its kind and the start of its text."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) > 10**18:
        return "a number of more than 18 digits"
    if isinstance(value, int | float):
        return f"the number {str(value)[:40]}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "a value"


def fault(rule: str, message: str) -> PydanticCustomError:
    """What a validator of a model raises: a rule of its own, in words."""
    return PydanticCustomError(rule, "{message}", {"message": message})


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _reading(kind: Any) -> Callable[[object], Any]:
    """The reader's own function: every message is read, and the options that are looked at before it are not used here."""
    return _reader(kind).validator.validate_python


def read(kind: type[T], data: object, path: str = "", noun: str = "part") -> T:
    """The data as a model or dataclass declares it. Raises OutsideDataError; `path`: its place; `noun`: what names stand for."""
    try:
        value: T = _reading(kind)(data)  # type: ignore[arg-type]  # a type is hashable
    except ValidationError as error:
        raise OutsideDataError(problems(error, kind, path, noun)) from None
    return value


def text_of(kind: Any, value: object) -> str:
    """What was read as this kind, or is like it, as JSON: of many dataclasses much faster than by `json`."""
    return _reader(kind).dump_json(value).decode()


def read_leaving_out(kind: type[T], data: object) -> tuple[T, list[Problem]]:
    """What is right in the data, and what is wrong with the rest, of which as little as possible is left out.

    A part that breaks a rule is left out, and with it what cannot be without it: a member of a list, an optional field. Raises
    OutsideDataError, with all that is wrong, where nothing is left.
    """
    try:
        return _reader(kind).validate_python(data), []  # type: ignore[arg-type]  # a type is hashable
    except ValidationError as error:
        last, told = error, list(problems(error, kind))
    if (more := last.error_count() - MOST_PROBLEMS) > 0:
        told.append(problem("", "more", f"at least {more} problems more"))
    data = copy.deepcopy(data)
    while _leave_out(data, last):
        try:
            return _reader(kind).validate_python(data), told  # type: ignore[arg-type]  # a type is hashable
        except ValidationError as error:
            last = error
    raise OutsideDataError(told)


def _leave_out(data: object, error: ValidationError) -> bool:
    """Take out of the data the innermost part at each place of an error; False where that is the whole."""
    members: dict[int, tuple[Any, set[Any]]] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        holder: Any = None
        key: Any = None
        at: Any = data
        place: tuple[Any, ...] = detail["loc"]
        for part in place:
            if not ((isinstance(at, dict) and part in at) or (isinstance(at, list) and isinstance(part, int))):
                break
            holder, key, at = at, part, at[part]
        if holder is None or key is None:
            return False
        members.setdefault(id(holder), (holder, set()))[1].add(key)
    for holder, keys in members.values():
        for key in sorted(keys, reverse=True):  # of one holder all are numbers, or all are texts
            del holder[key]
    return True


def read_partly(model: type[M], data: Mapping[str, object], path: str = "", noun: str = "part") -> tuple[M, list[Problem]]:
    """What is right in the data, and what is wrong with the rest. Every field of `model` has a default, none an alias."""
    fields = model.model_fields
    unknown = list(islice((name for name in data if name not in fields), MOST_PROBLEMS + 1))
    try:
        return model.model_validate(data if not unknown else _part(data, fields) | _part(data, unknown)), []
    except ValidationError as error:
        faults = list(problems(error, model, path, noun))
        if (more := error.error_count() - MOST_PROBLEMS) > 0:
            faults.append(problem(path, "more", f"at least {more} problems more"))
        wrong = {detail["loc"][0] for detail in error.errors(include_url=False, include_context=False, include_input=False)}
    return model.model_validate(_part(data, fields.keys() - wrong)), faults


def _part(data: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    return {name: data[name] for name in names if name in data}


def problems(error: ValidationError, model: Any, path: str = "", noun: str = "part") -> Iterator[Problem]:
    """What pydantic found, in our words; `model` is a model or the type of a TypeAdapter, the field is the path from the top."""
    hints = 0
    for detail in error.errors(include_url=False)[:MOST_PROBLEMS]:
        hints += detail["type"] == "extra_forbidden"
        rule, message = _in_words(detail, model, noun, hints <= MOST_HINTS)
        yield problem(_place(path, detail["loc"]), rule, message)


def _place(path: str, loc: Sequence[int | str]) -> str:
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "[key]":
            path = f"{path}.{part[:100]}" if path else part[:100]
    return path


KINDS: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "dict": "an object",
    "mapping": "an object",
    "model": "an object",
    "dataclass": "an object",
}
"""The first word of pydantic's types of errors about types -> what was expected."""


def _in_words(detail: ErrorDetails, model: Any, noun: str, hint: bool) -> tuple[str, str]:
    kind, field = detail["type"], _Declared(model, detail["loc"])
    if kind == "literal_error" and detail["loc"][-1:] == ("[key]",):
        return "unknown", f"expected one of {detail['ctx']['expected'].replace(' or ', ', ').replace(chr(39), '')}"
    if kind == "extra_forbidden":
        near = nearest(str(detail["loc"][-1]), field.siblings) if hint else ""
        return "unknown", f"unknown {noun}" + (f"; the nearest known one is {near}" if near else "")
    if kind in _WORDS:
        rule, words = _WORDS[kind]
        return rule, words(field, detail["input"], detail.get("ctx", {}))
    first = kind.split("_")[0]
    if first in KINDS and kind.endswith(("_type", "_parsing", "_from_float")):
        return "type", f"expected {field.expected or KINDS[first]}, found {found(detail['input'])}"
    return kind, detail["msg"]


class _Declared:
    """What the models say of the field at a place; pydantic's errors know only the limit that was broken."""

    def __init__(self, model: Any, loc: Sequence[int | str]) -> None:
        self.siblings: tuple[str, ...] = ()
        self._info: FieldInfo | None = None
        at = model
        for part in loc:
            at = self._step(at, part)
        self._marks = [*_marks(at)]

    def _step(self, at: Any, part: int | str) -> Any:
        for fields in _fields(at):
            self.siblings = tuple(fields)
            self._info = fields.get(str(part))
            return None if self._info is None else Annotated[self._info.annotation, *self._info.metadata, None]
        members = next((get_args(t) for t in parts(at) if get_origin(t) in (dict, list, tuple, Mapping, Sequence)), ())
        return members[-1 if members[-1:] != (...,) else 0] if members else None

    @property
    def description(self) -> str:
        return (self._info.description or "") if self._info else ""

    @property
    def expected(self) -> str:
        return next((mark.words for mark in self._marks if isinstance(mark, Expected)), "")

    @property
    def choices(self) -> str:
        return ", ".join(str(mark) for mark in self._marks if isinstance(mark, str))

    @property
    def column(self) -> str:
        extra = self._info.json_schema_extra if self._info else None
        column = extra.get("column") if isinstance(extra, dict) else None
        return f" of the column {column}" if column else ""

    @property
    def limits(self) -> str:
        low, high = (next((getattr(m, n) for m in self._marks if hasattr(m, n)), None) for n in ("ge", "le"))
        if low is not None and high is not None:
            return f"{_plain(low)} to {_plain(high)}"
        return (
            f"{_plain(low)} or more" if low is not None else f"{_plain(high)} or less" if high is not None else "another number"
        )


def _out_of_range(field: _Declared, value: Any, context: Mapping[str, Any]) -> str:
    return f"expected {field.limits}, found {found(value)}"


def _form(pattern: str) -> str:
    """A pattern without what says that the whole text has it, or is empty."""
    form = pattern.removeprefix("^").removesuffix("$")
    return form[1:-2] if form.startswith("(") and form.endswith(")?") else form


def _no_choice(field: _Declared, value: Any, context: Mapping[str, Any]) -> str:
    return f"expected one of {field.choices or context['expected']}; found {found(value)}"


_WORDS: Final[Mapping[str, tuple[str, Callable[[_Declared, Any, Mapping[str, Any]], str]]]] = {
    "missing": ("required", lambda field, value, context: ": ".join(filter(None, ("must be given", field.description)))),
    "string_too_short": ("required", lambda field, value, context: "must not be empty"),
    "string_too_long": (
        "length",
        lambda field, value, context: f"{len(value)} characters, the limit{field.column} is {context['max_length']}",
    ),
    "too_long": ("length", lambda field, value, context: f"more than {context['max_length']} entries"),
    "too_short": ("length", lambda field, value, context: f"fewer than {context['min_length']} entries"),
    "string_pattern_mismatch": (
        "format",
        lambda field, value, context: (
            f"{found(value)} does not have the form {_form(context['pattern'])}"
            + (f"; it is: {field.description}" if field.description else "")
        ),
    ),
    "string_unicode": ("characters", lambda field, value, context: "holds half of a surrogate pair"),
    "literal_error": ("choice", _no_choice),
    "enum": ("choice", _no_choice),
    "greater_than_equal": ("range", _out_of_range),
    "less_than_equal": ("range", _out_of_range),
    "greater_than": ("range", _out_of_range),
    "less_than": ("range", _out_of_range),
    "finite_number": ("type", lambda field, value, context: "expected a finite number"),
    "value_error": ("value", lambda field, value, context: str(context["error"])),
}
"""Pydantic's type of error -> our rule, and the line."""


def parts(annotation: Any) -> Iterator[Any]:
    """An annotation and what it is made of, unions and marks opened."""
    yield annotation
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from parts(annotation.__origin__)
    elif origin not in (None, Literal, dict, list, tuple):
        for part in get_args(annotation):
            yield from parts(part)


def _fields(annotation: Any) -> Iterator[dict[str, FieldInfo]]:
    """The fields of the models and dataclasses in an annotation, by the names that data has for them."""
    for part in parts(annotation):
        if not isinstance(part, type):
            continue
        if issubclass(part, BaseModel):
            yield {info.alias or name: info for name, info in part.model_fields.items()}
        elif is_dataclass(part):
            declared = {name: FieldInfo.from_annotation(hint) for name, hint in get_type_hints(part, include_extras=True).items()}
            yield {str(info.validation_alias or name): info for name, info in declared.items()}


def _marks(annotation: Any) -> Iterator[Any]:
    """Limits, choices (as texts) and words that belong to an annotation."""
    for part in parts(annotation):
        if get_origin(part) is Annotated:
            for mark in part.__metadata__:
                yield from mark.metadata if isinstance(mark, FieldInfo) else [mark]
        elif get_origin(part) is Literal:
            yield from map(str, get_args(part))


def _plain(number: Any) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and math.isfinite(value) and value == int(value) else value


def _as_given(value: object, check: Callable[[object], object]) -> object:
    check(value)
    return value


def _flag(value: object) -> object:
    return bool(value) if type(value) is int and value in (0, 1) else value


def _bounded(value: object, check: Callable[[object], object], info: ValidationInfo) -> object:
    faults = getattr(info.context, "faults", None)
    if faults is None:
        return check(value)
    if len(faults) >= MOST_PROBLEMS:
        return None
    try:
        return check(value)
    except ValidationError:
        faults.append(value)
        raise


BOUNDED = WrapValidator(_bounded)
"""Marks members of which there may be millions: once 200 were faulty, the others are not looked at.

Where the context of a reading has a list `faults`, that counts them; a reading needs a list of its own.
"""

WHOLE = BeforeValidator(_whole)
"""8.0 is a whole number too. Limits stand before it: `Annotated[int, Field(ge=0), WHOLE]`."""

AS_GIVEN = WrapValidator(_as_given)
"""A checked number stays as it came: 8 is not made 8.0."""

Whole = Annotated[int, Strict(), WHOLE]

Flag = Annotated[bool, Strict(), BeforeValidator(_flag, json_schema_input_type=bool | Literal[0, 1])]
"""True or false; 1 and 0 are read too."""

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)
"""For models of outside data: no type is guessed, no name is passed over; a process that reads none builds no reader."""
