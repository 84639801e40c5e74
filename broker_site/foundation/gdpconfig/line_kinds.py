"""What lines of change sets mean, by their kind: each kind is declared once, and `store` asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from broker_site.foundation.gdpconfig.changesets import Line, Place, Standing, Step
from broker_site.foundation.gdpconfig.models import Change
from broker_site.foundation.kernel.registry import Registry
from broker_site.foundation.kernel.verdict import Problem


class LineKind(Protocol):
    """What the lines of one kind mean; called by `store` alone, in the transaction that applies them and under its lock."""

    def check(self, line: Line) -> str:
        """The text to store for a line that is no removal; BadConfig with every problem of place and value."""

    def standing(self, places: Sequence[Place]) -> Mapping[Place, Standing]:
        """What stands at these places, in a number of queries that does not grow with them; nothing where nothing stands."""

    def together(self, steps: Sequence[Step]) -> Sequence[Problem]:
        """What is wrong with all that would stand after these steps of the kind, by line: `lines[2].parent`."""

    def write(self, changes: Sequence[Change]) -> None:
        """Let what the lines say hold from the commit on, in a number of queries that does not grow with them."""


LINE_KINDS: Registry[LineKind] = Registry("kind of line")


def declare_kind(name: str, kind: LineKind) -> None:
    """Add a kind of line; ValueError if there is one of that name."""
    LINE_KINDS.add(name, kind)
