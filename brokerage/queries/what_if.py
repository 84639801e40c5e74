"""What the brokerage would decide about a task now, as it is or with something changed: only read, nothing picked or written.

The transaction is read-only and is rolled back, so that not even a bug below could store anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, transaction

from broker_site.foundation.kernel import clock
from brokerage.queries.asks import sites_with
from brokerage.queries.chunks import CannotAsk
from brokerage.queries.decision_requests import DecisionRequests
from brokerage.queries.feeds import stale_feeds
from brokerage.queries.recent_snapshot import recent_snapshot
from brokerage.queries.site_limits import station_sites
from brokerage.queries.usable_input import peek
from brokerage.rules.decision.assembly import DecisionRequest
from brokerage.rules.decision.policy_choice import Unusable
from brokerage.rules.explain.edits import Edit, edited_ask
from brokerage.rules.explain.what_if import WhatIf
from brokerage.rules.explain.what_if import what_if as decide_with_edits
from brokerage.rules.world.grid_snapshot import GridSnapshot
from workqueues.models import Task
from workqueues.splitters.check import BadPlan
from workqueues.states import TASK

LIMITS = "SELECT set_config('transaction_read_only', 'on', true), set_config('statement_timeout', %s, true)"
LONGEST_MS = 10_000
"""A statement of a what-if that takes longer is ended."""
MOST_FILES = 2000
"""Files that are looked at."""


class NothingToDecide(Exception):
    """The brokerage has nothing to decide about the task; the message says why."""


def what_if(task: Task, edits: Sequence[Edit] = (), *, lately: bool = False) -> WhatIf:
    """Decide now, and once more with the edits. `lately`: on the snapshot that pages share. Raises NothingToDecide, BadEdits."""
    try:
        with reading_only():
            request = current_request(task, recent_snapshot() if lately else None)
            edits = _with_offers(request, edits)
        return decide_with_edits(request, edits)
    except (Unusable, BadPlan, CannotAsk) as no:
        raise NothingToDecide(str(no)) from no


def _with_offers(request: DecisionRequest, edits: Sequence[Edit]) -> Sequence[Edit]:
    """The edits, and where the stations are offered now that they name."""
    ask, _, _ = edited_ask(request.ask, edits)
    if ask.stations == request.ask.stations or any(edit.name == "station_sites" for edit in edits):
        return edits
    return [*edits, Edit("station_sites", list(sites_with(ask.stations, station_sites(ask.stations))))]


@contextmanager
def reading_only() -> Iterator[None]:
    """A transaction that cannot write and leaves nothing."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(LIMITS, [str(LONGEST_MS)])
        yield
        transaction.set_rollback(True)


def current_request(task: Task, snapshot: GridSnapshot | None = None) -> DecisionRequest:
    """What the agents would ask now. Raises NothingToDecide, BadPlan, CannotAsk, and Unusable for what is not there."""
    if task.status in TASK.final:
        raise NothingToDecide(f"the task has ended: {task.status}")
    if (task.old_status if task.status == "pending" else task.status) == "assigning":
        return DecisionRequests.load([task], whole=True, snapshot=snapshot).for_nucleus(task)
    if stale := stale_feeds(clock.now()):
        raise NothingToDecide(stale[0])
    requests = DecisionRequests.load([task], snapshot=snapshot)
    masters = requests.batch.masters(task)
    if not masters:
        raise NothingToDecide("the datasets of the task are not known yet")
    for dataset in masters:
        usable = peek(task, dataset, MOST_FILES)
        if jobs := usable.smallest():
            return requests.for_queues(task, dataset, usable, jobs)
    raise NothingToDecide("no file of its input waits to be used")
