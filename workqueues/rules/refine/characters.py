"""What no value of a task may hold, wherever it stands: characters and numbers that the store cannot keep, endless nesting."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.task_parameters import find

DEEPEST = 20
"""Levels of lists and objects below the task itself."""

_MOST = 50

KEY_PART = "prodSourceLabel"
"""It stands in names of configuration keys."""

_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Unicode's categories of characters that end a line, move a terminal's cursor, or change how others are shown."""
_NAME = re.compile(r"[^.\[]*")


def check_characters(params: Mapping[str, object]) -> list[Problem]:
    """A problem for each place with a NUL, half a surrogate pair, an infinite or huge number, or too deep a nesting, and for a
    character that is not seen in a name or label; 50 at most.
    """
    problems: list[Problem] = []
    for path, rule, message in _walk(params):
        problems.append(problem(path, rule, message))
        if len(problems) == _MOST:
            break
    return problems


def _walk(params: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    waiting: list[tuple[str, int, object]] = [("", 0, params)]
    while waiting:
        path, depth, value = waiting.pop()
        if isinstance(value, str):
            if wrong := _text(value) or _line(path, value):
                yield path, "characters", wrong
        elif isinstance(value, float) and not math.isfinite(value):
            yield path, "range", "expected a finite number"
        elif isinstance(value, int) and abs(value) > 10**18:
            yield path, "range", "a number of more than 18 digits"
        elif isinstance(value, Mapping | list | tuple):
            if depth > DEEPEST:
                yield path, "depth", f"nested deeper than {DEEPEST} levels"
                continue
            waiting += reversed(list(_inside(path, depth + 1, value)))
            if isinstance(value, Mapping):
                if _text(names := "".join(map(str, value))):
                    yield path, "characters", "a name holds a character that cannot be stored"
                elif wrong := _line(path, names):
                    yield path, "characters", f"a name {wrong}"


def _inside(
    path: str, depth: int, value: Mapping[object, object] | list[object] | tuple[object, ...]
) -> Iterator[tuple[str, int, object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield (f"{path}.{str(key)[:60]}" if path else str(key)[:60]), depth, inner
    else:
        for i, inner in enumerate(value):
            yield f"{path}[{i}]", depth, inner


def _text(text: str) -> str:
    if "\0" in text:
        return "holds a NUL character"
    if any("\ud800" <= c <= "\udfff" for c in text) if not text.isascii() else False:
        return "holds half of a surrogate pair"
    return ""


def _line(path: str, text: str) -> str:
    """Names, labels and words that jobs require of a resource stand in lists, logs and CSV: on one line, as they are."""
    known = find(_NAME.match(path)[0])  # type: ignore[index]  # an empty name matches too
    if known is not None and known.lines is False:
        for character in text if not (text.isascii() and text.isprintable()) else "":
            if unicodedata.category(character) in _UNSEEN:
                return f"holds a line break or another character that is not seen, U+{ord(character):04X}"
    if path == KEY_PART and text and not (text == text.strip() and text.isprintable()):
        return "begins or ends with a blank, or holds a character that cannot be seen"
    return ""
