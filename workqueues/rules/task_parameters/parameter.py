"""What one task parameter is: its kind, range and default, where it ends, and the row whose issue builds it.

Here: reading one value. Not here: the tables of parameters (beside this file) and rules over several of them (`rules.refine`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from broker_site.foundation.kernel.verdict import Problem

Kind = Literal["text", "int", "number", "flag", "names", "texts", "counts", "object", "text_or_object", "any"]

LARGEST = 999_999_999
"""Largest whole number that a NUMBER(9) column of the document holds."""


MOST_FIELDS = 100
"""Largest number that a list of counts may hold, and most entries of a list."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One known name.

    `row` is empty when the parameter works; else it is the row of the mission whose issue builds it, and a value that asks for
    something is refused. `column` is the task column it ends in, `code` its two letters in the split rule, `note` what the
    submitter is told although the value is accepted. `choices` and `pattern` bind texts; `low` and `high`, both inclusive, bind
    numbers.
    """

    name: str
    kind: Kind
    doc: str
    row: str = ""
    required: bool = False
    default: object = None
    low: float = 0
    high: float = LARGEST
    choices: tuple[str, ...] = ()
    pattern: str = ""
    length: int = 0
    column: str = ""
    code: str = ""
    note: str = ""

    @property
    def supported(self) -> bool:
        """Whether a task that uses it can run today."""
        return not self.row

    def asks(self, value: object) -> bool:
        """Whether `value` wishes for something: false, zero, empty and the default do not."""
        return bool(value) and value != self.default


Reading = tuple[object, str, str]
"""Value as the rules use it, the rule it breaks ("" if none), and that in words."""


def read(parameter: Parameter, value: object) -> Reading:
    """Bring `value` to the type of `parameter`; null stays None."""
    if value is None:
        return None, "", ""
    kind = parameter.kind
    if kind == "flag":
        return _flag(value)
    if kind in ("int", "number"):
        return _number(parameter, value)
    if kind == "text":
        return _text(parameter, value)
    if kind in ("names", "texts"):
        return _texts(parameter, value)
    if kind == "counts":
        return _counts(value)
    if kind == "object" and not isinstance(value, Mapping):
        return None, "type", f"expected an object, found {found(value)}"
    if kind == "text_or_object" and not isinstance(value, str | Mapping):
        return None, "type", f"expected a text or an object, found {found(value)}"
    return value, "", ""


def problem(field: str, rule: str, message: str) -> Problem:
    """A problem whose message is one short line."""
    return Problem(field, rule, message if len(message) <= 500 else message[:497] + "...")


def found(value: object) -> str:
    """A value as messages show it: its kind and the start of its text."""
    names = {bool: "true or false", int: "the number", float: "the number", str: "the text", list: "a list", dict: "an object"}
    kind = names.get(type(value), "a value")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) > 10**18:
        return "a number of more than 18 digits"
    if isinstance(value, int | float | str):
        text = str(value)
        return f"{kind} {text[:40]!r}" if isinstance(value, str) else f"{kind} {text[:40]}"
    return kind


def _flag(value: object) -> Reading:
    if isinstance(value, bool):
        return value, "", ""
    if isinstance(value, int) and value in (0, 1):
        return bool(value), "", ""
    return None, "type", f"expected true or false, found {found(value)}"


def _number(parameter: Parameter, value: object) -> Reading:
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted = "a whole number" if parameter.kind == "int" else "a number"
        return None, "type", f"expected {wanted}, found {found(value)}"
    if isinstance(value, float) and not math.isfinite(value):
        return None, "type", "expected a finite number"
    if parameter.kind == "int" and isinstance(value, float):
        if value != int(value):
            return None, "type", f"expected a whole number, found {found(value)}"
        value = int(value)
    if not parameter.low <= value <= parameter.high:
        return None, "range", f"expected {_plain(parameter.low)} to {_plain(parameter.high)}, found {found(value)}"
    return value, "", ""


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _text(parameter: Parameter, value: object) -> Reading:
    if not isinstance(value, str):
        return None, "type", f"expected a text, found {found(value)}"
    if parameter.required and not value.strip():
        return None, "required", "must not be empty"
    if parameter.length and len(value) > parameter.length:
        where = f" of the column {parameter.column}" if parameter.column else ""
        return None, "length", f"{len(value)} characters, the limit{where} is {parameter.length}"
    if parameter.choices and value not in parameter.choices:
        return None, "choice", f"expected one of {', '.join(parameter.choices)}; found {found(value)}"
    if parameter.pattern and value and not re.fullmatch(parameter.pattern, value):
        return None, "format", f"{found(value)} does not have the form {parameter.pattern}"
    return value, "", ""


def _texts(parameter: Parameter, value: object) -> Reading:
    """A list of texts; `names` may also come as one text with commas."""
    if isinstance(value, str) and parameter.kind == "names":
        value = value.split(",")
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        wanted = "a list of names or one text with commas" if parameter.kind == "names" else "a list of texts"
        return None, "type", f"expected {wanted}, found {found(value)}"
    return tuple(dict.fromkeys(v.strip() for v in value if v.strip())), "", ""


def _counts(value: object) -> Reading:
    """A list of whole numbers from 1 on, also as one number or as text with commas."""
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    texts = [str(part).strip() for part in listed]
    if (
        isinstance(value, bool)
        or any(isinstance(part, bool) for part in listed)
        or not texts
        or len(texts) > MOST_FIELDS
        or not all(map(_is_count, texts))
    ):
        return None, "type", f"expected whole numbers from 1 to {MOST_FIELDS}, as a list or with commas, found {found(value)}"
    return tuple(map(int, texts)), "", ""


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MOST_FIELDS
