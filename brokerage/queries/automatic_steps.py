"""Steps that the system took with a task by itself: when, by which rule, with which numbers, and on which keys that rests.

Its moves, notes, files and causes of throttling, the newest of each, by an index; one statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from workqueues.rules.task.automatic_steps import AGENT, NOTED, OF_CAUSES, OF_FILES, AutomaticStep, of_task
from workqueues.rules.task.changes_in_words import changes_in_words

MOST = 30
MOST_FILES = 5_000
"""Notes of files that are looked at, the newest: a task may have several of each of its files."""
_STEPS = """
WITH files AS MATERIALIZED (
    SELECT at, new, who, why FROM workqueues_filechange WHERE task_id = %(task)s ORDER BY id DESC LIMIT %(files)s
)
SELECT * FROM (
    SELECT at, 'state', old, new, who, why, NULL::text, NULL::text FROM workqueues_taskchange
    WHERE task_id = %(task)s AND who LIKE %(agents)s ORDER BY epoch DESC LIMIT %(most)s) AS moves
UNION ALL
SELECT * FROM (
    SELECT at, 'note', '', rule, who, why, before::text, after::text FROM workqueues_tasknote
    WHERE task_id = %(task)s ORDER BY id DESC LIMIT %(most)s) AS notes
UNION ALL
SELECT * FROM (
    SELECT max(at), 'files', '', new, min(who), count(*) || ' file' || CASE WHEN count(*) = 1 THEN '' ELSE 's' END
        || CASE WHEN why = '' THEN '' ELSE ': ' || why END, NULL::text, NULL::text
    FROM files GROUP BY new, why, date_trunc('minute', at) ORDER BY 1 DESC LIMIT %(most)s) AS of_files
UNION ALL
SELECT since, 'throttle', '', cause, '', why, NULL::text, NULL::text FROM workqueues_taskthrottle WHERE task_id = %(task)s
"""


@dataclass(frozen=True, slots=True)
class StepTaken:
    """One step. `before` and `after`: columns of the task that it changed; empty where it changed its state alone."""

    at: datetime
    kind: str
    what: str
    who: str
    why: str
    rule: str
    keys: tuple[str, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def sentence(self) -> str:
        """What it is in one line, without its time."""
        changes = changes_in_words(self.before, self.after)
        keys = f" ({', '.join(self.keys)})" if self.keys else ""
        return f"{self.rule}: {'; '.join(filter(None, [self.why or self.what, changes]))}{keys}"


def step_of(kind: str, old: str, what: str, who: str) -> AutomaticStep | None:
    """The rule of something in the history of a task; None where no rule of ours made it."""
    if kind == "state":
        return of_task(old, what, who)
    return {"note": NOTED, "throttle": OF_CAUSES, "files": OF_FILES}[kind].get(what)


def steps_of(task_id: int) -> list[StepTaken]:
    """The newest first."""
    values: dict[str, Any] = {"task": task_id, "most": MOST, "files": MOST_FILES, "agents": f"{AGENT}%"}
    with connection.cursor() as cursor:
        cursor.execute(_STEPS, values)
        found = cursor.fetchall()
    steps = [
        StepTaken(at, kind, what, who, why, step.rule, step.keys, json.loads(before or "{}"), json.loads(after or "{}"))
        for at, kind, old, what, who, why, before, after in found
        if (step := step_of(kind, old, what, who)) is not None
    ]
    return sorted(steps, key=lambda step: step.at, reverse=True)[:MOST]
