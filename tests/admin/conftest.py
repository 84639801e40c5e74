"""What the tests of the admin share: a database after a small campaign, and somebody who may see all of it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import new_run, run_agent
from brokerage.agents.throttling import Throttle
from brokerage.ledger.misfits import MisfitsAt, note_misfits
from brokerage.ledger.pilots import note_vain_ask
from brokerage.ledger.site_limits import SiteCount, advertise, take_room
from brokerage.ledger.tally import count_changes
from brokerage.ledger.task_queues import requirement_set
from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.ends import finish
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.ledger.waits import grid_changed
from brokerage.models import (
    AskHour,
    BulkAction,
    BulkTarget,
    ComputingQueue,
    DeclaredSlots,
    ErrorFingerprint,
    ErrorTask,
    Feed,
    GroupUse,
    JobOpening,
    Link,
    LinkHour,
    LocalCopy,
    LocalOverride,
    MatchGauge,
    Measured,
    Pilot,
    PilotCE,
    QueueAsk,
    SavedView,
    Software,
    StorageEndpoint,
    SubmittedJob,
    TallyBucket,
    TallyGroup,
    TallyLevel,
    TaskLevel,
    TaskQueue,
    TransferLink,
)
from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.dispatch.site_limits import Advertisement
from brokerage.rules.transfers.wishes import PRODUCTION_INPUT, FileWish
from tests.builders import catalogue_dataset, grid, parameters, submitted
from tests.flow.steps import BAD, end, run_agents, take
from tests.tree_of_brokers import make_tree
from workqueues.ledger.submit import submit
from workqueues.models import (
    CatalogueFile,
    Dataset,
    EventRange,
    File,
    FileChange,
    GlobalShare,
    ProcessLock,
    PulledElement,
    ReadGrant,
    Task,
    TaskNote,
    TaskThrottle,
)
from workqueues.rules.refine import InputWriterFacts


@pytest.fixture
def root(db: None) -> Client:
    """A superuser in the admin."""
    client = Client()
    client.force_login(ensure_user("root", superuser=True))
    return client


@pytest.fixture
def worked(db: None) -> Task:
    """A task with rows in every table."""
    return campaign()


@pytest.fixture(scope="module")
def worked_once(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Task]:
    """The same for all tests of a module, which share one transaction and must not ask for `db`; nothing of it stays."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield campaign()
        transaction.set_rollback(True)


def limits_of_a_site(queue: ComputingQueue, pilot: Pilot) -> None:
    """What a site advertised, with room that was taken, and how limits on kinds of jobs stand."""
    numbers = Advertisement(max_jobs=10, max_submitting_jobs=10, current_jobs=1, current_submitting_jobs=0)
    advertise(queue.site_id, SiteCount(numbers, timezone.now(), ("st1",)), "enrolment")
    assert take_room(queue.site_id, 1, 900.0)
    places = {queue.id: (queue.name, f"{queue.name}_DISK")}
    wide = TaskQueue.objects.create(vo="demo", requirement_set_id=requirement_set({"tags": {"GPU"}}, places))
    JobOpening.objects.create(job_id=1, task_queue=wide, due=timezone.now())
    GroupUse.objects.create(vo="demo", owner_group="g", owner="ada", hour=timezone.now(), hs06_s=1.0, looked_at=timezone.now())
    AskHour.objects.create(queue=queue, outcome="no_job", hour=timezone.now(), minutes=[1] * 60)
    QueueAsk.objects.create(queue=queue, at=timezone.now(), pilot_id=uuid4(), outcome="no_job", offer={}, took_ms=1.0)
    MatchGauge.objects.create(site_id=queue.site_id, ce="ce1", attribute="vo", value="demo")
    PilotCE.objects.create(pilot=pilot, ces=["ce1"])


def counts(job_id: int) -> None:
    """What the agent tally writes, which it does only of transactions that are over."""
    count_changes(1)
    group, _ = TallyGroup.objects.get_or_create(family="vo", vo="demo")
    TaskLevel.objects.get_or_create(vo="demo", state="running", defaults={"n": 1})
    TallyLevel.objects.get_or_create(group=group, what="running", defaults={"n": 1})
    TallyBucket.objects.create(group=group, step_s=60, what="started", at=timezone.now(), n=1)
    ErrorTask.objects.create(group=group, task_id=1, first_at=timezone.now(), last_at=timezone.now())
    ErrorFingerprint.objects.create(
        id=1, component="pilot", code="X", exit_code=0, message="*", first_seen=timezone.now(), sample_job_id=job_id
    )


