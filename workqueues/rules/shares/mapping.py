"""Which leaf of the share tree a task belongs to (facts on shares 6.1, tagging; row J2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from workqueues.rules.shares.patterns import LONGEST, pattern_fault

UNDEFINED = "Undefined"
"""The share of a task that no leaf takes."""

BLANK = frozenset({"working_group"})
"""Attributes of which a task that has none has an empty one; others are not compared then."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf: attribute of tasks -> regular expression that must match its beginning. No expression matches everything."""

    name: str
    patterns: tuple[tuple[str, str], ...] = ()


class LeafTrial(NamedTuple):
    """One leaf that was looked at: the attribute that did not match, with expression and value; without one it takes the task."""

    leaf: str
    attribute: str = ""
    pattern: str = ""
    have: str = ""


def leaf_of(leaves: Sequence[Leaf], task: Mapping[str, Any]) -> str:
    """The first leaf that takes a task, by its columns; UNDEFINED where none does."""
    return next((each.leaf for each in trials(leaves, task) if not each.attribute), UNDEFINED)


def trials(leaves: Sequence[Leaf], task: Mapping[str, Any]) -> Iterator[LeafTrial]:
    """Every leaf that is looked at, in order, up to the one that takes the task."""
    for leaf in leaves:
        trial = next(_mismatches(leaf, task), LeafTrial(leaf.name))
        yield trial
        if not trial.attribute:
            return


def _mismatches(leaf: Leaf, task: Mapping[str, Any]) -> Iterator[LeafTrial]:
    for attribute, pattern in leaf.patterns:
        have = (task.get(attribute) or "")[:LONGEST]
        compiled = _compiled(pattern)
        if (have or attribute in BLANK) and not (compiled and compiled.match(have)):
            yield LeafTrial(leaf.name, attribute, pattern, have)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The expression; None for one that may not be used (`pattern_fault`), which matches nothing."""
    return None if pattern_fault(pattern) else re.compile(pattern)
