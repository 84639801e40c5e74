"""The grid of the moment as the brokers get it from the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.kernel.clock import now
from brokerage.filters.activity import inactive
from brokerage.ledger.lease import lease
from brokerage.models import ComputingQueue, DeclaredSlots, Job, Link, Measured, Site, Software, StorageEndpoint
from brokerage.queries.waiting import WAITING
from brokerage.queries.what_if import NothingToDecide, current_request
from brokerage.queries.world import load_snapshot
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.snapshot import Queues
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import run_agents, run_jobs, take
from tests.monitoring.answers import counted
from workqueues.models import Task

pytestmark = pytest.mark.django_db


def working(**more: Any) -> Task:
    """A task with four jobs, one of them running."""
    (queue,) = grid("ALPHA")
    task = submitted(parameters(nEvents=40, nEventsPerJob=10, **more))
    run_agents()
    take(queue)
    task.refresh_from_db()
    return task


def send(queue: ComputingQueue) -> None:
    """A job of the queue sent to a new pilot."""
    groups = [w.id for w in WAITING.of(queue.id, fresh=True).rows]
    assert lease(groups, pilot(queue, str(uuid4())), uuid4(), 60) is not None


def test_jobs_are_counted_by_state_at_their_queue() -> None:
    working()
    queues = load_snapshot().queues(Ask())
    assert queues.name.tolist() == ["ALPHA"]
    assert (queues.activated[0], queues.running[0], queues.requests_3h[0]) == (3, 1, 2)


def test_jobs_of_another_share_are_told_apart() -> None:
    task = working()
    Task.objects.filter(id=task.id).update(gshare="Users")
    mine, other = (load_snapshot().queues(Ask(share=share)) for share in ("Users", "Managed"))
    assert (mine.activated[0], mine.others_waiting[0], mine.running[0]) == (3, 0, 1)
    assert (other.activated[0], other.others_waiting[0], other.others_running[0]) == (0, 3, 1)


def test_what_a_user_has_is_known_when_the_user_asks() -> None:
    working()
    world = load_snapshot()
    usage = world.completed(Ask(user="ada")).usage
    assert (usage.running_jobs, usage.queued_jobs, usage.queued_cores) == (1, 3, 3)
    assert world.completed(Ask(user="bob")).usage.running_jobs == 0
    assert world.queues(Ask(user="ada")).user_queued[0] == 3


@pytest.mark.parametrize("state", ["holding", "transferring"])
def test_jobs_whose_output_is_on_the_way_are_not_waiting_jobs_of_their_user(state: str) -> None:
    working()
    Job.objects.filter(status="running").update(status=state, lease_until=None, lease_holder=None, epoch=F("epoch") + 1)
    usage = load_snapshot().completed(Ask(user="ada")).usage
    assert (usage.running_jobs, usage.queued_jobs, usage.queued_cores) == (0, 3, 3)


def takes_urgent_work(queues: Queues) -> list[bool]:
    """Which queues are not inactive."""
    verdicts, _ = inactive(Ask(priority=800), queues, {"INACTIVE_AFTER": 7200.0})
    assert isinstance(verdicts, tuple)
    return np.broadcast_to(verdicts[0], len(queues)).tolist()


def test_a_queue_where_jobs_wait_for_hours_and_none_ever_began_takes_no_urgent_work() -> None:
    working()
    ComputingQueue.objects.update(last_start=None)
    Job.objects.filter(status="activated").update(status_since=now() - timedelta(hours=3))
    queues = load_snapshot().queues(Ask())
    assert queues.idle_s[0] == pytest.approx(3 * 3600, abs=60)
    assert takes_urgent_work(queues) == [False]
    Job.objects.filter(status="activated").update(status_since=now() - timedelta(hours=1))
    assert takes_urgent_work(load_snapshot().queues(Ask())) == [True]


def test_remaining_work_counts_at_the_nucleus_of_the_task() -> None:
    task = working(cpuTime=2, cpuTimeUnit="HS06sPerEvent")
    Site.objects.update(nucleus=True)
    Task.objects.filter(id=task.id).update(nucleus="SITE_ALPHA")
    nuclei = load_snapshot().nuclei(Ask())
    assert (nuclei.total_rw.tolist(), nuclei.work_ahead.tolist()) == ([80.0], [80.0])
    assert load_snapshot().nuclei(Ask(priority=501)).work_ahead.tolist() == [0.0]
    assert load_snapshot().nuclei(Ask(share="Other")).work_ahead.tolist() == [0.0]
    added = {"nucleus": "SITE_ALPHA", "share": "Other", "priority": 500, "rw": 7.0}
    later = load_snapshot().nuclei(Ask(share="Other"), added=[added])
    assert (later.total_rw.tolist(), later.work_ahead.tolist()) == ([87.0], [7.0])


def test_a_storage_out_of_service_closes_the_accesses_of_its_queue() -> None:
    working()
    StorageEndpoint.objects.update(status={"write_wan": "OFF"}, free_gb=None, expired_gb=None)
    ComputingQueue.objects.update(capability="ucore", corecount=8, maxrss=16000)
    queues = load_snapshot().queues(Ask())
    assert "ALPHA/MCORE" in queues.index
    assert not queues.write_wan_ok.any()
    assert queues.read_wan_ok.all()


def test_what_would_be_asked_now_is_told_without_writing() -> None:
    grid("ALPHA")
    task = submitted(parameters(ramCount=64000))
    run_agents()
    task.refresh_from_db()
    assert task.status == "pending"
    before = Task.objects.values().get(id=task.id)
    asked = current_request(task)
    assert (asked.ask.task_id, asked.ask.ram_count) == (task.id, 64000)
    assert asked.snapshot.queues(asked.ask).name.tolist() == ["ALPHA"]
    assert Task.objects.values().get(id=task.id) == before


def test_a_task_that_has_ended_asks_nothing() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters())
    run_agents()
    run_jobs(queue)
    run_agents()
    task.refresh_from_db()
    with pytest.raises(NothingToDecide, match="ended: done"):
        current_request(task)


def test_links_software_slots_and_what_is_measured_are_known() -> None:
    working()
    beta = Site.objects.create(name="BETA", nucleus=True)
    alpha = ComputingQueue.objects.get()
    Link.objects.create(source_id="SITE_ALPHA", destination=beta, files_queued=7, mbps_1d=12.5, closeness=3, measured_at=now())
    DeclaredSlots.objects.create(queue=alpha, n=55, share="Users")
    Measured.objects.create(queue=alpha, disk_io_per_core=120)
    Software.objects.create(queue="ALPHA", document={"cvmfs": ["atlas"]})
    Software.objects.create(queue="GONE", document={"cvmfs": ["atlas"]})
    queues = load_snapshot().queues(Ask(nucleus="BETA", share="Users"))
    assert (queues.link_files[0], queues.mbps[0], queues.closeness[0], queues.nucleus_files[0]) == (7, 12.5, 3, 7)
    assert (queues.num_slots[0], queues.disk_io[0], queues.software[0]) == (55, 120, '{"cvmfs": ["atlas"]}')
    assert load_snapshot().queues(Ask(share="Managed")).num_slots[0] == -1


@pytest.mark.parametrize(("declared", "slots", "busy"), [(0, 0, 2), (-1, -1, 1)])
def test_slots_declared_as_zero_count_the_jobs_that_start(declared: int, slots: int, busy: int) -> None:
    working()
    alpha = ComputingQueue.objects.get()
    DeclaredSlots.objects.create(queue=alpha, n=declared)
    for _ in range(2):
        send(alpha)
    queues = load_snapshot().queues(Ask())
    assert (queues.num_slots[0], queues.starting[0], queues.busy[0]) == (slots, 2, busy)


def test_the_number_of_queries_is_the_same_whatever_the_size() -> None:
    working()
    with CaptureQueriesContext(connection) as few:
        load_snapshot()
    more = ComputingQueue.objects.bulk_create(
        ComputingQueue(name=f"Q{i}", site_id="SITE_ALPHA", type="unified") for i in range(45)
    )
    for queue in more:
        pilot(queue)
    with CaptureQueriesContext(connection) as many:
        assert len(load_snapshot().queues(Ask())) == 46
    assert counted(many) == counted(few) <= 14
