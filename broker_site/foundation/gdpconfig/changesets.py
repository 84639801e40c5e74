"""What somebody wants to change, as a draft: lines of before and after, with author, reason and source. Pure: no Django.

A line says its kind; the writer (`store`) asks the kind's `LineKind` what the line means. Kinds: `config`, an override of a key
(`override_lines`). Apps whose tables are steered in the same way declare kinds of their own (`line_kinds`, `row_lines`):
the text of such a line is a JSON object with all columns of the row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from broker_site.foundation.gdpconfig.keys import APP
from broker_site.foundation.kernel.verdict import Problem

Source = Literal["page", "rest", "admin", "import", "command", "expiry"]
SOURCES: tuple[str, ...] = get_args(Source)
CONFIG = "config"
"""The kind of a line that sets or removes an override of a configuration key."""
MOST_LINES = 1000
MAX_WHY, MAX_WHO, MAX_TICKET = 2000, 150, 100


class Place(NamedTuple):
    """What a line is about."""

    kind: str
    app: str
    component: str
    name: str
    vo: str

    @property
    def key(self) -> str:
        """The key as it is written; of a row its kind and name."""
        if self.kind != CONFIG:
            return f"{words_of_kind(self.kind)} {self.name}"
        return f"{self.component}.{self.name}" if self.app == APP else f"{self.app}:{self.component}.{self.name}"

    def __str__(self) -> str:
        return f"{self.key} for {self.vo}" if self.vo else self.key


def words_of_kind(kind: str) -> str:
    """`work_queue` as people read it."""
    return kind.replace("_", " ")


def split_key(key: str) -> tuple[str, str, str]:
    """App, component and name of a key as it is written: `jobbroker.NQUEUELIMITSITE`, `pandaserver:watcher.X` for another app."""
    front, _, name = key.strip().partition(".")
    app, _, component = front.rpartition(":")
    return (app or APP, component, name) if name else (APP, "", front)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing to change. `value`: what shall stand; ignored with `remove`. `until`: when it ends, None = it stays.

    Where the author says what was there, the line is refused if that is no longer so: `before`, the text that stood (None:
    nothing) where `says_before`; `seen`, the revision that wrote it (0: nothing stood).
    """

    component: str
    name: str
    value: object = None
    remove: bool = False
    vo: str = ""
    app: str = APP
    until: datetime | None = None
    kind: str = CONFIG
    says_before: bool = False
    before: str | None = None
    seen: int | None = None

    @property
    def place(self) -> Place:
        return Place(self.kind, self.app, self.component, self.name, self.vo)


def named_line(
    kind: str,
    key: str,
    vo: str,
    value: object = None,
    *,
    remove: bool = False,
    until: datetime | None = None,
    says_before: bool = False,
    before: str | None = None,
) -> Line:
    """A line by the key as it is written, or by the name of a row."""
    app, component, name = split_key(key) if kind == CONFIG else (APP, kind, key.strip())
    return Line(component, name, value, remove, vo, app, until, kind, says_before, before)


@dataclass(frozen=True, slots=True)
class Draft:
    """Lines that are applied together or not at all.

    base: the revision that the author looked at; a line whose place was changed since is refused. None = not said.
    reverts: the revision of the set that this one takes back.
    """

    lines: Sequence[Line]
    who: str
    why: str
    source: Source
    ticket: str = ""
    base: int | None = None
    reverts: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds at a place now, who wrote it with which revision, and until when."""

    text: str
    until: datetime | None
    revision: int
    who: str


@dataclass(frozen=True, slots=True)
class Step:
    """A line as it is applied: the texts before and after (None: nothing stands there) with their ends."""

    number: int
    place: Place
    before: str | None
    until_before: datetime | None
    after: str | None
    until: datetime | None

    @property
    def differs(self) -> bool:
        """Whether it changes anything."""
        return (self.before, self.until_before) != (self.after, self.until)


def columns_of(text: str | None) -> dict[str, Any]:
    """The columns of a row as the line of a set has them; none of a row that is not there."""
    read = json.loads(text) if text is not None else {}
    return read if isinstance(read, dict) else {}


def differences(before: str | None, after: str | None) -> list[tuple[str, Any, Any]]:
    """Column, what it was and what it is, of the texts of a row; None where there is no row or no such column."""
    old, new = columns_of(before), columns_of(after)
    return [(name, old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)]


def in_words(kind: str, before: str | None, after: str | None, most: int = 80) -> str:
    """What a line changes, short: of a row only the columns that differ."""
    arrow = "\N{RIGHTWARDS ARROW}"
    if kind == CONFIG:
        return f"{as_text(before, most)} {arrow} {as_text(after, most)}"
    if after is None:
        return "removed"
    changed = differences(before, after)
    if before is None:
        return "new: " + ", ".join(f"{name} {as_text(new, most)}" for name, _, new in changed if new not in ("", None, False))
    return ", ".join(f"{name} {as_text(old, most)} {arrow} {as_text(new, most)}" for name, old, new in changed)


def as_text(value: Any, most: int = 1_000) -> str:
    """The value of a column as people read it."""
    if value is None:
        return "none"
    said = value if isinstance(value, str) else json.dumps(value)
    return said[:most] or "empty"


def signature_problems(draft: Draft) -> Iterator[Problem]:
    """What is wrong with author, reason and ticket."""
    if not draft.who.strip() or len(draft.who) > MAX_WHO or "\x00" in draft.who:
        yield Problem("who", "required", f"the author of a change is needed (at most {MAX_WHO} characters)")
    if not draft.why.strip() or len(draft.why) > MAX_WHY or "\x00" in draft.why:
        yield Problem("why", "required", f"a change needs its reason (at most {MAX_WHY} characters)")
    if len(draft.ticket) > MAX_TICKET or (draft.ticket and not draft.ticket.isprintable()):
        yield Problem("ticket", "format", f"a ticket has at most {MAX_TICKET} printable characters")
