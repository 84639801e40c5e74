"""Pilots count as seen by whatever they do: asks in vain, asks that get a job, heartbeats, reports."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel import clock
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.ledger.lease import Lease, lease
from brokerage.ledger.settle import settle_job
from brokerage.models import ComputingQueue, DeclaredSlots, Job, Pilot
from brokerage.queries.waiting import WAITING
from brokerage.queries.world import load_snapshot
from monitoring.queries.queues import all_queue_rows
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import good, run_agents

pytestmark = pytest.mark.django_db
HOURS_4 = timedelta(hours=4)


@pytest.fixture
def alpha() -> ComputingQueue:
    """A queue where three jobs wait; the pilot by which its grid was made has left."""
    (queue,) = grid("ALPHA")
    DeclaredSlots.objects.create(queue=queue, n=3)
    gdpconfig.set_override("jobbroker", "REBROKER_SILENT", "1d", who="ada", why="the jobs stay")
    submitted(parameters(nEvents=30, nEventsPerJob=10))
    run_agents(3)
    Pilot.objects.all().delete()
    return queue


def take(queue: ComputingQueue, pilot_id: UUID) -> Lease:
    groups = [waiting.id for waiting in WAITING.of(queue.id, fresh=True).rows]
    leased = lease(groups, pilot_id, uuid4(), 60)
    assert leased is not None
    return leased


def set_back(*leases: Lease) -> None:
    """The pilots asked in vain four hours ago last, these leases were last renewed then."""
    Pilot.objects.update(last_seen=clock.now() - HOURS_4)
    Job.objects.filter(id__in=[one.job_id for one in leases]).update(last_seen=clock.now() - HOURS_4)


def pilots_in_three_hours() -> int:
    return sum(entry["requests_3h"] for entry in load_snapshot().facts.pilots if entry["queue"] == "ALPHA")


def test_a_pilot_that_ends_a_job_and_takes_the_next_counts_as_seen(alpha: ComputingQueue) -> None:
    busy, silent = pilot(alpha, "busy"), pilot(alpha, "silent")
    first, other = take(alpha, busy), take(alpha, silent)
    set_back(first, other)
    run_agents(1, ["reap"])
    assert pilots_in_three_hours() == 0
    settle_job(first.job_id, first.epoch, good(first.job_id), "pilot")
    take(alpha, busy)
    run_agents(1, ["reap"])
    assert pilots_in_three_hours() == 1
    assert [row.pilots for row in all_queue_rows()] == [1]


def test_a_pilot_that_only_renews_its_lease_counts_as_seen(alpha: ComputingQueue) -> None:
    held = take(alpha, pilot(alpha, "busy"))
    set_back(held)
    assert beat([SignOfLife(held.job_id, held.epoch)]) != [None]
    run_agents(1, ["reap"])
    assert pilots_in_three_hours() == 1


def test_a_pilot_at_work_is_written_once_a_minute(alpha: ComputingQueue) -> None:
    held = take(alpha, pilot(alpha, "busy"))
    set_back(held)
    beat([SignOfLife(held.job_id, held.epoch)])
    run_agents(1, ["reap"])
    first = Pilot.objects.get().last_seen
    beat([SignOfLife(held.job_id, held.epoch)])
    run_agents(1, ["reap"])
    assert Pilot.objects.get().last_seen == first
