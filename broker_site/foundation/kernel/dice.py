"""Seeded random numbers for decisions: the same seed gives the same decision, on any machine and Python."""

from __future__ import annotations

import hashlib
from random import Random


def dice(*seed: object) -> Random:
    """A generator seeded by the given parts (say task id and decision number); equal parts give equal sequences."""
    digest = hashlib.sha256("\x1f".join(map(str, seed)).encode()).digest()
    return Random(int.from_bytes(digest[:8], "big"))
