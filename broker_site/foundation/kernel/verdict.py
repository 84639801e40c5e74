"""What a rule answers: go ahead, or not now, or never, with the numbers that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["persistent", "temporary"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with what somebody sent: which field, which rule, in words."""

    field: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a candidate was not taken: the criterion's label, whether it can pass by waiting, and the numbers compared."""

    criterion: str
    kind: Kind
    reason: str
    numbers: Mapping[str, object] = field(default_factory=dict)
