"""The words of filters, the same on pages, in JSON, CSV and REST.

`a,b` any of them; `!a` or `-a` not this one; `"a,b"` a text as it stands; `100..200`, `>5`, `<=5` numbers; `-2h` or `7d` so long
ago, `2026-11-27` a day, `2026-11-27T10:00` a minute, UTC. Numbers that may be negative know `!` alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

LONGEST = 256
"""Characters of one word."""
MOST_WORDS = 100
UNITS_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
LENGTHS = "a number with s, m, h, d or w, such as 2h or 7d"
TIMES = f"{LENGTHS} (so long ago), 2026-11-27, or 2026-11-27T10:00 (UTC)"
WILD = ("*", "?")
_OPERATORS = (">=", "<=", ">", "<")
_LENGTH = re.compile(r"([0-9]{1,6})(s|m|min|h|d|w)", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z?)?", re.ASCII)

Part = TypeVar("Part")
Value = TypeVar("Value")
Bounds = tuple[tuple[str, Value], ...]
"""What all hold of a value: names of comparisons (exact, gt, gte, lt, lte), each with what it is compared with."""


class Unreadable(ValueError):
    """A filter that says nothing. `rule`: form, length, range or number."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `quoted`: it stands for itself, whatever is in it."""

    text: str
    negated: bool = False
    quoted: bool = False

    @property
    def wild(self) -> bool:
        """Whether it stands for several texts."""
        return not self.quoted and any(sign in self.text for sign in WILD)


@dataclass(frozen=True, slots=True)
class Wanted(Generic[Part]):
    """Any of `any_of`, where there are some, and none of `none_of`."""

    any_of: tuple[Part, ...]
    none_of: tuple[Part, ...]


def quoted(text: str) -> str:
    """The text as a word that stands for itself."""
    plain = text and text == text.strip() and text[0] not in '!-"<>' and not any(sign in text for sign in (",", "..", *WILD))
    return text if plain else '"' + text.replace('"', '""') + '"'


def words(text: str, *, minus: bool = True) -> list[Word]:
    """The words of a filter, without blanks around them; `minus`: whether `-` says not. Raises Unreadable."""
    if any(not sign.isprintable() for sign in text):
        raise Unreadable("form", "holds a character that cannot be printed")
    found: list[Word] = []
    rest = text.strip()
    while rest:
        word, rest, more = _first(rest, minus)
        found.append(word)
        if more and not rest:
            raise Unreadable("form", "ends with a comma")
        if len(found) > MOST_WORDS:
            raise Unreadable("number", f"has more than {MOST_WORDS} words")
    return found


def _first(text: str, minus: bool) -> tuple[Word, str, bool]:
    """The first word, what follows, and whether a comma stood between."""
    negated = text.startswith("!") or (minus and text.startswith("-"))
    body = text[1:].lstrip() if negated else text
    if quoted := body.startswith('"'):
        end = body.find('"', 1)
        while end > 0 and body[end + 1 : end + 2] == '"':
            end = body.find('"', end + 2)
        if end < 0:
            raise Unreadable("form", 'has a " without another one')
        word, rest = body[1:end].replace('""', '"'), body[end + 1 :].lstrip()
        if rest and not rest.startswith(","):
            raise Unreadable("form", 'has something between a " and the next comma')
    else:
        word, comma, rest = body.partition(",")
        word, rest = word.rstrip(), comma + rest
    if not word:
        raise Unreadable("form", 'has an empty word; "a,b" in quotes is a text with a comma')
    if len(word) > LONGEST:
        raise Unreadable("length", f"has a word of more than {LONGEST} characters")
    return Word(word, negated, quoted), rest[1:].lstrip(), rest.startswith(",")


def texts(text: str) -> Wanted[Word]:
    """Names with wildcards. Raises Unreadable."""
    return _parted(words(text), lambda word: word)


def numbers(text: str, least: int, most: int) -> Wanted[Bounds[int]]:
    """Whole numbers and ranges of them. Raises Unreadable."""

    def read(said: str) -> tuple[int, int]:
        if not re.fullmatch(r"-?[0-9]{1,19}", said, re.ASCII):
            raise Unreadable("form", f"{said[:40]!r} is no whole number; ranges are 100..200, >5, <=5")
        if not least <= int(said) <= most:
            raise Unreadable("range", f"{said} is not between {least} and {most}")
        return int(said), int(said)

    return _parted(words(text, minus=least >= 0), lambda word: _bounds(word.text, read, alone="exact", ends="lte"))


