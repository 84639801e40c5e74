"""What the brokerage is asked to decide about tasks now: by the agents in a cycle, and by what-if without writing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import brokerage.policies  # noqa: F401 - declares the policies
from broker_site.foundation import gdpconfig
from brokerage.queries.asks import chunk_of, inputs_taken, task_ask
from brokerage.queries.chunks import BatchInputs, load_batch
from brokerage.queries.usable_input import peek
from brokerage.queries.world import load_snapshot
from brokerage.rules.decision.assembly import DecisionRequest
from brokerage.rules.decision.policy_choice import NUCLEUS
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.facts.ask import Chunk
from brokerage.rules.placement.usable_input import UsableInput
from brokerage.rules.world.grid_snapshot import GridSnapshot
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.splitters.protocol import JobPlan

LOOKED_AT = 1000
"""Files of a master that tell what the jobs of a task will be like."""


@dataclass(frozen=True, slots=True)
class DecisionRequests:
    """The requests of a batch of tasks, with what they have in common: the grid of the moment, what the tasks read, the keys."""

    snapshot: GridSnapshot
    batch: BatchInputs
    config: BrokerConfig

    @classmethod
    def load(
        cls, tasks: Sequence[Task], now: datetime | None = None, *, whole: bool = False, snapshot: GridSnapshot | None = None
    ) -> DecisionRequests:
        """A number of queries that grows with nothing. `whole`: sizes of masters too; `snapshot`: None: that of this moment."""
        return cls(snapshot or load_snapshot(now), load_batch(tasks, whole=whole), BrokerConfig(gdpconfig.component))

    def for_nucleus(self, task: Task, work_added: Sequence[Mapping[str, Any]] = ()) -> DecisionRequest:
        """For the nucleus of a task: about all of its input, and jobs like those that will be made of its first files.

        `work_added`: what tasks of the batch have brought to nuclei meanwhile. Raises NoPolicy, NoGenerator, BadPlan, CannotAsk.
        """
        policy, inputs = self.config.policy(task.vo, NUCLEUS), self.batch.whole_input(task)
        task_facts = replace(self.batch.task_facts(task, inputs, self.snapshot.storages), added=tuple(work_added))
        masters = self.batch.masters(task)
        usable = peek(task, masters[0], LOOKED_AT) if masters else None
        jobs = usable.smallest() if usable else ()
        ask = task_ask(
            task, chunk_of(inputs, jobs, usable.files) if usable and jobs else Chunk(), self.snapshot.now, self.batch.offered
        )
        return DecisionRequest(self.snapshot, task_facts, ask, policy, self.config, _seed(task))

    def for_queues(self, task: Task, dataset: Dataset, usable: UsableInput, jobs: Sequence[JobPlan]) -> DecisionRequest:
        """For the queues of a chunk; `jobs`: the smallest into which it can be cut. Raises NoPolicy, CannotAsk."""
        policy = self.config.policy(task.vo, activity_of(task.prod_source_label))
        inputs = inputs_taken(dataset, usable.files, self.batch.inputs.get(task.id, ()), self.batch.sizes)
        task_facts = self.batch.task_facts(task, inputs, self.snapshot.storages, usable.files)
        ask = task_ask(task, chunk_of(inputs, jobs, usable.files), self.snapshot.now, self.batch.offered)
        return DecisionRequest(self.snapshot, task_facts, ask, policy, self.config, _seed(task))


def _seed(task: Task) -> str:
    return f"{task.id}.{task.epoch}"
