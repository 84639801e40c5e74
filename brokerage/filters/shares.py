"""Whether the work of a task has a share at a queue: the language of `fairsharepolicy` (facts 2.4; decision B11).

A comma list of `field=value[:field=value]:share`. The first entry whose fields all match decides; a share of 0 refuses.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues

NO_SHARE = "work of the group {group} has no share: {policy}"


@filter("zeroshare", NO_SHARE, keys=("PROCESSING_GROUPS",))
def zero_share(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """The queue's fairsharepolicy leaves the work of the task a share. Source: seed 000; facts 2.4; decision B11.

    Not for tests and validation, but for one that names its one queue.
    """
    return _zero_share(ask, queues, config)


@filter("zeroshare", NO_SHARE, keys=("PROCESSING_GROUPS",))
def zero_share_analysis(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """The same for analysis: not for a task that names its one queue. Source: facts on the brokerage 3.3."""
    accepted, numbers = _zero_share(ask, queues, config)
    return True if ask.bound_to_one else accepted, numbers


def _zero_share(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    kind = ask.processing_type
    group = next((group for group, types in config["PROCESSING_GROUPS"].items() if kind in types), kind)
    numbers = {"group": group, "policy": queues.fairsharepolicy}
    tests = (ask.share or "").lower() in ("test", "validation") or ask.prod_source_label in ("test", "validation")
    if tests and not (ask.bound_to_one and ask.prod_source_label != "managed"):
        return True, numbers
    work = Work(group, ask.working_group, ask.share, ask.priority, ask.merge)
    return queues.where_text("fairsharepolicy", work, lambda policy: accepts(policy, work)), numbers


BUILT_IN_GROUPS = {"evgensimul": ("evgen", "simul")}
"""Groups that a policy may name for several processing groups."""

_ZERO = re.compile(r"0+(\.0*)?\s*%?")
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
    """One entry of a policy: pairs of field and value, comparisons of the priority, and whether its share is zero."""

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
    return ShareEntry(tuple(fields), tuple(priorities), _ZERO.fullmatch(share.strip()) is not None)


def _matches(entry: ShareEntry, work: Work) -> bool:
    values = {"type": work.processing_group, "group": work.working_group, "gshare": work.share}
    if not all(_fits(wanted, values.get(name)) for name, wanted in entry.fields):
        return False
    return work.merge or all(_COMPARE[sign](work.priority, limit) for sign, limit in entry.priorities)


def _fits(wanted: str, value: str | None) -> bool:
    if wanted in ("any", "*"):
        return True
    if value is None:
        return False
    names = BUILT_IN_GROUPS.get(wanted, (wanted,))
    return any(re.fullmatch(".*".join(map(re.escape, re.split(r"\*+", name))), value) for name in names)
