"""What the parent is told of tasks in words: the sentence that our pages say of each, and its last decision."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from brokerage.models import Decision
from brokerage.queries.decisions import decision_facts
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.explanation import Explanation, explain
from brokerage.rules.explain.task_status_text import TaskStatus, headline
from workqueues.models import Task
from workqueues.queries.pulled_elements import TellableElement
from workqueues.rules.elements.messages import LONGEST_DECISION

CLOSELY = 20
"""Elements of a report whose tasks are looked at closely, as pages do: those with more to tell than ends of files."""
LONGEST_SENTENCE = 510
WAITS = "Acquired: it waits until a site has an empty slot for it"


class Words(NamedTuple):
    """What is said of an element; `decision`: 8 kB at most."""

    sentence: str = ""
    decision: str = ""


def words_of(elements: Sequence[TellableElement], task_ids: Collection[int]) -> dict[int, Words]:
    """By element; the decisions of all tasks are read in one statement, without the grid on which they were taken."""
    tasks, decisions = Task.objects.in_bulk(task_ids), _decisions(task_ids)
    closely = [e.task_id for e in elements if e.status != e.told or not e.due][:CLOSELY]
    words = {}
    for element in elements:
        task = tasks.get(element.task_id or 0)
        if element.given_back:
            words[element.id] = Words(element.given_back, decisions.get(element.task_id or 0, ""))
            continue
        if task is None:
            words[element.id] = Words(element.fault or (WAITS if element.status == "Acquired" else ""))
            continue
        status = task_status(task) if task.id in closely else _as_it_says(task)
        words[element.id] = Words(headline(status)[:LONGEST_SENTENCE], decisions.get(task.id, ""))
    return words


def _as_it_says(task: Task) -> TaskStatus:
    return TaskStatus(task.status, task.error_dialog, task.old_status, command_by=task.command_by)


def _decisions(task_ids: Collection[int]) -> dict[int, str]:
    rows = Decision.objects.filter(task_id__in=task_ids).order_by("task_id", "-id").distinct("task_id").defer("own")
    return {row.task_id: _in_words(row) for row in rows} if task_ids else {}


def _in_words(row: Decision) -> str:
    facts = decision_facts(row)
    if facts.record is None:
        return ""
    return (
        _told(explain(facts.record, facts.policy, facts.ask, None, facts.config, row.last_at))
        .encode()[:LONGEST_DECISION]
        .decode(errors="ignore")
    )


def _told(story: Explanation) -> str:
    steps = [f"{step.criterion} skips {step.skipped}: {step.about}".rstrip(": ") for step in story.funnel if step.skipped]
    return "\n".join([f"{story.policy}: {story.verdict}", *steps])
