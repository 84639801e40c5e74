"""What happens to a task without another state, by the system or by hand: noted in its history with the change itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import SYSTEM
from workqueues.models import Task, TaskNote
from workqueues.rules.task.automatic_steps import AutomaticStep
from workqueues.rules.task.changes_in_words import NEEDS_CHANGED


def note_needs(task: Task, who: str, why: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Somebody changed what new jobs of a task need: noted where it differs, as decisions before and after rest on other needs.

    The audit has it from whoever calls.
    """
    if changed := _changed(before, after):
        TaskNote.objects.create(task_id=task.id, rule=NEEDS_CHANGED, who=who, why=why[:510], **changed)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    differs = [name for name in after if after[name] != before.get(name)]
    if not differs:
        return {}
    return {"before": {name: before.get(name) for name in differs}, "after": {name: after[name] for name in differs}}


def note_step(
    task: Task, step: AutomaticStep, act: str, who: str, why: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Note it with the columns that differ, in the transaction that changes it. `act`: its name in the audit."""
    was, now = dict(before), dict(after)
    TaskNote.objects.create(task_id=task.id, rule=step.rule, who=who, why=why[:510], **_changed(was, now))
    audit(act, SYSTEM, f"task {task.id}", vo=task.vo, reason=why, before=was, after=now)
