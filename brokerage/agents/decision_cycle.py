"""What one run of an agent decides on, and the decisions that it takes: the world of its cycle and the policies.

Here: asking, deciding and storing, in batches. Not here: what follows for the task (`assign`, `generate`).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from django.db import DataError

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from brokerage.agents.policy_config import policy_config
from brokerage.ledger.decisions import Taken, record_decisions, store_snapshot
from brokerage.queries.asks import task_ask
from brokerage.queries.chunks import Batch, load_batch
from brokerage.queries.world import load_world
from brokerage.rules.decision.candidates import table_of_nuclei, table_of_queues
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.dry_run import activity_of, scope_of
from brokerage.rules.decision.nucleus_hint import able_queues, where_able
from brokerage.rules.decision.pipeline import PolicyDecision, decide
from brokerage.rules.decision.policy_choice import policy_chosen
from brokerage.rules.explain.explanation import shortfall
from brokerage.rules.facts.ask import Ask, Chunk
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.snapshot import Nuclei, Queues
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts
from workqueues.models import Task

T = TypeVar("T", bound=Columns)

UNSTORABLE = (DataError, TypeError, ValueError)
"""What a decision raises that the database or JSON cannot hold, as one of a plugin may be."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decided(Generic[T]):
    """A decision with the table that it was taken on."""

    decision: PolicyDecision
    ask: Ask
    own: TaskFacts
    columns: T


@dataclass(slots=True)
class Cycle:
    """One run: the world, and what its tasks read, loaded once for all of them; decisions wait here to be stored together."""

    world: GridSnapshot
    batch: Batch
    revision: int
    added: list[dict[str, Any]] = field(default_factory=list)
    _taken: list[Taken] = field(default_factory=list)
    _snapshot: int | None = None
    _worlds: dict[str, GridSnapshot] = field(default_factory=dict)
    _configs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def policy(self, task: Task, activity: str = "") -> Policy:
        """The policy for a task. Raises NoPolicy."""
        return policy_chosen(task.vo, activity or activity_of(task.prod_source_label), gdpconfig.component("core", vo=task.vo))

    def config(self, policy: Policy, vo: str) -> dict[str, Any]:
        """What the policy reads of the configuration."""
        if (policy.name, vo) not in self._configs:
            self._configs[policy.name, vo] = policy_config(policy, vo)
        return self._configs[policy.name, vo]

    def world_for(self, prod_source_label: str) -> GridSnapshot:
        """The grid as tasks of this label see it: those of users may have other storages."""
        scope = scope_of(prod_source_label)
        return self._worlds.setdefault(scope, self.world.scoped(scope))

    def ask(self, task: Task, chunk: Chunk) -> Ask:
        """The ask for a chunk, with what only the grid knows."""
        return self.world.completed(task_ask(task, chunk, self.world.now))

    def decide_queues(self, policy: Policy, ask: Ask, own: TaskFacts, seed: str) -> Decided[Queues]:
        """Decide where the jobs of a chunk go, and keep the decision to be stored."""
        columns = table_of_queues(self.world_for(ask.prod_source_label), own, policy, ask)
        return Decided(self._decide(policy, ask, own, columns, seed), ask, own, columns)

    def decide_nucleus(self, policy: Policy, ask: Ask, own: TaskFacts, seed: str) -> Decided[Nuclei]:
        """Decide where the output of a task is collected, and keep the decision to be stored."""
        columns = table_of_nuclei(self.world_for(ask.prod_source_label), own, ask)
        return Decided(self._decide(policy, ask, own, columns, seed), ask, own, columns)

    def _decide(self, policy: Policy, ask: Ask, own: TaskFacts, columns: Columns, seed: str) -> PolicyDecision:
        config = self.config(policy, ask.vo)
        decision = decide(policy, ask, columns, config, seed)
        self._taken.append(Taken(ask, decision, policy, config, own))
        return decision

    def shortfall(self, policy: Policy, decided: Decided[Any]) -> str:
        """Why nobody was found, in the words that also tell the stored decision."""
        return shortfall(decided.decision, policy, decided.ask, decided.columns, self.config(policy, decided.ask.vo))

    def readable_anywhere(self, decided: Decided[Queues]) -> bool:
        """Whether pilots can read all of the input wherever they are: there are directories that hold it."""
        there: dict[str, int] = defaultdict(int)
        for replica in decided.own.replicas:
            storage = self.world.storages[replica["storage"]].columns
            if storage["path"] and not storage["is_tape"]:
                there[replica["dataset"]] += replica["files"]
        return all(there[dataset.name] >= dataset.files for dataset in decided.ask.chunk.datasets)

    def where_able(self, task: Task, ask: Ask, own: TaskFacts) -> str:
        """In words where the jobs of a task could run at all."""
        brokers = self.policy(task)
        whole = self.world_for(ask.prod_source_label).knowing(own.replicas, own.ended)
        return where_able(brokers, ask, whole.queues(ask, per_share=brokers.per_share), self.config(brokers, ask.vo))

    def hinted(self, task: Task, ask: Ask, own: TaskFacts) -> TaskFacts:
        """With the queues of each nucleus that could run the jobs, and the work that this cycle has brought to each."""
        brokers = self.policy(task)
        whole = self.world_for(ask.prod_source_label).knowing(own.replicas, own.ended)
        queues = whole.queues(ask, per_share=brokers.per_share)
        able = able_queues(brokers, ask, queues, self.config(brokers, ask.vo))
        return replace(own, able_queues=dict(sorted(able.items())), added=tuple(self.added))

    def store(self) -> int:
        """Store what was decided since the last time: the number of the last decision, 0 where there is none.

        One that cannot be stored holds up no other; it raises only where it is the last, which is that of the task at hand.
        """
        if not self._taken:
            return 0
        if self._snapshot is None:
            self._snapshot = store_snapshot(self.world)
        taken, self._taken = self._taken, []
        try:
            return record_decisions(taken, self.revision, self._snapshot)[-1]
        except UNSTORABLE:
            for one in taken[:-1]:
                self._store_alone(one, self._snapshot)
            return record_decisions(taken[-1:], self.revision, self._snapshot)[-1]

    def _store_alone(self, one: Taken, snapshot: int) -> None:
        try:
            record_decisions([one], self.revision, snapshot)
        except UNSTORABLE:
            logger.exception("the decision of %s about task %s cannot be stored", one.policy.name, one.ask.task_id)


def begin(run: Run, tasks: Sequence[Task], *, whole: bool = False) -> Cycle:
    """Load what the run needs for these tasks: a number of queries that grows with nothing. `whole`: sizes of masters too."""
    return Cycle(load_world(run.now), load_batch(tasks, whole=whole), gdpconfig.revision())
