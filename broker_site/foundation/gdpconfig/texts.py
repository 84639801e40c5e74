"""How a value of each type is written: text to value and back, for every type that a configuration key can have.

Here: the grammar of the texts alone. Not here: ranges, choices and what a key means (`keys`).
For every type `read(write(value))` is the value again. A text that says no value raises `InvalidText`, never anything else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, DecimalException, localcontext
from types import MappingProxyType
from typing import Any, Final

MAX_TEXT: Final = 65_536
UNSET: Final = "unset"
MAX_DEPTH: Final = 32
INT_LOW: Final = -(2**63)
INT_HIGH: Final = 2**63 - 1

SECONDS: Final[Mapping[str, Decimal]] = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86_400),
    "w": Decimal(604_800),
}
BYTES: Final[Mapping[str, Decimal]] = {
    "B": Decimal(1),
    "kB": Decimal(10**3),
    "MB": Decimal(10**6),
    "GB": Decimal(10**9),
    "TB": Decimal(10**12),
    "PB": Decimal(10**15),
    "KiB": Decimal(2**10),
    "MiB": Decimal(2**20),
    "GiB": Decimal(2**30),
    "TiB": Decimal(2**40),
}
TRUE_WORDS: Final = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS: Final = frozenset({"false", "no", "off", "0"})

_INT = re.compile(r"[+-]?[0-9]{1,25}")
_NUMBER_TEXT = r"(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
_FLOAT = re.compile(rf"[+-]?{_NUMBER_TEXT}")
_MEASURE = re.compile(rf"({_NUMBER_TEXT})\s*([A-Za-z]+)\s*")


class InvalidText(ValueError):
    """A text or value that is none of its type; the message is a sentence without the name of the key."""


def plain(text: str) -> str:
    """`text` without blanks around it; InvalidText where it is too long or cannot be stored as UTF-8 text."""
    if len(text) > MAX_TEXT:
        raise InvalidText(f"is longer than {MAX_TEXT} characters")
    if "\x00" in text:
        raise InvalidText("holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidText("is not valid Unicode text") from None
    return text.strip()


def frozen(value: object, depth: int = 0) -> Any:
    """A JSON value with read-only objects and tuples for lists, so that one copy can serve all; InvalidText for anything else."""
    if depth > MAX_DEPTH:
        raise InvalidText(f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return MappingProxyType({_member(name): frozen(item, depth + 1) for name, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(frozen(item, depth + 1) for item in value)
    if isinstance(value, str):
        plain(value)
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _accept_int(value) if isinstance(value, int) else _accept_float(value)
    raise InvalidText(f"holds {_said(value)}, which JSON cannot say")


def thawed(value: Any) -> Any:
    """A frozen JSON value as plain dictionaries and lists."""
    if isinstance(value, Mapping):
        return {name: thawed(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [thawed(item) for item in value]
    return value


def _member(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidText(f"has {_said(name)} as a member name")
    plain(name)
    return name


def _read_int(text: str) -> int:
    if not _INT.fullmatch(text):
        raise InvalidText(f"{_short(text)} is not a whole number")
    return _accept_int(int(text))


def _accept_int(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidText(f"{_said(value)} is not a whole number")
    if not INT_LOW <= value <= INT_HIGH:
        raise InvalidText("has a whole number that does not fit into 64 bits")
    return value


def _read_float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise InvalidText(f"{_short(text)} is not a number")
    return _accept_float(float(text))


def _accept_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidText(f"{_said(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidText("is not a finite number")
    return number


def _read_bool(text: str) -> bool:
    word = text.lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise InvalidText(f"{_short(text)} is neither true nor false")
    return word in TRUE_WORDS


def _accept_bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidText(f"{_said(value)} is neither true nor false")
    return value


def _accept_str(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidText(f"{_said(value)} is not a text")
    return plain(value)


def _measured(text: str, units: Mapping[str, Decimal], example: str) -> Decimal:
    """The sum of numbers with units such as `1h 30min`, in the base unit; the unit may be left out for 0 only."""
    if text == "0":
        return Decimal(0)
    position, total = 0, Decimal(0)
    while match := _MEASURE.match(text, position):
        number, unit = match.groups()
        if unit not in units:
            raise InvalidText(f"has the unknown unit {_short(unit)}; known are {', '.join(units)}")
        try:
            with localcontext() as context:
                context.prec = 120
                total += Decimal(number) * units[unit]
        except DecimalException:
            raise InvalidText(f"{_short(text)} is out of bounds") from None
        position = match.end()
    if position == 0 or position != len(text):
        bare = _FLOAT.fullmatch(text)
        raise InvalidText(
            f"{_short(text)} has no unit, write it as in {example}" if bare else f"{_short(text)} is not of the form {example}"
        )
    return total


def _read_duration(text: str) -> float:
    return _accept_duration(float(_measured(text, SECONDS, "90s, 0.5s, 20min, 1h 30min or 7d")))


def _accept_duration(value: object) -> float:
    seconds = _accept_float(value)
    if seconds < 0:
        raise InvalidText("is a negative time")
    return seconds + 0.0


def _write_duration(seconds: float) -> str:
    if seconds.is_integer() and seconds < 1e15:
        whole = int(seconds)
        unit = next((u for u in ("d", "h", "min") if whole and whole % int(SECONDS[u]) == 0), "s")
        return f"{whole // int(SECONDS[unit])}{unit}"
    thousandths = Decimal(repr(seconds)) * 1000
    if seconds < 1 and thousandths == thousandths.to_integral_value():
        return f"{int(thousandths)}ms"
    return f"{seconds!r}s"


def _read_size(text: str) -> int:
    exact = _measured(text, BYTES, "500MB, 1.5GB or 10TB")
    if exact != exact.to_integral_value():
        raise InvalidText(f"{_short(text)} is not a whole number of bytes")
    return _accept_size(int(exact))


def _accept_size(value: object) -> int:
    size = _accept_int(value)
    if size < 0:
        raise InvalidText("is a negative size")
    return size


def _write_size(size: int) -> str:
    unit = next((u for u in ("PB", "TB", "GB", "MB", "kB") if size and size % int(BYTES[u]) == 0), "B")
    return f"{size // int(BYTES[unit])}{unit}"


def _read_json(text: str) -> Any:
    try:
        return frozen(json.loads(text, parse_constant=_no_constant, parse_float=_read_float, object_pairs_hook=_once))
    except InvalidText:
        raise
    except json.JSONDecodeError as error:
        raise InvalidText(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise InvalidText(f"is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError:
        raise InvalidText("is not JSON: a number has too many digits") from None


def _no_constant(word: str) -> Any:
    raise InvalidText(f"is not JSON: {word} is no number")


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, item in pairs:
        if name in members:
            raise InvalidText(f"has the member {_short(name)} twice")
        members[name] = item
    return members


def _write_json(value: Any) -> str:
    return json.dumps(thawed(value), ensure_ascii=False, sort_keys=True)


def _read_list(text: str) -> tuple[str, ...]:
    if text.startswith("["):
        return _accept_list(_read_json(text))
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _accept_list(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidText("is not a list of texts")
    return tuple(frozen(list(value)))


def _write_list(items: tuple[str, ...]) -> str:
    text = ", ".join(items)
    return text if text != UNSET and text[:1] != "[" and _read_list(text) == items else json.dumps(items, ensure_ascii=False)


def _said(value: object) -> str:
    """A value as a message shows it; of what is no simple value only the type, since its text may be huge."""
    if isinstance(value, str):
        return _short(value)
    return str(value).lower() if value is None or isinstance(value, bool | float) else f"a value of type {type(value).__name__}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


@dataclass(frozen=True, slots=True)
class Kind:
    """One type: `read` takes a text, `accept` a Python value (seconds for durations, bytes for sizes), `write` makes the text."""

    parse: Callable[[str], Any]
    accept: Callable[[object], Any]
    write: Callable[[Any], str]
    form: str

    def read(self, text: str) -> Any:
        """The value that a text says, blanks around it left out; InvalidText where it says none."""
        return self.parse(plain(text))


KINDS: Final[Mapping[str, Kind]] = {
    "int": Kind(_read_int, _accept_int, str, "a whole number"),
    "float": Kind(_read_float, _accept_float, repr, "a number"),
    "bool": Kind(_read_bool, _accept_bool, lambda value: "true" if value else "false", "true or false"),
    "str": Kind(str, _accept_str, str, "a text"),
    "enum": Kind(str, _accept_str, str, "one of a few words"),
    "duration": Kind(_read_duration, _accept_duration, _write_duration, "a time with unit, such as 90s, 0.5s, 20min, 12h or 7d"),
    "size": Kind(_read_size, _accept_size, _write_size, "a size with unit, such as 500MB or 1.5GB"),
    "json": Kind(_read_json, frozen, _write_json, "JSON"),
    "list": Kind(_read_list, _accept_list, _write_list, "texts separated by commas, or a JSON list of texts"),
}
