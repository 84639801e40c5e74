"""Agent command. Takes tasks with an accepted command. Leaves them aborted, passed or ready once no job is in the way, and the
waiting jobs of those that were paused or resumed held back or let go; those that were reassigned go on once their jobs are gone.
Next: finish or generate.
"""

from __future__ import annotations

from broker_site.foundation.agency.look import look
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.bulk import carry_on
from brokerage.ledger.expiry import kill_jobs
from brokerage.ledger.paused_tasks import follow_pauses
from brokerage.ledger.reassigned_tasks import follow_reassigned
from brokerage.queries.jobs import failure_rate, live_jobs, live_merges
from brokerage.queries.retry_limits import retry_excess
from brokerage.states import JOB
from workqueues.agents.each import each
from workqueues.catalogue.outputs import close_outputs
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.commands import (
    call_off_retry,
    carry_out_finish,
    carry_out_kill,
    carry_out_retry,
    exhaust_retry,
    kill_children,
)
from workqueues.ledger.elements.returning import cancel
from workqueues.ledger.holds import kick_children
from workqueues.ledger.incexec import carry_out_incexec
from workqueues.models import Task
from workqueues.rules.task.commands import COMMANDS
from workqueues.states import TASK

BATCH = 50
BULK_S = 10.0
"""Time that a run gives to acts on many tasks or jobs; while there is more of them it runs again at once."""


@agent("command")
def command(run: Run) -> int:
    """Carry on with every accepted command, and with acts on many: how many tasks and targets were done with."""
    followed = follow_pauses(run.who) + follow_reassigned(run.who) + carry_on(run.now, BULK_S)
    return followed + each(run, claim_tasks(run.id, run.claim_s, TASK.commanded, BATCH), carry_out)


def carry_out(run: Run, task: Task) -> bool:
    """Do what can be done of one claimed task's command: whether it is done."""
    if task.status in TASK.rerun:
        _run_again(run, task)
        return True
    live = live_jobs(task.id)
    soft = task.status == "finishing" and COMMANDS["finish"].has("soft", task.command_comment)
    who, why = task.command_by or run.who, f"task command {task.command}"
    held = cancel(task.id, who, why, spared=soft) if task.work_to != "own" else 0
    if not live and not held:
        if task.status == "aborting":
            kill_children(task.id, run.who)
            close_outputs(task)
            carry_out_kill(run.id, task.id, run.who, failure_rate(task.id))
            if kick_children(task.id):
                look("wake")
        else:
            carry_out_finish(run.id, task.id, run.who)
        return True
    merges = live_merges(task.id) if soft else frozenset()
    doomed = [j for j in live if not (soft and (j.status in JOB.spared or j.id in merges))]
    kill_jobs(doomed, who, why)
    release(task.id, run.id)
    return False


def _run_again(run: Run, task: Task) -> None:
    """Carry a retry or an incremental execution out, unless the task is beyond a limit of retries, and nobody said that this does
    not matter.
    """
    beyond = COMMANDS[task.command or "retry"].has("transcend", task.command_comment)
    excess = None if beyond else retry_excess(task)
    if excess is None:
        carry_out = carry_out_retry if task.status == "toretry" else carry_out_incexec
        carry_out(run.id, task.id, task.params.task_params.get("maxAttempt") or 3, run.who)
    elif excess.exhausts:
        exhaust_retry(run.id, task.id, excess.reason, run.who)
    else:
        call_off_retry(run.id, task.id, excess.reason, run.who)