def times(text: str, now: datetime) -> Wanted[Bounds[datetime]]:
    """Times and spans of them; a length alone stands for since then. Raises Unreadable."""

    def part(word: Word) -> Bounds[datetime]:
        since = _LENGTH.fullmatch(word.text.removeprefix("-")) is not None
        return _bounds(word.text, lambda said: _moment(said, now), alone="gte" if since else "exact", ends="lt")

    return _parted(words(text, minus=False), part)


def ages(text: str, now: datetime) -> Wanted[Bounds[datetime]]:
    """Ages, as the times at which something of this age began; a length alone stands for at most so old. Raises Unreadable."""
    turned = {"gt": "lt", "gte": "lte", "lt": "gt", "lte": "gte", "exact": "gte"}

    def read(said: str) -> tuple[float, float]:
        at = _ago(said.removeprefix("-"), now)
        if at is None:
            raise Unreadable("form", f"{said[:40]!r} is no age: {LENGTHS}")
        old_s = (now - at).total_seconds()
        return old_s, old_s

    def part(word: Word) -> Bounds[datetime]:
        bounds = _bounds(word.text, read, alone="exact", ends="lte")
        return tuple((turned[comparison], now - timedelta(seconds=old_s)) for comparison, old_s in bounds)

    return _parted(words(text, minus=False), part)


def _parted(found: Sequence[Word], part: Callable[[Word], Part]) -> Wanted[Part]:
    return Wanted(tuple(part(w) for w in found if not w.negated), tuple(part(w) for w in found if w.negated))


def _bounds(said: str, read: Callable[[str], tuple[Value, Value]], alone: str, ends: str) -> Bounds[Value]:
    """`read` gives the beginning and the end of a value; `ends`: how a value is compared with an end, lte or lt."""
    for operator in _OPERATORS:
        if said.startswith(operator):
            begin, end = read(said.removeprefix(operator).strip())
            point = begin == end
            after = "gt" if point else "gte"
            upto = "lte" if point else ends
            return {">=": (("gte", begin),), "<=": ((upto, end),), ">": ((after, end),), "<": (("lt", begin),)}[operator]
    low, dots, high = (piece.strip() for piece in said.partition(".."))
    if not dots:
        begin, end = read(said)
        return ((alone, begin),) if begin == end else (("gte", begin), (ends, end))
    if not low and not high:
        raise Unreadable("form", "a range has at least one end: 100..200, 100.., ..200")
    bounds: list[tuple[str, Value]] = []
    if low:
        bounds.append(("gte", read(low)[0]))
    if high:
        begin, end = read(high)
        bounds.append(("lte" if begin == end else ends, end))
    if low and high and not _in_order(bounds[0][1], bounds[1][1]):
        raise Unreadable("range", f"{said[:80]!r} ends before it begins")
    return tuple(bounds)


def _in_order(low: object, high: object) -> bool:
    return bool(low <= high)  # type: ignore[operator]  # two numbers, or two times


def _moment(said: str, now: datetime) -> tuple[datetime, datetime]:
    """Beginning and end of a day, a minute or a second; of a time so long ago, twice itself."""
    if (at := _ago(said.removeprefix("-"), now)) is not None:
        return at, at
    if not _MOMENT.fullmatch(said):
        raise Unreadable("form", f"{said[:40]!r} is no time: {TIMES}")
    try:
        begin = datetime.fromisoformat(said.removesuffix("Z")).replace(tzinfo=UTC)
        return begin, begin + {10: timedelta(days=1), 16: timedelta(minutes=1)}.get(
            len(said.removesuffix("Z")), timedelta(seconds=1)
        )
    except (ValueError, OverflowError):
        raise Unreadable("range", f"{said[:40]!r} is a time that there is not") from None


def _ago(said: str, now: datetime) -> datetime | None:
    """So long before now; None where it is no length."""
    match = _LENGTH.fullmatch(said)
    if match is None:
        return None
    try:
        return now - timedelta(seconds=int(match[1]) * UNITS_S[match[2]])
    except OverflowError:
        raise Unreadable("range", f"{said[:40]!r} is longer than there is time") from None
