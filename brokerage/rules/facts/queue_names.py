"""How a task names queues: comma lists and lists of names of queues, unified queues or sites, with `*` for any text.

Practice also takes regular expressions in `site`; those are not taken here, as the text comes from users and is matched on every
cycle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues

AUTO = "AUTO"
"""In includedSite: others are taken where none of the named ones is left."""


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in a comma list, blanks around them dropped."""
    return tuple(name for part in (text or "").split(",") if (name := part.strip()))


def named(queues: Queues, names: Iterable[str]) -> Flags:
    """Which queues the names mean: by their own name, that of their unified queue, or that of their site."""
    wanted = _resolved(queues, names)
    if not wanted:
        return np.zeros(len(queues), dtype=np.bool_)
    listed = np.array(sorted(wanted))
    return np.isin(queues.name, listed) | np.isin(queues.unified_name, listed) | np.isin(queues.site, listed)


def included_names(ask: Ask) -> tuple[str, ...]:
    """The names in includedSite without AUTO, which names no queue."""
    return tuple(name for name in ask.included_sites if name != AUTO)


def left_by_lists(ask: Ask, queues: Queues) -> Flags:
    """Which queues excludedSite and includedSite of a task leave, while AUTO opens no others."""
    included = included_names(ask)
    inside = named(queues, included) if included else np.ones(len(queues), dtype=np.bool_)
    return inside & ~named(queues, ask.excluded_sites)


def site_text(site: str, meant: Flags) -> str:
    """What a task names, as it is told; `meant`: the queues that this means."""
    return site if meant.any() else f"{site}, and no queue here is called so"


def near(queues: Queues, names: Iterable[str]) -> Flags:
    """The queues that the names mean, and those that share their output storage."""
    meant = named(queues, names)
    storages = np.unique(queues.storage[meant])
    return meant | np.isin(queues.storage, storages[storages != ""])


def _resolved(queues: Queues, names: Iterable[str]) -> set[str]:
    wanted: set[str] = set()
    for name in names:
        if "*" not in name:
            wanted.add(name)
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in re.split(r"\*+", name)))
        wanted.update(candidate for candidate in queues.distinct_names if pattern.fullmatch(candidate))
    return wanted - {""}
