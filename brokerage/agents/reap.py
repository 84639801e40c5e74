"""Agent reap. Takes jobs whose lease ran out or that stayed too long in a state. Leaves them failed or closed, their files ready.
Next: generate.
"""

from __future__ import annotations

from math import inf

from broker_site import gdpconfig
from broker_site.agency.run import Run, agent
from brokerage.ledger.ending import Limit, end_overdue, expire_leases
from brokerage.models import ComputingQueue
from brokerage.rules.declare import Config
from brokerage.rules.timeouts import ENDINGS, QueueFacts, limit_s, suspended

BATCH = 1000


@agent("reap")
def reap(run: Run) -> int:
    """End what is over: how many jobs."""
    config = gdpconfig.component("job_timeout", app="pandaserver")
    queues = list(ComputingQueue.objects.all())
    limits = [limit for queue in queues for limit in queue_limits(run, queue, config)]
    resting = [queue.id for queue in queues if suspended(QueueFacts(queue.status, queue.catchall))]
    return expire_leases(run.who, BATCH, resting) + end_overdue(limits, config["HIGH_PRIORITY"], ENDINGS, run.who, BATCH)


def queue_limits(run: Run, queue: ComputingQueue, config: Config) -> list[Limit]:
    """The limits of every state at one queue."""
    facts = QueueFacts(
        status=queue.status,
        catchall=queue.catchall,
        workflow=queue.workflow,
        idle_s=(run.now - queue.last_start).total_seconds() if queue.last_start else None,
        transtimehi=queue.attributes.get("transtimehi"),
        transtimelo=queue.attributes.get("transtimelo"),
    )
    high = config["HIGH_PRIORITY"]
    found = []
    for state in ENDINGS:
        low_s, high_s = limit_s(state, high - 1, facts, config), limit_s(state, high, facts, config)
        if low_s is not None or high_s is not None:
            found.append(Limit(queue.id, state, low_s or inf, high_s or inf))
    return found
