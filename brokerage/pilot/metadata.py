"""What the payload of some jobs tells the server: a small JSON object in a file of its working folder."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

from brokerage.pilot.copying import open_regular
from brokerage.pilot.job import Failure

METADATA_LIMIT = 65_536
"""Bytes of the file."""
MOST_LEVELS, MOST_MEMBERS, LARGEST_INTEGER = 40, 10_000, 2**63 - 1
"""Lists and objects within one another, members of one, and size of a number: the server refuses a report that has more."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def read_metadata(folder: Path, name: str, owner: int | None = None) -> dict[str, Any]:
    """The object in the file; with `owner` only a file of this user. Raises Failure BAD_METADATA where there is none, or where a
    report with it would be refused, so that nobody would learn that the job has ended.
    """
    try:
        with os.fdopen(open_regular(folder / name, owner), "rb") as file:
            content = file.read(METADATA_LIMIT + 1)
    except FileNotFoundError:
        raise Failure("BAD_METADATA", f"{name} was not written") from None
    except OSError as problem:
        raise Failure("BAD_METADATA", f"{name}: {problem.strerror or 'is not a regular file of the working folder'}") from problem
    if len(content) > METADATA_LIMIT:
        raise Failure("BAD_METADATA", f"{name} has more than {METADATA_LIMIT} bytes")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise Failure("BAD_METADATA", f"{name} is not JSON: {problem}"[:300]) from problem
    if not isinstance(document, dict):
        raise Failure("BAD_METADATA", f"{name} is not a JSON object")
    if fault := _fault(document):
        raise Failure("BAD_METADATA", f"{name} has {fault}")
    return document


def _fault(document: dict[str, Any]) -> str:
    """Why a report with this would be refused; empty: it would not."""
    level: list[Any] = [document]
    for _ in range(MOST_LEVELS + 1):
        inner: list[Any] = []
        for value in level:
            if wrong := _unsendable(value):
                return wrong
            if isinstance(value, dict):
                inner += [*value, *value.values()]
            elif isinstance(value, list):
                inner += value
        if not inner:
            return ""
        level = inner
    return f"more than {MOST_LEVELS} levels"


def _unsendable(value: Any) -> str:
    """What is wrong with one value, whatever is in it."""
    if isinstance(value, str):
        return "a NUL character or half of a surrogate pair" if _UNSTORABLE.search(value) else ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else "a number that is not finite"
    if isinstance(value, int):
        return "" if -LARGEST_INTEGER <= value <= LARGEST_INTEGER else "an integer that does not fit into 64 bits"
    return f"a list or object with more than {MOST_MEMBERS} members" if value and len(value) > MOST_MEMBERS else ""
