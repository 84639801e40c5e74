"""The elements of a task, for its page and for `explain`: bounded, in two statements at most."""

from __future__ import annotations

import json

from django.db import connections

from workqueues.models import Task
from workqueues.rules.elements.task_elements import ElementAtChild, ParentElement, TaskElements
from workqueues.states.elements import ELEMENT

MOST_LOOKED_AT = 1_000
MOST_SHOWN = 5

_HEAD = """
SELECT i.counts, p.element_id, p.try_nr, p.parent_task_id, coalesce(b.url, ''), p.status, p.refused, p.told_at, p.given_back
FROM (SELECT %(task)s::bigint AS id) AS t
LEFT JOIN workqueues_elementinbox i ON i.task_id = t.id
LEFT JOIN workqueues_pulledelement p ON p.task_id = t.id
LEFT JOIN workqueues_parentbroker b ON p.id IS NOT NULL
LIMIT 1
"""
_AT_CHILDREN = f"""
SELECT e.id, e.status, c.name, e.site, e.n_files, e.n_files_finished + e.n_files_failed, e.sentence, e.decision, e.told_at
FROM (SELECT id, status, child_id, site, n_files, n_files_finished, n_files_failed, sentence, decision, told_at
    FROM workqueues_element WHERE task_id = %(task)s LIMIT %(looked_at)s) AS e JOIN workqueues_childbroker c ON c.id = e.child_id
WHERE e.status IN ({ELEMENT.taken.sql}) ORDER BY e.told_at DESC NULLS LAST, e.id DESC LIMIT %(shown)s
"""


def elements_of_task(task: Task, using: str = "default") -> TaskElements:
    """What of elements belongs to the task; nothing for most."""
    with connections[using].cursor() as cursor:
        cursor.execute(_HEAD, {"task": task.id})
        said, element_id, *of_parent = cursor.fetchone()
        counts = json.loads(said or "{}")
        found = TaskElements(
            counts={state: counts[state] for state in ELEMENT.course if counts.get(state)},
            of_parent=ParentElement(element_id, *of_parent) if element_id is not None else None,
        )
        if not found.taken:
            return found
        cursor.execute(_AT_CHILDREN, {"task": task.id, "looked_at": MOST_LOOKED_AT, "shown": MOST_SHOWN})
        return TaskElements(found.counts, [ElementAtChild(*row) for row in cursor.fetchall()], found.of_parent)