def campaign() -> Task:
    """Rows in every table: jobs failed, retried and running, decisions, histories."""
    alpha, beta = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(id=beta.id).update(status="offline")
    task = submitted(parameters(nEvents=30, nEventsPerJob=10))
    keyed = {"task_name": "keyed", "vo": "demo", "user_name": "ada"}
    writers = [InputWriterFacts(task.id, task.status, "t1.EVT")]
    submit(parameters("keyed"), keyed, "ada", "user:ada", "k1", "0" * 64, writers=writers)
    run_agents()
    first, second = take(alpha), take(alpha)
    assert first is not None
    assert second is not None
    end(first, BAD)
    counts(first.job_id)
    submitted(parameters("waits", ramCount=900_000))
    end(second)
    run_agents()
    take(alpha)
    file = File.objects.filter(type="pseudo_input").first()
    dataset = Dataset.objects.first()
    assert file is not None
    assert dataset is not None
    FileChange.objects.create(file_id=file.id, task_id=task.id, old="ready", new="held", who="job:1", why="reported missing")
    EventRange.objects.create(task=task, dataset=dataset, file=file, status="ready", job_id=1)
    GlobalShare.objects.create(name="Production", vo="atlas", value=80)
    ReadGrant.objects.create(vo="demo", pattern="*", grantee_kind="vo", grantee="atlas", made_by="ada")
    run_agent("share", looked=True)
    ProcessLock.objects.create(vo="demo", prod_source_label="user", component="generate", locked_by="somebody")
    submitted(parameters("throttled"))
    grid_changed()
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    Throttle.begin(new_run("generate")).end()
    idle = Pilot.objects.create(id=uuid4(), queue=alpha)
    note_vain_ask(idle.id, alpha.id, Resource(alpha.name, 1), 1.0)
    run_agent("slots", looked=True)
    grid_facts(alpha, beta)
    note_misfits([MisfitsAt(alpha.id, [idle.id], [1])])
    limits_of_a_site(alpha, idle)
    SubmittedJob.objects.create(job_id=first.job_id, pilot=idle, site_id=alpha.site_id, kind="Processing", submitter="local")
    moved_files(task)
    make_tree(task)
    pulled = {"incarnation": uuid4(), "parent_task_id": 1, "site": "A", "vo": "demo", "lease_until": timezone.now()}
    PulledElement.objects.create(element_id=1, try_nr=1, status="Acquired", priority=1, jobs=1, task=task, **pulled)
    assert Agent.objects.exists()
    task.refresh_from_db()
    return task


def grid_facts(alpha: ComputingQueue, beta: ComputingQueue) -> None:
    """Rows in the tables of what is measured, declared, set by hand and read."""
    Link.objects.create(source_id=alpha.site_id, destination_id=beta.site_id, mbps_1h=80)
    DeclaredSlots.objects.create(queue=alpha, share="Production", n=7)
    Measured.objects.create(queue=alpha, disk_io_per_core=120)
    Software.objects.create(queue=alpha.name, document={"cvmfs": ["atlas"]})
    LocalOverride.objects.create(kind="queue", name=beta.name, attribute="status", value="brokeroff", reason="water leak")
    Feed.objects.create(name="queues", kind="cric-queues", place="https://cric.example.org/queues.json")


def moved_files(task: Task) -> None:
    """Rows in the tables of transfers: one done, one under way, one that waits; and a throttled task."""
    catalogue_dataset("moved.data", 3)
    files = CatalogueFile.objects.filter(dataset__name="moved.data").order_by("id")
    wish = FileWish(0, "BETA_DISK", "input", PRODUCTION_INPUT, "demo", owner="ada", task_id=task.id)
    done, under_way, _ = ask([wish._replace(file_id=file.id, job_id=n) for n, file in enumerate(files)], "admin")
    assert done is not None
    assert under_way is not None
    begun = [TransferMove(id_, source="ALPHA_DISK", site="SITE_ALPHA", new_key=uuid4()) for id_ in (done, under_way)]
    move_transfers(begun, "submitting", "admin", claim_s=60).run()
    finish([TransferMove(done)], "admin")
    alpha, beta = StorageEndpoint.objects.order_by("name")
    LocalCopy.objects.create(source=alpha, source_path="a", destination=beta, destination_path="a", bytes=1, checksum="00000001")
    TransferLink.objects.get_or_create(source_id=alpha.site_id, destination_id=beta.site_id)
    LinkHour.objects.create(source="A", destination="B", hour=timezone.now(), files=1, bytes=1, busy_s=1)
    run_agent("links", looked=True)
    asked = {"of": "tasks", "act": "pause", "rights": {"superuser": True, "roles": {}}, "moment": timezone.now(), "n": 1}
    action = BulkAction.objects.create(**asked, user=ensure_user("ada"))
    SavedView.objects.create(owner="ada", list_name="tasks", name="mine", query="?status=running")
    BulkTarget.objects.create(action=action, target_id=task.id)
    TaskNote.objects.create(task_id=task.id, rule="boost", who="agent:boost", why="nearly done: priority 900")
    TaskThrottle.objects.create(task=task, cause="disk_transfers", why="2 GB are brought for ada, 1 GB may be")
