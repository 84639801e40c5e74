"""Why a task has no nucleus, in a sentence; where that is for its jobs, what the queues say of them."""

from __future__ import annotations

from typing import Any

from brokerage.rules.decision.assembly import DecisionRequest, TaskDecision, able_queues, job_broker_inputs
from brokerage.rules.decision.pipeline import decide, skips
from brokerage.rules.explain.explanation import shortfall

NO_QUEUE = "job"
"""The criterion that skips a nucleus whose queues cannot run the jobs."""
MOST_NAMED = 3
"""Sites that a sentence names."""


def why_no_nucleus(request: DecisionRequest, task_decision: TaskDecision[Any]) -> str:
    """The reason with which the task waits."""
    reason, criteria = shortfall(task_decision), request.policy.criteria
    if any(criteria[row].label == NO_QUEUE for row in task_decision.decision.first.tolist() if row >= 0):
        reason += f"; {where_able(request)}"
    return reason


def where_able(request: DecisionRequest) -> str:
    """Where the jobs of a task could run at all: sites, or the closest queue and what it lacks."""
    inputs = job_broker_inputs(request)
    if sites := able_queues(*inputs):
        more = f" and {len(sites) - MOST_NAMED} more sites" if len(sites) > MOST_NAMED else ""
        return f"its jobs could run at {', '.join(sorted(sites)[:MOST_NAMED])}{more}"
    decision = decide(*inputs, "")
    if not decision.closest:
        return "there is no queue for such tasks"
    skip = skips(decision, *inputs)[decision.closest]
    return f"its jobs can run nowhere: the closest queue is {decision.closest}, {skip.reason} ({skip.criterion})"
