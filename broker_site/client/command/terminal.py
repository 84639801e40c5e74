"""Text that is fit for a terminal. Pure.

What a server sends may hold anything that users typed: nothing of it may move the cursor, change colours or turn letters round.
"""

from __future__ import annotations

import shutil
import unicodedata
from datetime import datetime
from typing import Any

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Kinds of characters that are no letters: control, format (writing directions among them), halves, private, separators."""
BOLD, RED, GREEN, YELLOW, PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


def safe(text: object, keep: str = "") -> str:
    """The text with what is no letter written out, as \\x1b; `keep`: characters that may stay."""
    given = str(text)
    if given.isascii() and given.isprintable():
        return given
    return "".join(c if c in keep or unicodedata.category(c) not in _UNSAFE else _written(c) for c in given)


def _written(character: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character) or character.encode("unicode_escape").decode("ascii")


def cell(value: Any) -> str:
    """A value in one cell of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return safe(", ".join(f"{name} {cell(inner)}" for name, inner in value.items() if inner))
    if isinstance(value, list):
        return safe(", ".join(cell(inner) for inner in value))
    return safe(value)


def width(text: str) -> int:
    """Columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) or unicodedata.category(c) == "Me" else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, most: int) -> str:
    """The text in so many columns, with … where something is left out."""
    if width(text) <= most:
        return text
    taken, used = [], 0
    for character in text:
        used += width(character)
        if used > most - 1:
            break
        taken.append(character)
    return "".join(taken) + "…"


def moment(text: Any) -> str:
    """A time of the server in UTC, to the second; as it came where it is none."""
    try:
        at = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return safe(text)
    return f"{at:%Y-%m-%d %H:%M:%S}"


def span(seconds: float) -> str:
    """A time span in its two largest units."""
    whole = round(seconds)
    for size, unit, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // below} {small}"
    return f"{whole} s"


def count(n: Any, noun: str) -> str:
    """`1 core`, `2 cores`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def columns() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size().columns
