"""Steps of flow tests: the agents once round, and pilots' part done through the ledger."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

from django.db import IntegrityError, connection, transaction
from django.db.models import F

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.sql.prepared import Prepared
from brokerage.feeds.storage_roots import put_mark
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.ledger.lease import Ask, HeldAtMost, Lease, lease
from brokerage.ledger.match_gauges import COUNTING, COUNTING_TYPES, PARAMETERS, asked
from brokerage.ledger.match_limits import Limits
from brokerage.ledger.settle import settle_job
from brokerage.models import ComputingQueue, StorageEndpoint
from brokerage.queries.dispatch_policies import policy_of
from brokerage.queries.job_document import job_document
from brokerage.queries.waiting import WAITING, AskedQueue
from brokerage.rules.dispatch.match_limits import FREE, Held, Values
from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from brokerage.rules.dispatch.waiting_list import WaitingQueue
from brokerage.rules.facts.snapshot import CORE_POWER
from tests.builders import pilot
from workqueues.models import File, Task
from workqueues.states import TASK

ROUND = (
    "pull",
    "refine",
    "feed",
    "assign",
    "generate",
    "offer",
    "assess",
    "merge",
    "command",
    "wake",
    "reap",
    "finish",
    "achieve",
    "share",
    "boost",
    "free",
    "slots",
    "submit",
    "transfer",
    "refresh",
    "storage",
    "links",
    "evict",
    "stage",
    "limit",
    "watch",
    "tally",
    "seal",
)
"""Every agent."""

BESIDE = frozenset(
    {
        "offer",
        "pull",
        "share",
        "boost",
        "slots",
        "submit",
        "transfer",
        "refresh",
        "links",
        "evict",
        "stage",
        "limit",
        "watch",
        "tally",
        "seal",
    }
)
LIFE = tuple(name for name in ROUND if name not in BESIDE)
"""Those that bring a task from its submission to its end where its files lie still and nothing else is asked of it."""


def run_agents(rounds: int = 2, names: Sequence[str] = LIFE) -> None:
    """These agents, as often as it takes for one to see what the one before left.

    Between rounds so much time goes by that files whose last try failed are due again, and tasks for which the queues were full.
    """
    for _ in range(rounds):
        let_retry()
        Task.objects.filter(status__in=TASK.generating).update(next_look_at=F("next_look_at") - timedelta(seconds=2))
        for name in countable(names):
            run_agent(name, looked=True)


def countable(names: Iterable[str]) -> list[str]:
    """These agents, without the one that counts while a test is one transaction: it counts what is committed.

    To a snapshot what its own transaction wrote is there or not by what others do meanwhile; the agent itself moves no jobs.
    """
    return [name for name in names if name != "tally" or not connection.in_atomic_block]


def take(queue: ComputingQueue, lease_s: float = 60) -> Lease:
    """The next job of the queue, running in a new pilot."""
    leased = try_take(queue, lease_s)
    assert leased is not None, f"no job waits at {queue.name}"
    return leased


def try_take(queue: ComputingQueue, lease_s: float = 60) -> Lease | None:
    """The next job of the queue, running in a new pilot, if one waits."""
    asked = AskedQueue(queue.id, partial(policy_of, queue.name), gdpconfig.component("dispatch"))
    tried: list[WaitingQueue] = []

    holder, request = pilot(queue, str(uuid4())), uuid4()

    def groups() -> Iterator[int | Ask]:
        for waiting, _ in WAITING.offers(asked, Resource(queue.name, cores=0, tags=None, grid_ces=None), fresh=True):
            tried.append(waiting)
            ask = Ask(waiting.id, holder, request, lease_s, HeldAtMost())
            yield placed_at(queue.id, ask, waiting) if waiting.is_open else ask

    leased = lease(groups(), holder, request, lease_s)
    if leased is not None:
        WAITING.handed_out(tried[-1], CORE_POWER * tried[-1].requirement.cores)
        assert beat([SignOfLife(leased.job_id, leased.epoch, "running")]) != [None]
    return leased


def placed_at(queue_id: int, ask: Ask, waiting: WaitingQueue) -> Ask:
    """The ask for open jobs, which are placed at the queue."""
    return ask._replace(queue_id=queue_id, storage=waiting.storage, own_datasets=waiting.own_datasets)


ASKED = Prepared("asked_without_job", PARAMETERS, f"WITH {asked(first=1)} SELECT passed FROM limits")
MATCH = Prepared("match_without_job", COUNTING_TYPES, COUNTING.format(job="SELECT"))


def noted(limits: Limits, site: str, values: Values, *, ces: Collection[str] = ()) -> Held:
    """A job with these values is matched at the site, and counted there: what holds it back, if anything."""
    if (passing := limits.passing(site, values, ces)) is None:
        return FREE
    began = time.monotonic()
    try:
        with transaction.atomic():
            ((passed,),) = ASKED.run(*passing.columns)
            if passed:
                MATCH.run(str(uuid4()), str(uuid4()), *passing.gauges)
                limits.matched(site, passing)
                return FREE
    except IntegrityError:
        pass  # another match came first
    limits.not_matched(passing)
    refused = limits.refused(site, passing, time.monotonic() - began)
    return refused or noted(limits, site, values, ces=ces)  # refused by none: their gauges were not there, and are now


def good(job_id: int) -> Report:
    """A report with every output."""
    outputs = [ReportedOutput(o["lfn"], 10, "0000000a", o["storage"]) for o in job_document(job_id)["outputs"]]
    return Report("finished", outputs)


BAD = Report("failed", error_code="PAYLOAD_EXIT", error_message="exit code 1", exit_code=1)


def end(leased: Lease, report: Report | None = None) -> str:
    """Settle a job: well, or as reported."""
    return settle_job(leased.job_id, leased.epoch, report or good(leased.job_id), "pilot")


def run_jobs(queue: ComputingQueue, report: Report | None = None) -> int:
    """Lease and settle every ready job of the queue: how many."""
    n = 0
    while (leased := try_take(queue)) is not None:
        end(leased, report)
        n += 1
    return n


def mark_storages(folder: Path) -> None:
    """Give every storage endpoint a marked root below the folder, the one that it has or one named after its queue."""
    for endpoint in StorageEndpoint.objects.order_by("name"):
        root = Path(endpoint.path or folder / endpoint.name.removesuffix("_DISK"))
        root.mkdir(parents=True, exist_ok=True)
        StorageEndpoint.objects.filter(name=endpoint.name).update(path=str(root), mark=put_mark(endpoint.name, root))


def let_retry() -> None:
    """Time goes by until every file that waits after a try that failed is due again."""
    File.objects.filter(retry_due__isnull=False).update(retry_due=F("retry_due") - timedelta(hours=1))


def let_confirm() -> None:
    """Time goes by until every file that is looked for is due, and losses are confirmed."""
    an_hour = timedelta(hours=1)
    File.objects.filter(look_due__isnull=False).update(absent_since=F("absent_since") - an_hour, look_due=F("look_due") - an_hour)
