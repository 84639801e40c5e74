"""Which leaf of the share tree a task belongs to (facts on shares 6.1, tagging; row J2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from workqueues.rules.share_patterns import LONGEST, pattern_fault

UNDEFINED = "Undefined"
"""The share of a task that no leaf takes."""

BLANK = frozenset({"working_group"})
"""Attributes of which a task that has none has an empty one; others are not compared then."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf: attribute of tasks -> regular expression that must match its beginning. No expression matches everything."""

    name: str
    patterns: tuple[tuple[str, str], ...] = ()


def leaf_of(leaves: Sequence[Leaf], task: Mapping[str, Any]) -> str:
    """The first leaf that takes a task, by its columns; UNDEFINED where none does."""
    return next((leaf.name for leaf in leaves if _takes(leaf, task)), UNDEFINED)


def _takes(leaf: Leaf, task: Mapping[str, Any]) -> bool:
    for attribute, pattern in leaf.patterns:
        have = (task.get(attribute) or "")[:LONGEST]
        if (have or attribute in BLANK) and not _matches(pattern, have):
            return False
    return True


def _matches(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is not None and compiled.match(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The expression; None for one that may not be used (`pattern_fault`), which matches nothing."""
    return None if pattern_fault(pattern) else re.compile(pattern)
