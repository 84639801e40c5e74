"""Which work has a share at a queue: the language of `fairsharepolicy` (facts on the brokerage 2.4; decision B11).

A comma list of `field=value[:field=value]:share`. The first entry whose fields all match decides; a share of 0 refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

BUILT_IN_GROUPS = {"evgensimul": ("evgen", "simul")}
"""Groups that a policy may name for several processing groups."""

_ZERO = re.compile(r"0+(\.0*)?\s*%?")
_COMPARISON = re.compile(r"priority\s*(<=|>=|<|>|=)\s*(-?\d+)")


class Work(NamedTuple):
    """What a policy can ask of a task; None = not set."""

    processing_group: str
    working_group: str | None = None
    share: str | None = None
    priority: int = 0
    merge: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: pairs of field and value, comparisons of the priority, and whether its share is zero."""

    fields: tuple[tuple[str, str], ...]
    priorities: tuple[tuple[str, int], ...]
    zero: bool


def accepts(policy: str, work: Work) -> bool:
    """Whether a queue with this policy has a share for the work. No policy, and the processing group `test`: yes."""
    entries = parsed(policy)
    if not entries or work.processing_group == "test":
        return True
    for entry in entries:
        if _matches(entry, work):
            return not entry.zero
    return all(entry.zero for entry in entries)


def group_of(processing_type: str, groups: Mapping[str, Sequence[str]]) -> str:
    """The processing group of a type: the one whose list has it, else the type itself."""
    return next((group for group, types in groups.items() if processing_type in types), processing_type)


@lru_cache(maxsize=4096)
def parsed(policy: str) -> tuple[Entry, ...]:
    """The entries of a policy, in order."""
    return tuple(_entry(text.strip()) for text in policy.split(",") if text.strip())


def _entry(text: str) -> Entry:
    *conditions, share = text.split(":") if ":" in text else (text, "100")
    fields, priorities = [], []
    for condition in conditions:
        if compared := _COMPARISON.fullmatch(condition.strip()):
            priorities.append((compared[1], int(compared[2])))
        else:
            name, _, value = condition.partition("=")
            fields.append((name.strip(), value.strip()))
    return Entry(tuple(fields), tuple(priorities), _ZERO.fullmatch(share.strip()) is not None)


def _matches(entry: Entry, work: Work) -> bool:
    found = {"type": work.processing_group, "group": work.working_group, "gshare": work.share}
    if not all(_fits(wanted, found.get(name)) for name, wanted in entry.fields):
        return False
    return work.merge or all(_compare(sign, work.priority, limit) for sign, limit in entry.priorities)


def _fits(wanted: str, found: str | None) -> bool:
    if wanted in ("any", "*"):
        return True
    if found is None:
        return False
    names = BUILT_IN_GROUPS.get(wanted, (wanted,))
    return any(re.fullmatch(".*".join(map(re.escape, re.split(r"\*+", name))), found) for name in names)


def _compare(sign: str, priority: int, limit: int) -> bool:
    return {
        "<": priority < limit,
        "<=": priority <= limit,
        ">": priority > limit,
        ">=": priority >= limit,
        "=": priority == limit,
    }[sign]
