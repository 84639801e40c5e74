"""The columns of a steered row as lines of change sets have them: read from JSON or from what was typed, and written as one
canonical text. Pure: no Django.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem

SMALLEST, GREATEST = -32_768, 32_767
"""Of whole numbers."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `default` holds where a line leaves it out, unless it is `required`. `longest`: characters of a text.

    An `optional` number may be null, which an empty text means too.
    """

    name: str
    type: Literal["text", "number", "integer", "flag"]
    default: Any = None
    required: bool = False
    optional: bool = False
    longest: int = 256


def canonical(columns: Sequence[Column], value: object) -> str:
    """The text of a row. BadConfig with every fault by its column: unknown, missing, of the wrong type, too long."""
    said = _object(value)
    known = {column.name: column for column in columns}
    problems = [_unknown(name, known) for name in said if name not in known]
    read: dict[str, Any] = {}
    for column in columns:
        if column.name not in said:
            read[column.name] = column.default
            if column.required:
                problems.append(Problem(column.name, "required", f"{column.name} is needed"))
            continue
        try:
            read[column.name] = _READERS[column.type](column, said[column.name])
        except ValueError as bad:
            problems.append(Problem(column.name, "type", f"{column.name}: {bad}"))
    if problems:
        raise BadConfig(*problems)
    return written(read)


def written(values: Mapping[str, Any]) -> str:
    """Columns as the text of a line; whole numbers without a point."""
    plain = {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in values.items()}
    return json.dumps(plain, ensure_ascii=False)


def _object(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise BadConfig(Problem("value", "json", "the columns are to be a JSON object")) from None
    if not isinstance(value, dict):
        raise BadConfig(Problem("value", "type", "the columns are to be a JSON object"))
    return value


def _unknown(name: str, known: Mapping[str, Column]) -> Problem:
    near = nearest(name, known)
    hint = f"; did you mean {near}?" if near else f"; there are: {', '.join(known)}"
    return Problem(name[:40], "unknown", f"{name[:40]!r} is no column{hint}")


def _text(column: Column, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is expected")
    if len(value) > column.longest:
        raise ValueError(f"{len(value)} characters are more than the {column.longest} that it may have")
    if "\x00" in value or (not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value)):
        raise ValueError("it has characters that no text may have")
    return value


def _number(column: Column, value: object) -> float | None:
    if column.optional and value in (None, ""):
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    return number


def _integer(column: Column, value: object) -> int | None:
    number = _number(column, value)
    if number is None:
        return None
    if not number.is_integer() or not SMALLEST <= number <= GREATEST:
        raise ValueError(f"{str(value)[:40]!r} is no whole number from {SMALLEST} to {GREATEST}")
    return int(number)


def _flag(column: Column, value: object) -> bool:
    said = {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise ValueError("true or false is expected")
    return said


_READERS: Mapping[str, Callable[[Column, Any], Any]] = {"text": _text, "number": _number, "integer": _integer, "flag": _flag}
