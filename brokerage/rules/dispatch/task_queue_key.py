"""What jobs must have in common to wait in one task queue, in a form that a database can hold unique (row D1; seed 002).

Attributes with one value stand as they are, those with several in one digest. Order, repetitions and blanks do not count, as a
requirement holds sets; a set without values is the same as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable

from brokerage.rules.dispatch.requirement import SETS, Requirement

SINGLE = tuple(name for name in Requirement._fields if name not in SETS)
"""Attributes of a requirement with one value."""

PLACES = frozenset({"queue", "queues", "sites", "banned_sites", "stations"})
"""Attributes that say only where jobs may run."""


def digest(need: Requirement) -> str:
    """64 hexadecimal digits for the attributes with several values, the same on every machine; empty where none has a value.

    A set that comes to be known later changes no digest of requirements that leave it empty.
    """
    filled = [[name, sorted(values)] for name in sorted(SETS) if (values := getattr(need, name))]
    if not filled:
        return ""
    return hashlib.sha256(json.dumps(filled, separators=(",", ":")).encode()).hexdigest()


def key(need: Requirement) -> tuple[Hashable, ...]:
    """Equal for jobs that wait in one task queue, else different: the values of SINGLE in their order, and the digest.

    An oracle for conformance and tests; what is stored is the key of the ledger, of columns and the same digest.
    """
    return *(getattr(need, name) for name in SINGLE), digest(need)


def key_but_for_places(need: Requirement) -> tuple[Hashable, ...]:
    """Equal where only where jobs may run differs: such task queues have one priority together (facts on matching a7)."""
    return tuple(value for name, value in zip(need._fields, need, strict=True) if name not in PLACES)
