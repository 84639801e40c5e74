"""A conformance case, how files of them are read, and how an answer is compared with what a case expects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

SETS = frozenset({"queues", "partition", "candidates", "sites", "possible_sites", "failed_criteria", "disable"})
"""Keys of `expect` under which a list stands for a set: order and duplicates do not count."""

RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""Tolerances of numbers."""


class BadCases(ValueError):
    """A file that holds no conformance cases; the message names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: what the function of `family` is given, and which keys of its answer are expected to be what."""

    id: str
    family: str
    given: Mapping[str, Any]
    expect: Mapping[str, Any]


def read_cases(path: Path) -> list[Case]:
    """The cases of one file, in its order. Raises BadCases."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadCases(f"{path}: {error}") from error
    if not isinstance(rows, list):
        raise BadCases(f"{path}: expected a list of cases")
    cases = [_case(row, f"{path}, case {number}") for number, row in enumerate(rows, 1)]
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise BadCases(f"{path}: the id {case.id} stands twice")
        seen.add(case.id)
    return cases


def _case(row: Any, where: str) -> Case:
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("id", "family")):
        raise BadCases(f"{where}: an object with `id` and `family` is expected")
    if not all(isinstance(row.get(key), dict) for key in ("given", "expect")) or not row["expect"]:
        raise BadCases(f"{where} ({row['id']}): `given` and `expect` are objects, and `expect` is not empty")
    return Case(row["id"], row["family"], row["given"], row["expect"])


def differences(case: Case, answer: Mapping[str, Any]) -> list[str]:
    """What of the expected is otherwise in the answer, one sentence each; only keys of `expect` count."""
    tolerance = case.given.get("tolerance")
    sentences = []
    for key, wanted in case.expect.items():
        if key not in answer:
            sentences.append(f"{key}: no answer, expected {wanted!r}")
        elif not alike(wanted, answer[key], as_set=key in SETS, tolerance=tolerance):
            sentences.append(f"{key}: {answer[key]!r}, expected {wanted!r}")
    return sentences


def alike(wanted: Any, found: Any, *, as_set: bool = False, tolerance: float | None = None) -> bool:
    """Whether an answer is what was expected: numbers within the tolerance, objects without order, lists in order or as sets.

    `tolerance` is absolute and replaces the usual relative one.
    """
    if isinstance(wanted, bool) or isinstance(found, bool) or wanted is None or found is None:
        return wanted is found
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        if tolerance is not None:
            return abs(wanted - found) <= tolerance
        return isclose(wanted, found, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return wanted.keys() == found.keys() and all(alike(wanted[key], found[key], tolerance=tolerance) for key in wanted)
    if _listed(wanted) and _listed(found):
        if as_set:
            return bool(_unordered(wanted) == _unordered(found))
        return len(wanted) == len(found) and all(alike(a, b, tolerance=tolerance) for a, b in zip(wanted, found, strict=True))
    return bool(wanted == found)


def _listed(value: Any) -> bool:
    return isinstance(value, Sequence | set | frozenset) and not isinstance(value, str)


def _unordered(value: Any) -> Any:
    return frozenset(map(_unordered, value)) if _listed(value) else value
