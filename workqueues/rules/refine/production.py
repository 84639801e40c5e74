"""What a task asks for that only the role production may have (decision F9), and words that are nearly those.

Not here: who has the role (`api.submission`).
"""

from __future__ import annotations

from collections.abc import Iterator

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.jobs.activity import ANALYSIS_LABELS, PRODUCTION_LABELS
from workqueues.rules.task_parameters import TaskParameters

MANAGED = "managed"
PRODUCTION_TYPE = "prod"
HIGHEST_PRIORITY = 1000
"""The highest priority that every submitter may ask for."""

_WORDS = {"prodSourceLabel": (*PRODUCTION_LABELS, *ANALYSIS_LABELS), "taskType": (PRODUCTION_TYPE, "anal")}
"""The words that mean something to us; every other one is a word of the VO's own."""


def production_wishes(task: TaskParameters) -> list[Problem]:
    """What needs the role, each with its field; the messages are the beginning of a sentence."""
    wishes = []
    if task.prodSourceLabel == MANAGED:
        wishes.append(problem("prodSourceLabel", "production", f"the label {MANAGED}"))
    if task.taskType == PRODUCTION_TYPE:
        wishes.append(problem("taskType", "production", f"the task type {PRODUCTION_TYPE}"))
    high = [name for name in ("taskPriority", "currentPriority") if (getattr(task, name) or 0) > HIGHEST_PRIORITY]
    return wishes + [problem(name, "production", f"a priority above {HIGHEST_PRIORITY}") for name in high]


def near_words(task: TaskParameters) -> Iterator[Problem]:
    """Labels and types that are nearly one that means something: they are taken as they are, and mean nothing to us."""
    for name, words in _WORDS.items():
        value = getattr(task, name)
        if value and value not in words and (near := nearest(value, words)):
            yield problem(
                name, "note", f"{value[:40]!r} is taken as a word of your own; the nearest that has a meaning is {near}"
            )
