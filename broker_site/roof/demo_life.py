"""The tasks beside the campaign of the demo: what somebody does with them while they run, and whether they show what they are.

One is raised by the memory ladder while it has scouts, one merges its outputs, one is paused and resumed, one is aborted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from brokerage.models import Job
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from workqueues.models import Task, TaskChange

PAUSE_S = 1.5
"""The paused task stays so for this long, to be seen."""
ENDS: Mapping[str, str] = {"hungry": "done", "merged": "done", "paused": "done", "aborted": "aborted"}
"""Last part of the name of each task, and how it is to end."""


class Caller(Protocol):
    """The REST API as one user."""

    def call(self, path: str, body: Mapping[str, object] | None = None) -> object:
        """GET, or POST when there is a body."""


@dataclass
class Hand:
    """Somebody who pauses and resumes one task and kills another, each once, as soon as jobs of theirs run."""

    client: Caller
    paused_at: float | None = None
    given: list[str] = field(default_factory=list)

    def act(self, task_id: int, name: str, status: str) -> None:
        """Give this task, in this state, the command whose time has come."""
        if name.endswith(".paused"):
            if "pause" not in self.given and _works(task_id):
                self._give(task_id, "pause", "to show it")
            elif status == "paused" and "resume" not in self.given:
                self.paused_at = self.paused_at or time.monotonic()
                if time.monotonic() - self.paused_at > PAUSE_S:
                    self._give(task_id, "resume", "it was seen")
        elif name.endswith(".aborted") and "kill" not in self.given and _works(task_id):
            self._give(task_id, "kill", "nobody needs it")

    def _give(self, task_id: int, command: str, comment: str) -> None:
        self.client.call(f"tasks/{task_id}/{command}/", {"comment": comment})
        self.given.append(command)


def _works(task_id: int) -> bool:
    return Job.objects.filter(task_id=task_id).exclude(status__in=JOB.waiting).exists()


def wanted(name: str) -> str:
    """The state in which a task of the demo is to end."""
    return ENDS.get(name.rpartition(".")[2], "done")


def shown(ids: Sequence[int]) -> dict[str, str]:
    """What each of these tasks shows: its name and a sentence; one that does not show it is left out."""
    sentences = {}
    for task in Task.objects.filter(id__in=ids):
        kind = task.task_name.rpartition(".")[2]
        if kind in _SHOWN and (sentence := _SHOWN[kind](task)):
            sentences[task.task_name] = sentence
    return sentences


def unshown(ids: Sequence[int]) -> list[str]:
    """The problems of those that do not."""
    seen = shown(ids)
    names = Task.objects.filter(id__in=ids).values_list("task_name", flat=True)
    return [
        f"{name} does not show what it is there for" for name in names if name.rpartition(".")[2] in _SHOWN and name not in seen
    ]


def _hungry(task: Task) -> str:
    jobs = Job.objects.filter(task_id=task.id)
    scouts = jobs.filter(kind=JobKind.SCOUT)
    failed = scouts.filter(status="failed", result__error_code="PAYLOAD_MEMORY").count()
    asked = sorted(set(jobs.filter(status="finished").values_list("spec__ram_mb", flat=True)))
    if not failed or not scouts.filter(status="finished").exists() or not jobs.filter(kind=JobKind.NORMAL).exists():
        return ""
    return f"{failed} scouts ran out of memory; its jobs finished with {' and '.join(f'{mb:,}' for mb in asked)} MB"


def _merged(task: Task) -> str:
    jobs = Job.objects.filter(task_id=task.id, status="finished")
    n, merges = jobs.filter(kind=JobKind.NORMAL).count(), jobs.filter(kind=JobKind.MERGE).count()
    return f"outputs of {n} jobs were merged by {merges}" if merges else ""


def _paused(task: Task) -> str:
    changes = list(TaskChange.objects.filter(task_id=task.id).order_by("id").values_list("new", "who", "why"))
    states = [new for new, _, _ in changes]
    if "paused" not in states or states[-1] != "done":
        return ""
    return f"paused by {changes[states.index('paused')][1]}, then resumed"


def _aborted(task: Task) -> str:
    ended = Job.objects.filter(task_id=task.id, status="cancelled").count()
    return f"killed with {ended} jobs" if task.status == "aborted" and ended else ""


_SHOWN = {"hungry": _hungry, "merged": _merged, "paused": _paused, "aborted": _aborted}
