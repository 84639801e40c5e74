"""Jobs that hold slots at a site, by values of the attributes that may be limited there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping
from threading import Lock
from typing import Any

from django.db import connection

from brokerage.rules.dispatch.match_limits import Limited
from brokerage.rules.dispatch.task_requirement import PARAMETERS, task_requirement
from workqueues.models import Task

_HELD = """
SELECT j.task_id, '{}'::text[], count(*) FROM brokerage_job j
WHERE j.lease_holder IS NOT NULL
    AND j.computing_queue_id = ANY (ARRAY(SELECT id FROM brokerage_computingqueue WHERE site_id = %s))
GROUP BY 1
"""
_HELD_BY_CE = """
SELECT j.task_id, coalesce(p.ces, '{}')::text[], count(*)
FROM brokerage_job j LEFT JOIN brokerage_pilotce p ON p.pilot_id = j.lease_holder
WHERE j.lease_holder IS NOT NULL
    AND j.computing_queue_id = ANY (ARRAY(SELECT id FROM brokerage_computingqueue WHERE site_id = %s))
GROUP BY 1, 2
"""
COLUMNS = {
    "owner": "user_name",
    "owner_group": "working_group",
    "vo": "vo",
    "prod_source_label": "prod_source_label",
    "gshare": "gshare",
}
"""Attribute -> column of the task that its jobs have it from; the others are in its parameters."""
SAID = (*PARAMETERS.values(), "setup")
KNOWN_S = 60.0
"""How long the attributes of tasks are kept: the share of one may change."""

Values = frozenset[tuple[str, str]]
_known: dict[int, Values] = {}
_known_since = 0.0
_lock = Lock()
"""Held while what is known is replaced by another mapping; none is ever changed, so that threads may read what they have."""


def held_slots(site: str, limits: Collection[Limited]) -> Counter[Limited]:
    """How many jobs hold a slot at the site, or at its CE, for each of these limits.

    That of a pilot at several CEs counts at each. One statement, and one for new tasks.
    """
    with connection.cursor() as cursor:
        if any(each.ce for each in limits):
            cursor.execute(_HELD_BY_CE, [site])
        else:
            cursor.execute(_HELD, [site])
        groups = cursor.fetchall()
    values = _values_of_tasks({task_id for task_id, *_ in groups})
    counts: Counter[Limited] = Counter()
    for task_id, ces, n in groups:
        for attribute, value in values.get(task_id, ()):
            for at in {"", *ces}:
                counts[Limited(attribute, value, at)] += n
    return Counter({each: counts[each] for each in limits})


def forget_tasks() -> None:
    """Read them anew."""
    global _known
    with _lock:
        _known = {}


def _values_of_tasks(tasks: Collection[int]) -> dict[int, Values]:
    """The attributes of these tasks with their values. Threads may read the same task at once, and none waits for another."""
    global _known, _known_since
    with _lock:
        if time.monotonic() - _known_since > KNOWN_S:
            _known, _known_since = {}, time.monotonic()
        known, since = _known, _known_since
    values = {task_id: known[task_id] for task_id in tasks if task_id in known}
    if missing := [task_id for task_id in tasks if task_id not in values]:
        said = [f"params__task_params__{name}" for name in SAID]
        rows = Task.objects.filter(id__in=missing).values("id", "architecture", *COLUMNS.values(), *said)
        read = {task["id"]: _values(task) for task in rows}
        values |= read
        with _lock:
            if _known_since == since:
                _known = _known | read
    return values


def _values(task: Mapping[str, Any]) -> Values:
    parameters = {name: task[f"params__task_params__{name}"] for name in SAID}
    required = task_requirement(task["user_name"], task["working_group"], task["architecture"], parameters)
    single = {**{name: task[column] for name, column in COLUMNS.items()}, "setup": required.setup}
    several = [(name, value) for name, values in required.sets.items() for value in values]
    return frozenset([*((name, value) for name, value in single.items() if value), *several])
