"""The tree of a criteria text, and whether a task meets it: SQL's logic of three values.

Not here: reading the text (`parse`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Value = str | int | float
Truth = bool | None
"""True, False, or None: not known, as something that was compared is not set."""

Task = Mapping[str, Any]
"""Attributes of a task by their names in lower case; None or absent = not set."""

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`attribute sign value`."""

    attribute: str
    sign: str
    value: Value


@dataclass(frozen=True, slots=True)
class Among:
    """`attribute IN (values)`."""

    attribute: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like:
    r"""`attribute LIKE pattern`: `%` any text, `_` any character, `\` before either of them or itself takes it as it is."""

    attribute: str
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """`attribute IS NULL`."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Not:
    """What is not known stays so."""

    inner: Expression


@dataclass(frozen=True, slots=True)
class Both:
    """`left AND right`."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Either:
    """`left OR right`."""

    left: Expression
    right: Expression


Predicate = Comparison | Among | Like | IsNull
Expression = Predicate | Not | Both | Either


def holds(expression: Expression | None, task: Task) -> bool:
    """Whether a task meets the criteria; no criteria take everything, and what is not known is not met."""
    return expression is None or truth(expression, task) is True


def truth(expression: Expression, task: Task) -> Truth:
    match expression:
        case Not(inner):
            known = truth(inner, task)
            return None if known is None else not known
        case Both(left, right):
            return _both(truth(left, task), truth(right, task))
        case Either(left, right):
            return _either(truth(left, task), truth(right, task))
        case IsNull(attribute):
            return task.get(attribute.lower()) is None
        case Comparison(attribute, sign, value):
            return _compared(task.get(attribute.lower()), sign, value)
        case Among(attribute, values):
            any_of: Truth = False
            for value in values:
                any_of = _either(any_of, _compared(task.get(attribute.lower()), "=", value))
            return any_of
        case Like(attribute, pattern):
            have = task.get(attribute.lower())
            return None if have is None else pattern_of(pattern).fullmatch(str(have)) is not None


def predicates(expression: Expression | None) -> Iterator[Predicate]:
    """What an expression is made of, in order, whatever joins and negates it; nothing for no criteria."""
    match expression:
        case Not(inner):
            yield from predicates(inner)
        case Both(left, right) | Either(left, right):
            yield from predicates(left)
            yield from predicates(right)
        case Comparison() | Among() | Like() | IsNull():
            yield expression


@lru_cache(maxsize=1024)
def pattern_of(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression over the whole text.

    What stands between two `%` is taken where it comes first and never looked for again: many `%` cost no more than one.
    """
    pieces = [""]
    for part in re.findall(r"\\[\\%_]|.", pattern, re.DOTALL):
        if part == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if part == "_" else re.escape(part[1:] if len(part) == 2 else part)
    first, *rest = pieces
    between = "".join(f"(?>.*?{piece})" for piece in rest[:-1])
    return re.compile(first + between + "".join(f".*{piece}" for piece in rest[-1:]), re.DOTALL)


def _both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return True if left and right else None


def _either(left: Truth, right: Truth) -> Truth:
    if left or right:
        return True
    return False if left is False and right is False else None


def _compared(have: Any, sign: str, value: Value) -> Truth:
    """A number is compared as a number, also with a text that is one; with another text it cannot be compared."""
    if have is None:
        return None
    if isinstance(have, int | float):
        number = as_number(value)
        return None if number is None else COMPARE[sign](have, number)
    return COMPARE[sign](str(have), str(value))


def as_number(value: Value) -> float | None:
    """The number that a value is, None for other texts."""
    try:
        return float(value)
    except ValueError:
        return None
