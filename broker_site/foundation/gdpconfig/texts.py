"""How a value of each type is written: text to value and back, for every type that a configuration key can have.

Here: the grammar of the texts, and pydantic's types of the values. Not here: ranges, choices and what a key means (`keys`).
For every type `read(write(value))` is the value again. A text that says no value raises `InvalidText`, never anything else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException, localcontext
from types import MappingProxyType
from typing import Annotated, Any, Final, cast

from pydantic import AfterValidator, Field, PlainValidator, Strict

from broker_site.foundation.outside_data import OutsideDataError, Whole, found, read

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
    if isinstance(value, int):
        return _fits(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidText("is not a finite number")
        return value
    raise InvalidText(f"holds {found(value)}, which JSON cannot say")


def thawed(value: Any) -> Any:
    """A frozen JSON value as plain dictionaries and lists."""
    if isinstance(value, Mapping):
        return {name: thawed(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [thawed(item) for item in value]
    return value


def _member(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidText(f"has {found(name)} as a member name")
    plain(name)
    return name


def _fits(number: int) -> int:
    if not INT_LOW <= number <= INT_HIGH:
        raise InvalidText("has a whole number that does not fit into 64 bits")
    return number


def _read_int(text: str) -> int:
    if not _INT.fullmatch(text):
        raise InvalidText(f"{_short(text)} is not a whole number")
    return int(text)


def _read_float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise InvalidText(f"{_short(text)} is not a number")
    return float(text)


def _read_bool(text: str) -> bool:
    word = text.lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise InvalidText(f"{_short(text)} is neither true nor false")
    return word in TRUE_WORDS


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
    return float(_measured(text, SECONDS, "90s, 0.5s, 20min, 1h 30min or 7d"))


def duration_text(seconds: float) -> str:
    """Seconds as the configuration writes them: 90s, 20min, 7d."""
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
    return int(exact)


def _write_size(size: int) -> str:
    unit = next((u for u in ("PB", "TB", "GB", "MB", "kB") if size and size % int(BYTES[u]) == 0), "B")
    return f"{size // int(BYTES[unit])}{unit}"


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
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


def _read_list(text: str) -> Sequence[Any]:
    if text.startswith("["):
        return cast("list[Any]", _read_json(text))
    return [item.strip() for item in text.split(",")] if text else []


def _write_list(items: tuple[str, ...]) -> str:
    text = ", ".join(items)
    return text if text != UNSET and text[:1] != "[" and _read_list(text) == [*items] else json.dumps(items, ensure_ascii=False)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


@dataclass(frozen=True, slots=True)
class Kind:
    """One type of value: as pydantic knows it (seconds for durations, bytes for sizes), from a text, and as a text."""

    type: Any
    parse: Callable[[str], Any]
    write: Callable[[Any], str]
    form: str

    def read(self, text: str) -> Any:
        """The value that a text says, blanks around it left out; InvalidText where it says none."""
        return self.accept(self.parse(plain(text)))

    def accept(self, value: object) -> Any:
        """A Python or JSON value as one of this type; InvalidText where it is none."""
        try:
            return read(self.type, value)
        except OutsideDataError as refused:
            raise InvalidText(refused.problems[0].message) from None


Int = Annotated[Whole, AfterValidator(_fits)]
Float = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Text = Annotated[str, AfterValidator(plain)]
NONE_BELOW = Field(ge=0)

KINDS: Final[Mapping[str, Kind]] = {
    "int": Kind(Int, _read_int, str, "a whole number"),
    "float": Kind(Float, _read_float, repr, "a number"),
    "bool": Kind(Annotated[bool, Strict()], _read_bool, lambda value: "true" if value else "false", "true or false"),
    "str": Kind(Text, str, str, "a text"),
    "enum": Kind(Text, str, str, "one of a few words"),
    "duration": Kind(
        Annotated[Float, NONE_BELOW], _read_duration, duration_text, "a time with unit, such as 90s, 0.5s, 20min, 12h or 7d"
    ),
    "size": Kind(Annotated[Int, NONE_BELOW], _read_size, _write_size, "a size with unit, such as 500MB or 1.5GB"),
    "json": Kind(Annotated[Any, PlainValidator(frozen)], _read_json, _write_json, "JSON"),
    "list": Kind(
        Annotated[tuple[str, ...], AfterValidator(frozen)],
        _read_list,
        _write_list,
        "texts separated by commas, or a JSON list of texts",
    ),
}
