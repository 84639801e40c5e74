"""A state machine written as a text table; everything else about states is derived from it.

Here: parsing, adjacency, the PostgreSQL guard trigger and the drawing. Not here: the tables themselves (`states` of each
app) and the code that moves rows (`ledger` of each app).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

NEW = "-"


class Names(tuple[str, ...]):
    """Different names in an order: states of a machine, or types of rows. `|`, `&` and `-` are those of sets, in the order of the
    left side.
    """

    __slots__ = ()

    def __new__(cls, names: str | Iterable[str] = ()) -> Self:
        return super().__new__(cls, dict.fromkeys(names.split() if isinstance(names, str) else names))

    def __or__(self, other: Iterable[str]) -> Names:
        return Names((*self, *other))

    def __and__(self, other: Iterable[str]) -> Names:
        kept = frozenset(other)
        return Names(name for name in self if name in kept)

    def __sub__(self, other: Iterable[str]) -> Names:
        dropped = frozenset(other)
        return Names(name for name in self if name not in dropped)

    @property
    def sql(self) -> str:
        """The names as SQL lists them: what stands between the brackets of `IN (...)`."""
        return ", ".join(f"'{name}'" for name in self)


class MachineError(ValueError):
    """The table of a machine is malformed; the message names the machine and the line."""


class NotAllowed(Exception):
    """A move that the table of the machine does not have."""

    def __init__(self, machine: str, old: str, new: str) -> None:
        super().__init__(f"{machine}: no move from {old!r} to {new!r}")
        self.machine, self.old, self.new = machine, old, new


@dataclass(frozen=True, slots=True)
class Transition:
    """One arrow: `event` takes the machine from `source` to `target`; source `-` is the insertion of a row."""

    event: str
    source: str
    target: str


class Machine:
    """States and arrows of one kind of row.

    `table` has one line per event and group of sources: `event | from ... | to ...`; `#` starts a comment. `final` names the
    states in which the work is over; where it is not given, the states that no arrow leaves are final. The sets of states that
    the code speaks of are attributes of a subclass, of type `Names`.
    """

    def __init__(self, name: str, table: str, final: str = "") -> None:
        self.name = name
        self.transitions = tuple(_parse(name, table))
        self.states = Names(s for t in self.transitions for s in (t.source, t.target) if s != NEW)
        self.initial = frozenset(t.target for t in self.transitions if t.source == NEW)
        self.final = frozenset(Names(final) or self.states - [t.source for t in self.transitions])
        self._pairs = frozenset((t.source, t.target) for t in self.transitions)
        for what, names in {"final": Names(self.final), **vars(type(self))}.items():
            if isinstance(names, Names) and (unknown := names - self.states):
                raise MachineError(f"{name}: {what} states {sorted(unknown)} are not in the table")
        if not self.initial:
            raise MachineError(f"{name}: no line with the source '{NEW}' says how a row begins")

    @cached_property
    def live(self) -> Names:
        """The states that are not final, in the order of the table."""
        return self.states - self.final

    def allows(self, old: str, new: str) -> bool:
        """Whether an arrow leads from `old` to `new`; staying where one is is not a move."""
        return (old, new) in self._pairs

    def check(self, old: str, new: str) -> None:
        """Raise NotAllowed unless the table has the arrow."""
        if not self.allows(old, new):
            raise NotAllowed(self.name, old, new)

    def sources(self, target: str) -> Names:
        """The states from which an arrow leads to `target`."""
        return Names(s for s in self.states if self.allows(s, target))

    def accepting(self, event: str) -> Names:
        """The states in which `event` can happen, in the order of the table."""
        return Names(t.source for t in self._arrows(event) if t.source != NEW)

    def outcomes(self, event: str) -> Names:
        """The states to which `event` can lead, in the order of the table."""
        return Names(t.target for t in self._arrows(event))

    def _arrows(self, event: str) -> list[Transition]:
        """Those of one event; MachineError for an event that the table does not have, lest a set of states be empty unseen."""
        if arrows := [t for t in self.transitions if t.event == event]:
            return arrows
        raise MachineError(f"{self.name}: there is no event {event!r}")

    def guard_sql(self, db_table: str, only: str = "TRUE") -> str:
        """SQL that (re)creates the triggers that refuse every insertion and move that the table does not have.

        `only` is a condition over NEW that says which rows of `db_table` this machine rules, where two machines share a table.
        The arrows stand in the function, whose plan a session keeps; a condition in WHEN is read anew by every statement, which
        costs as much as the call.
        """
        arrows = "".join(f"|{t.source}>{t.target}" for t in self.transitions if t.source != NEW)
        when = "" if only == "TRUE" else f" WHEN ({only} AND OLD.status IS DISTINCT FROM NEW.status)"
        return f"""
CREATE OR REPLACE FUNCTION {self.name}_refused() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
  IF TG_OP = 'UPDATE' AND (
    OLD.status = NEW.status OR strpos('{arrows}|', '|' || OLD.status || '>' || NEW.status || '|') > 0
  ) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION '{self.name}: no move from % to %', CASE TG_OP WHEN 'UPDATE' THEN OLD.status ELSE '{NEW}' END, NEW.status
    USING ERRCODE = 'check_violation', TABLE = '{db_table}', COLUMN = 'status';
END $guard$;
CREATE OR REPLACE TRIGGER {self.name}_guard BEFORE UPDATE OF status ON {db_table} FOR EACH ROW{when}
  EXECUTE FUNCTION {self.name}_refused();
CREATE OR REPLACE TRIGGER {self.name}_birth BEFORE INSERT ON {db_table} FOR EACH ROW
  WHEN ({only} AND (NEW.status IN ({(self.states & self.initial).sql})) IS NOT TRUE) EXECUTE FUNCTION {self.name}_refused();
"""

    def unguard_sql(self, db_table: str) -> str:
        return f"""
DROP TRIGGER IF EXISTS {self.name}_guard ON {db_table};
DROP TRIGGER IF EXISTS {self.name}_birth ON {db_table};
DROP FUNCTION IF EXISTS {self.name}_refused();
"""

    def drawing(self) -> str:
        arrows = [f"    {'[*]' if t.source == NEW else t.source} --> {t.target}: {t.event}" for t in self.transitions]
        ends = [f"    {s} --> [*]" for s in self.states if s in self.final]
        return "\n".join(["stateDiagram-v2", *arrows, *ends])


def _parse(name: str, table: str) -> Iterator[Transition]:
    seen: set[Transition] = set()
    for number, raw in enumerate(table.splitlines(), 1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 3 or not all(cells):
            raise MachineError(f"{name}, line {number}: expected 'event | from ... | to ...', found {line!r}")
        event, sources, targets = cells
        for source in sources.split():
            for target in targets.split():
                transition = Transition(event, source, target)
                if transition in seen:
                    raise MachineError(f"{name}, line {number}: {source} -> {target} on {event} stands twice")
                seen.add(transition)
                yield transition
