"""What elements say of a task, in words: those that its work was cut into, and the one of the parent that it does. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from workqueues.states.elements import ELEMENT


@dataclass(frozen=True, slots=True)
class ElementAtChild:
    """An element that a child broker has, with what it said of it last, and when."""

    id: int
    status: str
    child: str
    site: str
    n_files: int
    n_files_ended: int
    sentence: str = ""
    decision: str = ""
    told_at: datetime | None = None

    def line(self) -> str:
        """Where it is and how far, and what the child says of it."""
        ended = f"{self.n_files_ended:,} of {self.n_files:,} files ended"
        head = f"Element {self.id} is {self.status} at {self.child} for {self.site}: {ended}"
        if self.told_at is None:
            return f"{head}; {self.child} has not told of it yet."
        said = f", {self.child} says: {self.sentence.rstrip('.')}" if self.sentence else f", {self.child} told of it"
        return f"{head}; {self.told_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC{said}."


@dataclass(frozen=True, slots=True)
class ParentElement:
    """The element of the parent broker that a task here does. `refused`: why the parent no longer gives it; `given_back`: why
    this broker gives it back.
    """

    element_id: int
    try_nr: int
    parent_task_id: int
    parent: str
    status: str
    refused: str = ""
    told_at: datetime | None = None
    given_back: str = ""

    def line(self) -> str:
        """What it does, and what the parent knows of it."""
        head = f"It does element {self.element_id} of task {self.parent_task_id} of the parent {self.parent}"
        if self.refused:
            return f"{head}, which gives it no more: {self.refused.rstrip('.')}."
        if self.given_back:
            return f"{head}, which was given back: {self.given_back.rstrip('.')}."
        told = f"told {self.told_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if self.told_at else "not yet told"
        return f"{head} (try {self.try_nr}, {self.status} here, {told})."


@dataclass(frozen=True, slots=True)
class TaskElements:
    """Elements of a task: how many in each state, some of those that children have, those first that were told of last; and the
    element of the parent that the task does.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    at_children: Sequence[ElementAtChild] = ()
    of_parent: ParentElement | None = None

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def waiting(self) -> int:
        return sum(self.counts.get(state, 0) for state in ELEMENT.waiting)

    @property
    def taken(self) -> int:
        return sum(self.counts.get(state, 0) for state in ELEMENT.taken)

    def lines(self) -> Iterator[str]:
        """In sentences, what of it a task waits for."""
        if self.of_parent is not None:
            yield self.of_parent.line()
        if self.waiting:
            them = "it" if self.waiting == 1 else "them"
            yield f"{_elements(self.waiting, 'waits', 'wait')} for a child broker to pull {them}."
        if self.taken:
            yield f"{_elements(self.taken, 'is', 'are')} at child brokers."
        yield from (element.line() for element in self.at_children)

    def course(self) -> str:
        """Who does its work and how far that is, in one phrase; empty where it has no elements."""
        if not self.total:
            return ""
        told = []
        if self.taken:
            told.append(f"{self.taken:,} {'is' if self.taken == 1 else 'are'} at {self._children()}")
        if self.waiting:
            told.append(f"{self.waiting:,} {'waits' if self.waiting == 1 else 'wait'} to be pulled")
        if ended := self.total - self.taken - self.waiting:
            told.append(f"{ended:,} {'has' if ended == 1 else 'have'} ended")
        of = "its only element" if self.total == 1 else f"of {self.total:,} elements"
        phrase = ", ".join(told[:-1]) + " and " + told[-1] if len(told) > 1 else told[0]
        return f"child brokers do its work: {of} {phrase.removeprefix('1 ') if self.total == 1 else phrase}"

    def _children(self) -> str:
        """The child that has all of those that are taken, where it is one."""
        names = {element.child for element in self.at_children}
        return names.pop() if len(names) == 1 and len(self.at_children) >= self.taken else "child brokers"

    def to_document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "counts": dict(self.counts),
            "at_children": [asdict(element) for element in self.at_children],
            "of_parent": asdict(self.of_parent) if self.of_parent else None,
        }


def _elements(n: int, one: str, many: str) -> str:
    return f"1 element {one}" if n == 1 else f"{n:,} elements {many}"


NO_ELEMENTS = TaskElements()
"""Of a task whose work goes to own queues."""
