"""What people changed of the needs of a task, for who reads how decisions about it went over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workqueues.models import TaskNote
from workqueues.rules.task.changes_in_words import NEEDS_CHANGED, changes_in_words

MOST = 10
"""The newest that are told."""
LOOKED_AT = 200
"""Notes of the task that are read for them."""


@dataclass(frozen=True, slots=True)
class NeedsChange:
    """By whom, when and why; `before` and `after`: the columns that changed."""

    at: datetime
    who: str
    why: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def sentence(self) -> str:
        """What changed in one line, without its time."""
        why = f": {self.why}" if self.why else ""
        return f"{self.who.removeprefix('user:')} changed its needs, {changes_in_words(self.before, self.after)}{why}"

    def to_document(self) -> dict[str, Any]:
        """As JSON."""
        return {"at": self.at, "who": self.who, "why": self.why, "sentence": self.sentence}


def needs_changes(task_id: int, using: str = "default") -> list[NeedsChange]:
    """The newest first."""
    notes = TaskNote.objects.using(using).filter(task_id=task_id).order_by("-id")[:LOOKED_AT]
    found = [NeedsChange(n.at, n.who, n.why, n.before, n.after) for n in notes if n.rule == NEEDS_CHANGED]
    return found[:MOST]
