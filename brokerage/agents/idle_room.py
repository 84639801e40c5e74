"""Room for jobs at slots that idle though others wait there: none of these fits them, so they keep no room from a job that does.

Looked at where the queues are full for a task. Jobs that do not fit are left where they are: a pilot that can do them may come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from brokerage.queries.idle_slots import idle_slots, open_queues, waiting_jobs
from brokerage.queries.task_requirements import requirements_of
from brokerage.rules.decision.assembly import TaskDecision
from brokerage.rules.dispatch.idle_slots import Unserved, served_by, unserved
from brokerage.rules.dispatch.requirement import Requirement
from brokerage.rules.dispatch.task_requirement import TaskRequirement, of_job
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.passed_queues import passed_queues
from brokerage.rules.placement.slots import JobGrants
from workqueues.models import Task

IN_VAIN_S = 5.0
"""A slot that has asked for so long has seen every job that waited meanwhile."""
MOST_QUEUES = 20
"""Queues that are read in one run, those with the slots that have idled longest."""


@dataclass
class IdleRoom:
    """What one run of the agent generate, for these tasks, knows of such slots; read when it is first asked."""

    grants: JobGrants
    tasks: Collection[Task]

    @contextmanager
    def of(self, task: Task, decision: TaskDecision[Queues] | None = None) -> Iterator[None]:
        """For a while the grants leave jobs aside where a job of the task fits a slot that idles.

        `decision`: where it was taken, what a job needs is known; before, only what all jobs of the task require.
        """
        if not self.unserved or task.id not in self._requirements:
            yield
            return
        if decision is None:
            needs = [Requirement(queue, max(task.core_count or 1, 1), vo=task.vo) for queue in self.unserved]
        else:
            passed = (place for places in passed_queues(decision, self.unserved).values() for place in places)
            needs = [Requirement(queue, *slot, task.vo) for queue, slot in passed]
        there = served_by((of_job(self._requirements[task.id], need) for need in needs), self.unserved)
        with self.grants.leaving_aside({queue: self.unserved[queue].waiting for queue in there}):
            yield

    @cached_property
    def unserved(self) -> Mapping[str, Unserved]:
        """Queue -> its slots that idle beside jobs none of which fits; only where the jobs keep all room."""
        counted = self.grants.idle()
        asks = idle_slots(IN_VAIN_S)
        idle = Counter(ask.offer.queue for ask in asks)
        keep = [queue for queue in idle if counted.get(queue, 0) < idle[queue]][:MOST_QUEUES]
        queues = open_queues([ask for ask in asks if ask.offer.queue in keep])
        offers = [ask.offer for ask in asks if ask.queue_id in queues]
        return unserved(offers, waiting_jobs(queues, len(offers))) if queues else {}

    @cached_property
    def _requirements(self) -> Mapping[int, TaskRequirement]:
        return requirements_of([task.id for task in self.tasks])
