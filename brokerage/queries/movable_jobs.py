"""Jobs that wait and may be brokered anew, by task and queue, and what keeps the others where they are (decision D18)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection

from broker_site.foundation.access.permissions import VoScope
from brokerage.rules.dispatch.stranding import names_place
from brokerage.rules.dispatch.timeouts import QueueFacts, as_one, suspended
from brokerage.rules.facts.job_kind import MERGING_KINDS
from brokerage.states import JOB
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.task_parameters.document import read_parameters

NAMED = "the task names its queue"
SUSPENDED = "its queue is paused, or disableReassign stands there"
ALL_SUSPENDED = "all queues to which it is open are paused, or have disableReassign"
KEPT = "its task has disableReassign"
KEPT_TASKS = "SELECT id FROM workqueues_task WHERE ended_at IS NULL AND split_rule LIKE '%%DI=1%%'"
"""Live tasks of which no job is taken back by a time limit (decision D4); they have an index of their own. For statements with
values.
"""


class JobsAtQueue(NamedTuple):
    """Jobs of a task that wait at one queue, or open (None) in `task_queue_id`: how many. `stay`: why they are to stay; empty
    where they may go.
    """

    queue_id: int | None
    task_id: int
    n: int
    stay: str
    task_queue_id: int | None = None


MOVABLE: Mapping[str, Any] = {"states": sorted(JOB.waiting), "merging": [kind.value for kind in MERGING_KINDS]}
"""Jobs that no pilot has had; not merge jobs, which run where their input is."""
EVERY_VO = VoScope(everything=True)

_JOBS = """
SELECT q.id, j.task_id, j.n, j.open_in, q.name, q.site_id, t.site, t.split_rule, p.task_params -> 'includedSite',
    CASE WHEN q.id IS NULL THEN ARRAY(
        SELECT c.status || ' ' || c.catchall FROM brokerage_taskqueue w
            JOIN brokerage_requirementplace o ON o.requirement_set_id = w.requirement_set_id
            JOIN brokerage_computingqueue c ON c.id = o.computing_queue_id
        WHERE w.id = j.open_in) ELSE ARRAY[q.status || ' ' || q.catchall] END
FROM (
    SELECT computing_queue_id, task_id, CASE WHEN computing_queue_id IS NULL THEN task_queue_id END AS open_in, count(*) AS n
    FROM brokerage_job
    WHERE {which} AND ended_at IS NULL AND status = ANY (%(states)s) AND kind <> ALL (%(merging)s) GROUP BY 1, 2, 3
) AS j LEFT JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id JOIN workqueues_task t ON t.id = j.task_id
LEFT JOIN workqueues_taskparams p ON p.task_id = t.id
WHERE %(everything)s OR t.vo = ANY (%(vos)s) ORDER BY 1, 2, 4
"""
"""With the states and switches of the queue, or of all queues to which they are open."""
_AT_QUEUES, _OF_TASK = (_JOBS.format(which=which) for which in ("computing_queue_id = ANY (%(queues)s)", "task_id = %(task)s"))
_OPEN = _JOBS.format(which="computing_queue_id IS NULL AND task_queue_id = ANY (%(task_queues)s)")
_OF_JOB = _JOBS.format(which="id = %(job)s")


def waiting_at(queues: Sequence[int], scope: VoScope = EVERY_VO, states: Iterable[str] = JOB.waiting) -> list[JobsAtQueue]:
    """Jobs of these VOs that wait, or are in one of `states`, at the queues, in the order of queues; nothing is asked where there
    are none.
    """
    return _waiting(_AT_QUEUES, scope, queues=list(queues), states=sorted(states)) if queues else []


def waiting_open(task_queues: Sequence[int]) -> list[JobsAtQueue]:
    """Open jobs that wait in these task queues; nothing is asked where there are none."""
    return _waiting(_OPEN, EVERY_VO, task_queues=list(task_queues)) if task_queues else []


def waiting_of_task(task_id: int) -> list[JobsAtQueue]:
    """Jobs of a task that wait."""
    return _waiting(_OF_TASK, EVERY_VO, task=task_id)


def waiting_job(job_id: int) -> JobsAtQueue | None:
    """A job, if it waits."""
    return next(iter(_waiting(_OF_JOB, EVERY_VO, job=job_id)), None)


def _waiting(statement: str, scope: VoScope, **which: Any) -> list[JobsAtQueue]:
    with connection.cursor() as cursor:
        values = {**MOVABLE, "everything": scope.everything, "vos": sorted(scope.names), **which}
        cursor.execute(statement, values)
        return [
            JobsAtQueue(queue, task, n, _stay({name, place}, _facts(states), site, rule, asked), open_in)
            for queue, task, n, open_in, name, place, site, rule, asked, states in cursor.fetchall()
        ]


def _facts(states: Iterable[str]) -> QueueFacts:
    """Of a queue, or of those to which jobs are open: status and switches of each."""
    return as_one([QueueFacts(status, catchall) for status, _, catchall in (text.partition(" ") for text in states)])


def _stay(places: set[str | None], queue: QueueFacts, site: str, rule: str, included: str | None) -> str:
    """`rule`: the split rule of the task; `included`: includedSite as JSON, a list or a comma text."""
    asked, _ = read_parameters({"includedSite": json.loads(included or "null")})
    anywhere = None in places and bool(asked.includedSite)  # an open job goes to those that are named
    if anywhere or names_place({name for name in places if name is not None}, site, asked.includedSite):
        return NAMED
    if suspended(queue):
        return ALL_SUSPENDED if None in places else SUSPENDED
    return KEPT if suspended(queue, disable_reassign=parse(rule).disable_reassign) else ""
