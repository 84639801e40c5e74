"""The bind variables of criteria: `p1:evgen,p2:simul` (seed 001, work queues)."""

from __future__ import annotations

import re
from collections.abc import Mapping


class BadVariables(ValueError):
    """A text that is no list of variables; the message says which entry and why."""


def read_variables(text: str | None) -> Mapping[str, str]:
    r"""Name -> value. Raises BadVariables. A comma in a value is written `\,`."""
    found: dict[str, str] = {}
    for entry in re.split(r"(?<!\\),", text or ""):
        if not entry.strip():
            continue
        name, colon, value = entry.partition(":")
        name = name.strip()
        if not colon or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise BadVariables(f"expected name:value, found {entry.strip()!r}")
        if name in found:
            raise BadVariables(f"{name} has two values")
        found[name] = value.strip().replace(r"\,", ",")
    return found
