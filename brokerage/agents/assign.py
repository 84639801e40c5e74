"""Agent assign. Takes tasks assigning. Leaves them ready with a nucleus, or assigning with the reason. Next: generate."""

from __future__ import annotations

from broker_site import gdpconfig
from broker_site.agency.run import Run, agent
from brokerage.agents.policy_config import policy_config
from brokerage.ledger.decisions import record_decision, store_snapshot
from brokerage.queries.snapshot import load_nuclei
from brokerage.rules.ask import Ask
from brokerage.rules.declare import policy_for
from brokerage.rules.pipeline import decide
from brokerage.rules.snapshot import Nuclei
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.feed import assign as assign_task
from workqueues.ledger.holds import stay
from workqueues.models import Task

BATCH = 50


@agent("assign")
def assign(run: Run) -> int:
    """Find a nucleus for every task that waits for one."""
    tasks = claim_tasks(run.id, run.claim_s, ["assigning"], BATCH)
    nuclei = load_nuclei() if tasks else None
    return each(run, tasks, lambda run, task: assign_one(run, task, nuclei))


def assign_one(run: Run, task: Task, nuclei: Nuclei | None) -> bool:
    """Decide on the nucleus of one claimed task; in a grid without nuclei the outputs stay where they are made."""
    if nuclei is None or not len(nuclei):
        assign_task(run.id, task.id, "", run.who, "the grid has no nucleus: outputs stay where they are made")
        return True
    policy = policy_for(task.vo, "nucleus")
    config = policy_config(policy, task.vo)
    ask = Ask(task_id=task.id, vo=task.vo, priority=task.current_priority, nucleus=task.nucleus or None)
    decided = decide(policy, ask, nuclei, config, f"{task.id}.{task.epoch}")
    record_decision(ask, decided, policy, config, gdpconfig.revision(), store_snapshot(nuclei))
    if decided.outcome == "assign":
        nucleus = decided.chosen[0].name
        assign_task(run.id, task.id, nucleus, run.who, f"nucleus {nucleus}")
    else:
        stay(run.id, task.id, "no nucleus passes; see the decision", decided.wait_s)
    return True
