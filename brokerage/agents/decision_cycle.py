"""What one run of an agent decides on, and the decisions that it takes, which are stored together.

Not here: what follows for the task (`assign`, `generate`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """One run: the requests about its tasks, loaded once for all of them, its decisions, and the work it brought to nuclei.

    `world`: which world the decisions are taken on.
    """

    requests: DecisionRequests
    decisions: CycleDecisions
    world: WorldVersion
    work_added: list[dict[str, Any]] = field(default_factory=list)

    def decide(self, request: DecisionRequest) -> TaskDecision[Any]:
        """Decide, and keep the decision to be stored."""
        decision = decide_task(request)
        self.decisions.add(decision)
        return decision


def begin(run: Run, tasks: list[Task], *, whole: bool = False) -> DecisionCycle:
    """Load what the run needs for these tasks. `whole`: sizes of masters too.

    A task whose facts cannot be loaded is set aside, and is not among `tasks` any more.
    """
    world = world_version(run.now)
    snapshot = load_snapshot(run.now)
    faulty: set[int] = set()

    def leave(task: Task, error: Exception) -> None:
        set_aside(run, task, error)
        faulty.add(task.id)

    batches = in_halves(tasks, lambda batch: load_batch(batch, whole=whole), leave)
    tasks[:] = [task for task in tasks if task.id not in faulty]
    requests = DecisionRequests(snapshot, joined(batches), BrokerConfig(gdpconfig.component))
    return DecisionCycle(requests, CycleDecisions(snapshot, gdpconfig.revision()), world)
