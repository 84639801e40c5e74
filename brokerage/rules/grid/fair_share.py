"""Which work has a share at a queue: the language of `fairsharepolicy` (facts 2.4; decisions B11, B23).

A comma list of `field=value[:field=value]:share`. The first entry whose fields all match decides; a share of 0 refuses. A value
is a name, `*` in it is any text, `(A|B)` one of several.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

BUILT_IN_GROUPS = {"evgensimul": "evgen|simul"}
"""Groups that a policy may name for several processing groups."""

TEXT_FIELDS = ("type", "group", "gshare")
_SHARE = re.compile(r"\d+(\.\d*)?\s*%?")
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
_COMPARISON = re.compile(r"priority\s*(<=|>=|<|>|=)\s*(-?\d+)")


class Work(NamedTuple):
    """What a policy can ask of a task; None = not set."""

    processing_group: str
    working_group: str | None = None
    share: str | None = None
    priority: int = 0
    merge: bool = False


@dataclass(frozen=True, slots=True)
class ShareEntry:
    """One entry of a policy: pairs of field and value, comparisons of the priority, and its share as it is written."""

    fields: tuple[tuple[str, str], ...]
    priorities: tuple[tuple[str, int], ...]
    share: str

    @property
    def zero(self) -> bool:
        """Whether the share is none."""
        return re.fullmatch(r"0+(\.0*)?\s*%?", self.share) is not None


def accepts(policy: str, work: Work) -> bool:
    """Whether a queue with this policy has a share for the work. No policy, and the processing group `test`: yes."""
    entries = parsed(policy)
    if not entries or work.processing_group == "test":
        return True
    for entry in entries:
        if _matches(entry, work):
            return not entry.zero
    return all(entry.zero for entry in entries)


def policy_fault(policy: str) -> str:
    """What cannot be read in a policy, in words; empty if nothing."""
    for entry in parsed(policy):
        if not _SHARE.fullmatch(entry.share):
            return f"{entry.share!r} is no share: a number, or a number and %"
        for name, value in entry.fields:
            if name not in TEXT_FIELDS:
                return f"{name!r} is none of {', '.join(TEXT_FIELDS)} with =, nor priority with <, <=, >, >= or = and a number"
            try:
                _pattern(value)
            except re.error:
                return f"the brackets in {value!r} do not close"
    return ""


@lru_cache(maxsize=4096)
def parsed(policy: str) -> tuple[ShareEntry, ...]:
    """The entries of a policy, in order."""
    return tuple(_entry(text.strip()) for text in policy.split(",") if text.strip())


def _entry(text: str) -> ShareEntry:
    *conditions, share = text.split(":") if ":" in text else (text, "100")
    fields, priorities = [], []
    for condition in conditions:
        if compared := _COMPARISON.fullmatch(condition.strip()):
            priorities.append((compared[1], int(compared[2])))
        else:
            name, _, value = condition.partition("=")
            fields.append((name.strip(), value.strip()))
    return ShareEntry(tuple(fields), tuple(priorities), share.strip())


def _matches(entry: ShareEntry, work: Work) -> bool:
    values = {"type": work.processing_group, "group": work.working_group, "gshare": work.share}
    if not all(_fits(wanted, values.get(name)) for name, wanted in entry.fields):
        return False
    return work.merge or all(_COMPARE[sign](work.priority, limit) for sign, limit in entry.priorities)


def _fits(wanted: str, value: str | None) -> bool:
    if wanted in ("any", "*"):
        return True
    try:
        return value is not None and _pattern(wanted).fullmatch(value) is not None
    except re.error:
        return False


@lru_cache(maxsize=4096)
def _pattern(wanted: str) -> re.Pattern[str]:
    """A value as a pattern; raises re.error where its brackets do not close."""
    parts = re.split(r"(\*+|[()|])", wanted)
    return re.compile(
        "".join(f"(?:{BUILT_IN_GROUPS[p]})" if p in BUILT_IN_GROUPS else _WORDS.get(p[:1]) or re.escape(p) for p in parts)
    )


_WORDS = {"*": ".*", "(": "(?:", ")": ")", "|": "|"}
"""What the signs of a value are in a pattern."""
