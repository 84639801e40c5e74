"""Named things that code declares once: policies, filters, weights, splitters, configuration keys.

A registry refuses a second declaration of a name, so that a plugin cannot replace ours unseen, and answers an unknown name with
the nearest known ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Generic, TypeVar

T = TypeVar("T")


class UnknownName(KeyError):
    """A name that nobody declared; the message lists the nearest known names."""

    def __str__(self) -> str:
        return str(self.args[0])


class Registry(Mapping[str, T], Generic[T]):
    """Names to things of one kind, in the order of their declaration."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> T:
        """Declare `item` under `name`; ValueError if the name is taken."""
        if name in self._items:
            raise ValueError(f"{self.kind} {name!r} is declared twice")
        self._items[name] = item
        return item

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Keep what the block declares only if it ends without an exception, as for a plugin that breaks half way."""
        before, whole = dict(self._items), False
        try:
            yield
            whole = True
        finally:
            if not whole:
                self._items = before

    def __getitem__(self, name: str) -> T:
        try:
            return self._items[name]
        except KeyError:
            near = get_close_matches(name, self._items, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UnknownName(f"unknown {self.kind} {name!r}{hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def nearest(name: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """The known name that is most like `name`, whatever its case; empty when none is so like it (1: the same)."""
    if len(name) > 100:
        return ""
    by_lower = {k.lower(): k for k in known}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[near[0]] if near else ""
