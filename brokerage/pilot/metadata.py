"""What the payload of some jobs tells the server: a small JSON object in a file of its working folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from brokerage.pilot.copying import open_regular
from brokerage.pilot.job import Failure

METADATA_LIMIT = 65_536
"""Bytes of the file."""


def read_metadata(folder: Path, name: str, owner: int | None = None) -> dict[str, Any]:
    """The object in the file; with `owner` only a file of this user. Raises Failure BAD_METADATA where there is none."""
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
    return document
