"""Agent wake. Takes pending tasks whose wait is over, and files picked by generators that died. Leaves the tasks in the state
before, or exhausted after the time-out. Next: whoever works on that state.
"""

from __future__ import annotations

from broker_site import gdpconfig
from broker_site.agency.look import look
from broker_site.agency.run import Run, agent
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.files import give_back_picked
from workqueues.ledger.holds import wake as wake_task
from workqueues.ledger.moves import Stale
from workqueues.models import Task
from workqueues.queries.parents import parent_facts
from workqueues.rules.pending import woken
from workqueues.states import TASK

BATCH = 100
LIVE = TASK.live


@agent("wake")
def wake(run: Run) -> int:
    """Wake what is due, and give back what nobody works on."""
    due = claim_tasks(run.id, run.claim_s, ["pending"], BATCH, work="due")
    for task in due:
        wake_one(run, task)
    if due:
        look("refine", "feed", "assign", "generate")
    return len(due) + _give_back(run)


def wake_one(run: Run, task: Task) -> None:
    """Wake one claimed task."""
    limit = gdpconfig.value("watchdog", "PENDING_TIMEOUT_<label>", label=task.prod_source_label)
    spell = (run.now - task.frozen_time).total_seconds() if task.frozen_time else None
    parent = parent_facts(task)
    target = woken(spell, limit, parent is not None and parent.status not in TASK.final)
    try:
        wake_task(run.id, task.id, run.who, exhausted=target == "exhausted")
    except Stale:
        return  # a command has the task by now


def _give_back(run: Run) -> int:
    """A claim that ran out belongs to a run that died or hangs: what it had picked is ready again."""
    dead = claim_tasks(run.id, run.claim_s, LIVE, BATCH, work="dead claim")
    for task in dead:
        give_back_picked(run.id, task.id)
        release(task.id, run.id)
    if dead:
        look("generate")
    return len(dead)
