"""Agent assign. Takes tasks assigning. Leaves them ready with a nucleus, or assigning with the reason. Next: generate."""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.agents.decision_cycle import DecisionCycle, begin
from brokerage.ledger.waits import wait_for_place
from brokerage.queries.chunks import CannotAsk
from brokerage.rules.decision.policy_choice import Unusable
from brokerage.rules.explain.explanation import why_no_nucleus
from brokerage.rules.grid.collection import STAY, collection_at
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.feed import assign as assign_task
from workqueues.models import Task
from workqueues.rules.jobs.split_rule import parse
from workqueues.splitters.check import BadPlan

BATCH = 50


@agent("assign")
def assign(run: Run) -> int:
    """Find a nucleus for every task that waits for one."""
    tasks = claim_tasks(run.id, run.claim_s, ["assigning"], BATCH)
    if not tasks:
        return 0
    cycle = begin(run.now)
    cycle.load(run, tasks, whole=True)
    try:
        return each(run, tasks, lambda run, task: assign_one(run, task, cycle))
    finally:
        cycle.decisions.store()


def assign_one(run: Run, task: Task, cycle: DecisionCycle) -> bool:
    """Decide on the nucleus of one claimed task; in a grid without nuclei the outputs stay where they are made."""
    if not cycle.requests.snapshot.has_nuclei:
        assign_task(run.id, task.id, "", run.who, "the grid has no nucleus: outputs stay where they are made")
        return True
    try:
        request = cycle.requests.for_nucleus(task, cycle.work_added)
        task_decision = cycle.decide(request)
    except (Unusable, BadPlan, CannotAsk) as error:
        wait_for_place(run, task.id, str(error), gdpconfig.value("taskbrokerage", "PENDING_NUCLEUS", vo=task.vo), cycle.world)
        return True
    decision = task_decision.decision
    if decision.outcome == "assign":
        nucleus = decision.chosen[0].name
        cycle.decisions.store()
        stays = parse(task.split_rule).output_stays
        collection = STAY if stays else collection_at(cycle.requests.snapshot.grid, nucleus)
        assign_task(run.id, task.id, nucleus, run.who, f"nucleus {nucleus}", collection.places)
        cycle.work_added.append(cycle.requests.batch.work_at(nucleus, task))
    else:
        reason = why_no_nucleus(request, task_decision)
        wait_for_place(run, task.id, reason, decision.wait_s, cycle.world, decision=task_decision)
    return True
