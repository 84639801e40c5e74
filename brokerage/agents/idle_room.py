"""Room for jobs at slots that idle though others wait there: none of these fits them, so they keep no room from a job that does.

Asked for where the queues are full for a task. Jobs that do not fit are left where they are: a pilot that can do them may come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from brokerage.queries.misfits import slots_beside_misfits
from brokerage.queries.task_requirements import requirements_of
from brokerage.rules.decision.assembly import TaskDecision
from brokerage.rules.dispatch.idle_slots import served_by
from brokerage.rules.dispatch.requirement import Requirement, Resource
from brokerage.rules.dispatch.task_requirement import TaskRequirement, of_job
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.passed_queues import passed_queues
from brokerage.rules.placement.slots import JobGrants
from workqueues.models import Task


@dataclass
class IdleRoom:
    """What one run of the agent generate, for these tasks, knows of such slots; read when it is first asked."""

    grants: JobGrants
    tasks: Collection[Task]

    @contextmanager
    def of(self, task: Task, decision: TaskDecision[Queues] | None = None) -> Iterator[None]:
        """For a while the grants leave misfits aside at the queues where a job of the task fits a slot that idles beside them.

        `decision`: where it was taken, what a job needs is known; before, only what all jobs of the task require.
        """
        queues = {slot.queue for slot in self._slots}
        if not queues or task.id not in self._requirements:
            yield
            return
        if decision is None:
            needs = [Requirement(queue, max(task.core_count or 1, 1), vo=task.vo) for queue in queues]
        else:
            passed = (place for places in passed_queues(decision, queues).values() for place in places)
            needs = [Requirement(queue, *slot, task.vo) for queue, slot in passed]
        with self.grants.leaving_misfits_aside(
            served_by((of_job(self._requirements[task.id], need) for need in needs), self._slots)
        ):
            yield

    @cached_property
    def _slots(self) -> Collection[Resource]:
        return slots_beside_misfits() if self.grants.any_misfits() else ()

    @cached_property
    def _requirements(self) -> Mapping[int, TaskRequirement]:
        return requirements_of([task.id for task in self.tasks])
