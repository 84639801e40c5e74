"""Fast rebrokerage, a part of the agent reap: jobs of a share leave a queue where far more of them wait than run."""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from brokerage.config_keys import SERVER
from brokerage.ledger.expiry import Leave
from brokerage.ledger.rebrokering import close_waiting
from brokerage.queries.fast_rebrokerage import jobs_leaving, shares_at_queues
from brokerage.queries.movable_jobs import waiting_at
from brokerage.rules.dispatch.fast_rebrokerage import QUEUED, moves, thresholds
from workqueues.models import GlobalShare


def rebroker_fast(run: Run, leave: Leave) -> int:
    """Close the jobs that are too many where they wait, so that they are brokered anew: how many.

    Shares without a threshold of their own are exempt; while none has one nothing is counted.
    """
    leaves = list(GlobalShare.objects.values_list("vo", "name"))
    configs = {vo: gdpconfig.component("rebroker", vo=vo, app=SERVER) for vo in {vo for vo, _ in leaves}}
    limits = {(vo, name): thresholds(name, configs[vo]) for vo, name in leaves}
    limits = {share: over for share, over in limits.items() if over.limit is not None}
    closed = 0
    for move in moves(shares_at_queues(limits.keys()), limits):
        tasks = [at.task_id for at in waiting_at([move.queue_id], states=QUEUED) if not at.stay]
        jobs = jobs_leaving(move, tasks, configs[move.vo]["FAST_REBRO_MIN_AGE"])
        closed += close_waiting(jobs, run.who, move.why, leave)
    return closed
