"""What one run of an agent decides on, and the decisions that it takes, which are stored together.

Not here: what follows for the task (`assign`, `generate`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import in_halves
from broker_site.foundation.agency.run import Run
from brokerage.ledger.decisions import CycleDecisions
from brokerage.queries.chunks import joined, load_batch
from brokerage.queries.decision_requests import DecisionRequests
from brokerage.queries.world import load_snapshot
from brokerage.queries.world_version import world_version
from brokerage.rules.decision.assembly import DecisionRequest, TaskDecision, decide_task
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.placement.wait_cause import WorldVersion
from workqueues.agents.each import set_aside
from workqueues.models import Task


@dataclass(slots=True)
class DecisionCycle:
    """One run: the requests about the tasks that are loaded, its decisions, and the work it brought to nuclei.

    `world`: which world the decisions are taken on.
    """

    requests: DecisionRequests
    decisions: CycleDecisions
    world: WorldVersion
    work_added: list[dict[str, Any]] = field(default_factory=list)

    def load(self, run: Run, tasks: list[Task], *, whole: bool = False) -> None:
        """Load what these tasks need, in place of what others did. `whole`: sizes of masters too.

        A task whose facts cannot be loaded is set aside, and is not among `tasks` any more.
        """
        faulty: set[int] = set()

        def leave(task: Task, error: Exception) -> None:
            set_aside(run, task, error)
            faulty.add(task.id)

        batches = in_halves(tasks, lambda batch: load_batch(batch, whole=whole), leave)
        tasks[:] = [task for task in tasks if task.id not in faulty]
        self.requests = replace(self.requests, batch=joined(batches))

    def decide(self, request: DecisionRequest) -> TaskDecision[Any]:
        """Decide, and keep the decision to be stored."""
        decision = decide_task(request)
        self.decisions.add(decision)
        return decision


def begin(now: datetime) -> DecisionCycle:
    """What a run decides by, whatever its tasks are."""
    world, snapshot = world_version(now), load_snapshot(now)
    requests = DecisionRequests(snapshot, joined(()), BrokerConfig(gdpconfig.component))
    return DecisionCycle(requests, CycleDecisions(snapshot, gdpconfig.revision()), world)
