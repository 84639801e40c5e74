"""Agent reap. Takes jobs whose lease ran out, that stayed too long in a state, or that wait where they cannot start, or where far
more wait than run. Leaves them failed or closed, their files ready; jobs that were to wait at their queue for a time only, open.
Next: generate. Pilots that hold the other jobs count as seen; files of transient datasets go when their time is over, entries of
withdrawn outputs with their last copy, and now and then task queues without jobs, counts of asks, and expired credentials.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, groupby
from math import inf

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import forget_expired
from broker_site.foundation.agency.batches import in_words, is_of_others, one_by_one
from broker_site.foundation.agency.run import Run, agent
from brokerage.agents.fast_rebrokerage import rebroker_fast
from brokerage.ledger.empty_task_queues import remove_empty_task_queues
from brokerage.ledger.expiry import Leave, Limit, end_overdue, expire_leases
from brokerage.ledger.job_openings import open_due
from brokerage.ledger.last_asks import forget_old_asks
from brokerage.ledger.pilots import note_pilots_at_work
from brokerage.ledger.rebrokering import rebroker, rebroker_open
from brokerage.ledger.refiled_jobs import refile
from brokerage.ledger.transfers.lifetimes import remove_expired
from brokerage.ledger.transfers.withdrawal import forget_emptied
from brokerage.models import ComputingQueue
from brokerage.queries.movable_jobs import waiting_at, waiting_open
from brokerage.queries.open_places import open_places
from brokerage.queries.stranded_jobs import queue_services, stranded_task_queues
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.dispatch.timeout_table import ENDINGS, kinds_alike
from brokerage.rules.dispatch.timeouts import QueueFacts, as_one, limit_s, suspended
from brokerage.rules.facts.ask import Config
from workqueues.ledger.holds import note_reason
from workqueues.ledger.moves import Stale

BATCH = 1000
DAY_S = 86400.0
NO_QUEUE_LEFT = "none of the queues to which it was open can run it any more"


@dataclass
class Cleanup:
    """Something that is done now and then: once a period, s, in each process that runs the agent."""

    period_s: Callable[[], float]
    clean: Callable[[], object]
    _last: datetime | None = None

    def run(self, now: datetime) -> None:
        """Do it, if a period has passed since this process did so."""
        if self._last is None or now - self._last >= timedelta(seconds=self.period_s()):
            self.clean()
            self._last = now


def _empty_s() -> float:
    return float(gdpconfig.value("dispatch", "EMPTY_TASK_QUEUE"))


CREDENTIALS = Cleanup(
    lambda: gdpconfig.value("agents", "FORGET_PERIOD"),
    lambda: forget_expired(gdpconfig.value("agents", "KEEP_EXPIRED") / DAY_S),
)
ASKS = Cleanup(lambda: gdpconfig.value("agents", "FORGET_PERIOD"), forget_old_asks)
TASK_QUEUES = Cleanup(lambda: _empty_s() / 5, lambda: remove_empty_task_queues(BATCH, _empty_s()))


@agent("reap")
def reap(run: Run) -> int:
    """End what is over, open what has waited: how many jobs. One that cannot be ended is left, with the reason on its task."""

    def leave_queue(queue: ComputingQueue, error: Exception) -> None:
        run.leave(f"the time limits of queue {queue.name}", error)

    def leave(job: JobVersion, error: Exception) -> None:
        run.leave(f"job {job.id} of task {job.task_id}", error)
        if not is_of_others(error):
            note_reason(job.task_id, f"job {job.id} cannot be ended: {in_words(error)}")

    config = gdpconfig.component("job_timeout", app="pandaserver")
    queues = list(ComputingQueue.objects.all())
    limits = list(chain.from_iterable(one_by_one(queues, lambda queue: queue_limits(run, queue, config), leave_queue)))
    limits += open_limits({queue.id: facts_of(run, queue) for queue in queues}, config)
    note_pilots_at_work()
    resting = [queue.id for queue in queues if suspended(QueueFacts(queue.status, queue.catchall))]
    ended = expire_leases(run.who, BATCH, resting, leave)
    ended += end_overdue(limits, config["HIGH_PRIORITY"], ENDINGS, run.who, BATCH, leave)
    ended += rebroker_stranded(run, leave) + rebroker_fast(run, leave)
    ended += open_due(BATCH, run.who) + refiled(run)
    remove_expired(BATCH, BATCH, run.who)
    forget_emptied(BATCH)
    CREDENTIALS.run(run.now)
    ASKS.run(run.now)
    TASK_QUEUES.run(run.now)
    return ended


def refiled(run: Run) -> int:
    """Put jobs of before an update into the task queues of their owners: how many."""
    try:
        return refile(BATCH)
    except Stale as error:
        run.leave("jobs in task queues without an owner", error)
        return 0


def rebroker_stranded(run: Run, leave: Leave) -> int:
    """Close the jobs that wait at queues which have stopped, or which no pilot serves: they are brokered anew."""
    stopped_s, dead_s = (gdpconfig.value("jobbroker", key) for key in ("REBROKER_STOPPED", "REBROKER_SILENT"))
    reasons = {queue.id: why for queue in queue_services() if (why := queue.left(stopped_s, dead_s))}
    by_queue = groupby(waiting_at(list(reasons)), key=lambda at: at.queue_id)
    closed = sum(rebroker(list(waiting), run.who, reasons[queue or 0], leave) for queue, waiting in by_queue)
    task_queues = stranded_task_queues(reasons)
    tasks = [at.task_id for at in waiting_open(task_queues) if not at.stay]
    return closed + rebroker_open(tasks, run.who, NO_QUEUE_LEFT, leave, task_queues)


def facts_of(run: Run, queue: ComputingQueue) -> QueueFacts:
    """What the limits ask of a queue."""
    return QueueFacts(
        status=queue.status,
        catchall=queue.catchall,
        workflow=queue.workflow,
        idle_s=(run.now - queue.last_start).total_seconds() if queue.last_start else None,
        transtimehi=queue.attributes.get("transtimehi"),
        transtimelo=queue.attributes.get("transtimelo"),
    )


def queue_limits(run: Run, queue: ComputingQueue, config: Config) -> list[Limit]:
    """The limits of every state at one queue."""
    return limits_of(queue.id, facts_of(run, queue), config)


def open_limits(queues: Mapping[int, QueueFacts], config: Config) -> list[Limit]:
    """Those of open jobs, by the queues (ids) to which they are open; task queues with the same limits are taken together."""
    task_queues: dict[tuple[Limit, ...], list[int]] = defaultdict(list)
    for places in open_places():
        facts = as_one([queues[id_] for id_ in places.queues if id_ in queues])
        task_queues[tuple(limits_of(None, facts, config))] += places.task_queues
    return [replace(limit, task_queues=tuple(ids)) for limits, ids in task_queues.items() for limit in limits]


def limits_of(queue_id: int | None, facts: QueueFacts, config: Config) -> list[Limit]:
    """The same by what is known of the queue, or of those of open jobs."""
    high = config["HIGH_PRIORITY"]
    limits = []
    for state in ENDINGS:
        for kinds in kinds_alike(state):
            low_s, high_s = (limit_s(state, priority, facts, config, kinds[0]) for priority in (high - 1, high))
            if low_s is not None or high_s is not None:
                limits.append(Limit(queue_id, state, low_s or inf, high_s or inf, kinds))
    return limits
