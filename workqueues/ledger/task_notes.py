"""Steps that the system takes with a task without another state: noted in its history, and audited, with the change itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import SYSTEM
from workqueues.models import Task, TaskNote
from workqueues.rules.task.automatic_steps import AutomaticStep


def note_step(
    task: Task, step: AutomaticStep, act: str, who: str, why: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Note it with the columns that differ, in the transaction that changes it. `act`: its name in the audit."""
    was, now = dict(before), dict(after)
    differs = [name for name in now if now[name] != was.get(name)]
    changed = {"before": {name: was.get(name) for name in differs}, "after": {name: now[name] for name in differs}}
    TaskNote.objects.create(task_id=task.id, rule=step.rule, who=who, why=why[:510], **changed)
    audit(act, SYSTEM, f"task {task.id}", vo=task.vo, reason=why, before=was, after=now)
