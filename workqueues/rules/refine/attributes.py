"""What an input item wishes of its datasets: its keys and the words of `attributes`, brought to the attribute text of the row.

Codes: facts on task parameters 3.3; they are read again by `rules.dataset_attributes`. Not here: which wishes a master may have
(`templates`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem

_FLAGS = {
    "repeat": "repeat",
    "nosplit": "nosplit",
    "manytime": "manytime",
    "cvmfs": "cvmfs",
    "reusable": "ru",
    "ru": "ru",
    "random": "rd",
    "rd": "rd",
    "usedup": "ud",
    "ud": "ud",
    "indexConsistent": "ic",
    "ic": "ic",
    "check": "cc",
    "cc": "cc",
    "pileup": "pu",
    "pu": "pu",
    "parentData": "pd",
    "pd": "pd",
}
_NUMBERS = {"ratio": "ratio", "eventRatio": "er", "er": "er", "nFilesPerJob": "np", "np": "np"}
_ORDER = ("repeat", "nosplit", "manytime", "cvmfs", "ru", "rd", "ud", "ic", "cc", "pu", "pd", "ratio", "er", "np")
_NAMES = {
    "ru": "reusable",
    "rd": "random",
    "ud": "usedup",
    "ic": "indexConsistent",
    "cc": "check",
    "pu": "pileup",
    "pd": "parentData",
    "er": "eventRatio",
    "np": "nFilesPerJob",
}
WISHES = (
    "ratio",
    "eventRatio",
    "nFilesPerJob",
    "random",
    "reusable",
    "usedup",
    "indexConsistent",
    "check",
    "pileup",
    "parentData",
)
"""Keys of an item that say the same as a word of `attributes`."""
OF_A_MASTER = ("manytime", "cvmfs", "rd", "ud", "ic", "cc")
"""What may be said of the datasets that jobs are cut from; the rest deals out the files of secondary ones."""


def input_attributes(path: str, values: Mapping[str, object]) -> tuple[str, list[Problem]]:
    """The attribute text that the keys of an input item give, and what is wrong with them."""
    wishes: dict[str, float] = {}
    problems: list[Problem] = []
    for field, name, value in (*_of_keys(path, values), *_words(path, values, problems)):
        code = _FLAGS.get(name) or _NUMBERS[name]
        if wishes.setdefault(code, value) != value:
            problems.append(problem(field, "contradiction", f"{shown(code)} is {_plain(wishes[code])} and {_plain(value)}"))
    if wishes.get("ratio") == 1:
        del wishes["ratio"]  # as without
    problems += _together(path, wishes)
    return ",".join(code if code in _FLAGS else f"{code}={_plain(wishes[code])}" for code in _ORDER if code in wishes), problems


def shown(code: str) -> str:
    return _NAMES.get(code, code)


def _of_keys(path: str, values: Mapping[str, object]) -> Iterator[tuple[str, str, float]]:
    for name in WISHES:
        value = values.get(name)
        if value:
            yield f"{path}.{name}", name, 1 if value is True else float(str(value))


def _words(path: str, values: Mapping[str, object], problems: list[Problem]) -> Iterator[tuple[str, str, float]]:
    """Name and value of each word of `attributes` that can be read."""
    field, text = f"{path}.attributes", values.get("attributes")
    if not isinstance(text, str):
        return
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = (part.strip() for part in word.partition("="))
        if name in _FLAGS and not equals:
            yield field, name, 1
        elif name in _NUMBERS:
            value = _number(number)
            if value is None:
                problems.append(problem(field, "type", f"{word[:40]!r}: expected {name}= and a number"))
            elif wrong := _wrong(_NUMBERS[name], value):
                problems.append(problem(field, "range", f"{name} {wrong}, found {number[:20]}"))
            else:
                yield field, name, value
        else:
            near = nearest(name, (*_FLAGS, *_NUMBERS))
            hint = f"; the nearest known one is {near}" if near else ""
            problems.append(problem(field, "unknown", f"unknown attribute {word[:40]!r}{hint}"))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _wrong(code: str, value: float) -> str:
    if code == "np":
        return "" if value == int(value) and 1 <= value <= 10_000 else "must be a whole number from 1 to 10000"
    return "" if 0 < value <= 10**6 else "must be above 0 and at most a million"


def _together(path: str, wishes: Mapping[str, float]) -> Iterator[Problem]:
    """How many files a job gets can be said in one way only."""
    said = [shown(code) for code in ("nosplit", "ratio", "er", "np") if code in wishes]
    if len(said) > 1:
        yield problem(f"{path}.{said[-1]}", "contradiction", f"{' and '.join(said)}: a job gets files in one way only")


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
