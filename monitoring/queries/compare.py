"""Two tasks or two queues beside each other: what each has, and whether it is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from broker_site.foundation.access.permissions import VoScope
from brokerage.models import ComputingQueue
from brokerage.rules.grid.attributes import QueueAttributes
from monitoring.queries.database import alias
from monitoring.queries.tasks import task_rows, visible_tasks
from workqueues.models import TaskParams

LONGEST = 400
"""Characters of a value that are shown."""
OF_TASK = frozenset({"id"})
OF_QUEUE = frozenset({"id", "name", "last_start"})
"""Columns that say nothing about how a queue is configured."""


WORDS = {
    "task_name": "Name",
    "user_name": "Owner",
    "vo": "VO",
    "status": "Status",
    "progress": "Input files finished, %",
    "files_finished": "Files done",
    "files_failed": "Files failed",
    "files_in_jobs": "Files in jobs",
    "files_left": "Files left",
    "files_lost": "Files lost",
    "jobs_waiting": "Jobs that wait",
    "jobs_running": "Jobs that run",
    "current_priority": "Priority",
    "creation_date": "Created",
    "status_since": "Status since",
    "ended_at": "Ended",
    "error_dialog": "Reason",
}
"""What of the outcome of a task pages call otherwise than its rows do."""
UNITS: Mapping[str, str] = {
    name: str(extra["unit"])
    for name, info in QueueAttributes.model_fields.items()
    if isinstance(extra := info.json_schema_extra, dict) and "unit" in extra
}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that both may have; empty where one has it not. `times`: the same as times, where it is one. `unit`: of both."""

    name: str
    a: str
    b: str
    times: tuple[datetime | None, datetime | None] | None = None
    unit: str = ""

    @property
    def same(self) -> bool:
        return self.a == self.b

    @property
    def words(self) -> str:
        """What it is for readers; empty where its name is the word of the field, as that of a parameter."""
        return WORDS.get(self.name, "")


@dataclass(frozen=True, slots=True)
class Part:
    """Things of one kind: those that differ, and the others."""

    title: str
    lines: Sequence[Line]

    @property
    def different(self) -> Sequence[Line]:
        return [line for line in self.lines if not line.same]

    @property
    def alike(self) -> Sequence[Line]:
        return [line for line in self.lines if line.same]


def compared_tasks(a: int, b: int, scope: VoScope) -> list[Part] | None:
    """Outcomes and parameters of two tasks; None where one is not there. Five statements."""
    rows = {row.id: row for row in task_rows(visible_tasks(scope).filter(id__in={a, b}))}
    if not {a, b} <= rows.keys():
        return None
    known = TaskParams.objects.using(alias()).in_bulk({a, b})
    of_a, of_b = (_parameters(known.get(number)) for number in (a, b))
    return [
        Part("Outcome", _lines(asdict(rows[a]), asdict(rows[b]), OF_TASK)),
        Part("Parameters", _lines(of_a, of_b)),
    ]


def _parameters(known: TaskParams | None) -> Mapping[str, Any]:
    said = known.task_params if known is not None else None
    return said if isinstance(said, dict) else {}


def compared_queues(a: str, b: str) -> list[Part] | None:
    """The configuration of two queues; None where one is not there. One statement."""
    queues = {queue["name"]: queue for queue in ComputingQueue.objects.using(alias()).filter(name__in={a, b}).values()}
    if not {a, b} <= queues.keys():
        return None
    lines = _lines(_configured(queues[a]), _configured(queues[b]), OF_QUEUE)
    return [Part("Configuration", [replace(line, unit=UNITS.get(line.name, "")) for line in lines])]


def _configured(queue: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its columns, and each attribute that has none: a foreign one that is called as a column does not stand for it."""
    columns = {name: value for name, value in queue.items() if name != "attributes"}
    return columns | {name: value for name, value in queue["attributes"].items() if name not in columns}


def _lines(a: Mapping[str, Any], b: Mapping[str, Any], but: frozenset[str] = frozenset()) -> list[Line]:
    names = [*a, *(name for name in b if name not in a)]
    return [_line(name, a.get(name), b.get(name)) for name in names if name not in but]


def _line(name: str, a: Any, b: Any) -> Line:
    at_a, at_b = (value if isinstance(value, datetime) else None for value in (a, b))
    return Line(name, _said(a), _said(b), (at_a, at_b) if at_a or at_b else None)


def _said(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
