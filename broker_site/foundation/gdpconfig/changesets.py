"""What somebody wants to change, as a draft: lines of before and after, with author, reason and source. Pure: no Django.

A line says its kind; the writer (`store`) asks the kind's `LineKind` what the line means. Kinds: `config`, an override of a key
(`override_lines`). Apps whose tables are steered in the same way declare kinds of their own with `declare_kind`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from broker_site.foundation.gdpconfig.keys import APP
from broker_site.foundation.kernel.registry import Registry
from broker_site.foundation.kernel.verdict import Problem

if TYPE_CHECKING:
    from broker_site.foundation.gdpconfig.models import Change

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
        """The key as it is written."""
        return f"{self.component}.{self.name}" if self.app == APP else f"{self.app}:{self.component}.{self.name}"

    def __str__(self) -> str:
        return f"{self.key} for {self.vo}" if self.vo else self.key


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


class LineKind(Protocol):
    """What the lines of one kind mean; called by `store` alone, in the transaction that applies them and under its lock."""

    def check(self, line: Line) -> str:
        """The text to store for a line that is no removal; BadConfig with every problem of place and value."""

    def standing(self, places: Sequence[Place]) -> Mapping[Place, Standing]:
        """What stands at these places, in a number of queries that does not grow with them; nothing where nothing stands."""

    def write(self, changes: Sequence[Change]) -> None:
        """Let what the lines say hold from the commit on, in a number of queries that does not grow with them."""


LINE_KINDS: Registry[LineKind] = Registry("kind of line")


def declare_kind(name: str, kind: LineKind) -> None:
    """Add a kind of line; ValueError if there is one of that name."""
    LINE_KINDS.add(name, kind)


def signature_problems(draft: Draft) -> Iterator[Problem]:
    """What is wrong with author, reason and ticket."""
    if not draft.who.strip() or len(draft.who) > MAX_WHO or "\x00" in draft.who:
        yield Problem("who", "required", f"the author of a change is needed (at most {MAX_WHO} characters)")
    if not draft.why.strip() or len(draft.why) > MAX_WHY or "\x00" in draft.why:
        yield Problem("why", "required", f"a change needs its reason (at most {MAX_WHY} characters)")
    if len(draft.ticket) > MAX_TICKET or (draft.ticket and not draft.ticket.isprintable()):
        yield Problem("ticket", "format", f"a ticket has at most {MAX_TICKET} printable characters")
