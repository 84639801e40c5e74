"""What one run of an agent decides on, and the decisions that it takes, which are stored together.

Not here: what follows for the task (`assign`, `generate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from brokerage.ledger.decisions import CycleDecisions
from brokerage.queries.decision_requests import DecisionRequests
from brokerage.rules.decision.assembly import DecisionRequest, TaskDecision, decide_task
from workqueues.models import Task


@dataclass(slots=True)
class DecisionCycle:
    """One run: the requests about its tasks, loaded once for all of them, its decisions, and the work it brought to nuclei."""

    requests: DecisionRequests
    decisions: CycleDecisions
    work_added: list[dict[str, Any]] = field(default_factory=list)

    def decide(self, request: DecisionRequest) -> TaskDecision[Any]:
        """Decide, and keep the decision to be stored."""
        decision = decide_task(request)
        self.decisions.add(decision)
        return decision


def begin(run: Run, tasks: Sequence[Task], *, whole: bool = False) -> DecisionCycle:
    """Load what the run needs for these tasks. `whole`: sizes of masters too."""
    requests = DecisionRequests.load(tasks, run.now, whole=whole)
    return DecisionCycle(requests, CycleDecisions(requests.snapshot, gdpconfig.revision()))
