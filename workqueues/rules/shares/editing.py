"""Whether a share tree may stand as somebody has edited it: names, parents, circles, values (decision C4).

Here: faults by share and column. Not here: what the tree then gives to each (`tree`), how rows are written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from broker_site.foundation.kernel.registry import nearest
from workqueues.rules.shares.mapping import UNDEFINED
from workqueues.rules.shares.patterns import pattern_fault
from workqueues.rules.shares.tree import LARGEST

DEEPEST = 20
"""Levels of a tree."""
LONGEST_NAME = 32
NO_ADDRESS = ("edit", ".", "..")
"""Names whose page could not be reached."""


@dataclass(frozen=True, slots=True)
class EditedShare:
    """One share as it would be. `parent`: empty at the top. `patterns`: column -> regular expression."""

    name: str
    vo: str
    parent: str
    value: float
    patterns: tuple[tuple[str, str], ...] = ()


class ShareFault(NamedTuple):
    """What is wrong, and at which share and column it is to be mended."""

    share: str
    column: str
    rule: str
    message: str


def name_fault(name: str) -> str:
    """What is wrong with the name of a new share; empty if nothing."""
    if name == UNDEFINED:
        return "the name of what no share takes"
    if name in NO_ADDRESS:
        return f"a share named {name} would have no page: its address is another one's"
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip() or "/" in name:
        return f"a name has 1 to {LONGEST_NAME} printable characters, no slash, and no blank at its ends"
    return ""


def tree_faults(shares: Sequence[EditedShare], touched: Collection[str], vos: Collection[str]) -> Iterator[ShareFault]:
    """Everything that keeps the trees from standing, at shares of `touched` where these have caused it.

    shares: all of all VOs, whose names are unique together. touched: those that were edited; others are not told again. vos: of
    the edited and of the removed ones.
    """
    known = {share.name: share for share in shares}
    for share in shares:
        if share.name in touched:
            yield from _own_faults(share, known)
    circles = [share.name for share in shares if share.name in touched and _in_circle(share, known)]
    for name in circles:
        yield ShareFault(name, "parent", "circle", "a share cannot be below itself")
    if not circles:
        yield from _too_deep(shares, known, touched)
    yield from _all_zero([share for share in shares if share.vo in vos], touched)


def orphans(removed: str, shares: Sequence[EditedShare]) -> list[str]:
    """The shares that stood below one that is removed and still do."""
    return [share.name for share in shares if share.parent == removed]


def _own_faults(share: EditedShare, known: Mapping[str, EditedShare]) -> Iterator[ShareFault]:
    if share.value < 0:
        yield ShareFault(share.name, "value", "tree", f"{share.name}: a share of {share.value:g} is negative")
    elif not share.value <= LARGEST:
        message = f"{share.name}: a share of {share.value:g} is more than {LARGEST:g}"
        yield ShareFault(share.name, "value", "tree", message)
    for column, pattern in share.patterns:
        if fault := pattern_fault(pattern):
            yield ShareFault(share.name, column, "pattern", fault)
    if not share.parent:
        return
    if (parent := known.get(share.parent)) is None:
        near = nearest(share.parent, [name for name, other in known.items() if other.vo == share.vo])
        hint = f"; did you mean {near}?" if near else ""
        yield ShareFault(share.name, "parent", "unknown", f"there is no share {share.parent[:40]}{hint}")
    elif parent.vo != share.vo:
        yield ShareFault(share.name, "parent", "vo", f"{parent.name} is a share of {parent.vo}")


def _in_circle(share: EditedShare, known: Mapping[str, EditedShare]) -> bool:
    seen: set[str] = set()
    name = share.parent
    while name and name not in seen:
        if name == share.name:
            return True
        seen.add(name)
        name = known[name].parent if name in known else ""
    return False


def _too_deep(shares: Sequence[EditedShare], known: Mapping[str, EditedShare], touched: Collection[str]) -> Iterator[ShareFault]:
    for share in shares:
        level, above, path = 1, share.parent, [share.name]
        while above in known and level <= DEEPEST:
            path.append(above)
            level, above = level + 1, known[above].parent
        if level > DEEPEST and any(name in touched for name in path):
            name = next(name for name in path if name in touched)
            yield ShareFault(name, "parent", "depth", f"a tree has at most {DEEPEST} levels")
            return


def _all_zero(shares: Sequence[EditedShare], touched: Collection[str]) -> Iterator[ShareFault]:
    levels: dict[tuple[str, str], list[EditedShare]] = defaultdict(list)
    for share in shares:
        levels[share.vo, share.parent].append(share)
    for (_, parent), siblings in levels.items():
        if not any(share.value for share in siblings):
            edited = next((share.name for share in siblings if share.name in touched), siblings[0].name)
            message = f"{parent or 'the root'}: all its shares are zero, so nothing could run below it"
            yield ShareFault(edited, "value", "tree", message)
