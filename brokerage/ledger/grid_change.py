"""What an import of the grid adds, changes or takes out of use: the line of a row that the operator is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

What = Literal["added", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class Change:
    """One row. `kind`: site, storage, queue, link, slots, measured or software; `fields`: column to (before, after)."""

    kind: str
    name: str
    what: What
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
