"""What "broker anew" did, in words."""

from __future__ import annotations


def told(target: str, jobs: int, stay: int, why: str) -> str:
    """`jobs` were closed, `stay` wait where they are; `why` the first of them does."""
    said = f"{jobs} waiting job{'s' if jobs != 1 else ''} of {target} {'are' if jobs != 1 else 'is'} brokered anew"
    return f"{said}; {stay} stay{'s' if stay == 1 else ''}: {why}" if stay else f"{said}."
