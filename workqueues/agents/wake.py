"""Agent wake. Takes pending and throttled tasks whose wait is over, exhausted ones that nobody retried, and files picked by
generators that died. Leaves the tasks in the state before, exhausted after the time-out of pending ones, or passed. Next: whoever
works on that state.
"""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look
from broker_site.foundation.agency.run import Run, agent
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.holds import wake as wake_task
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.queries.tasks import parent_facts
from workqueues.rules.task.pending import times_out
from workqueues.states import TASK

BATCH = 100


@agent("wake")
def wake(run: Run) -> int:
    """Wake what is due, and give back what nobody works on: a claim that ran out belongs to a run that died or hangs."""
    due = each(run, claim_tasks(run.id, run.claim_s, TASK.resting, BATCH), wake_one)
    returned = each(run, claim_tasks(run.id, run.claim_s, TASK.live, BATCH, work="dead claim"), give_back)
    if returned:
        look("generate")
    return due + returned


def wake_one(run: Run, task: Task) -> bool:
    limit = gdpconfig.value("watchdog", "PENDING_TIMEOUT_<label>", label=task.prod_source_label)
    spell = (run.now - task.frozen_time).total_seconds() if task.frozen_time else None
    parent = parent_facts(task)
    parent_runs = parent is not None and parent.status not in TASK.final
    over = task.status == "pending" and times_out(spell, limit, parent_runs)
    wake_task(run.id, task.id, run.who, over_s=limit if over else None)
    return True


def give_back(run: Run, task: Task) -> bool:
    """Give back what a dead run had picked from one task, claimed anew."""
    give_back_picked(run.id, task.id)
    release(task.id, run.id)
    return True
