"""Each invariant finds the violation that is planted for it.

The tests of this file share one transaction on a database after a campaign, in which every guard is off; nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from pytest_django import DjangoDbBlocker

from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.models import ComputingQueue, Job, Site, StorageEndpoint, TallyMark
from brokerage.queries.invariants import INVARIANTS, Invariant, look, look_at
from brokerage.rules.transfers.wishes import DATASETS, FileWish
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.child_broker import Child, ended
from tests.cutting import cut, shared
from tests.cutting import end as end_cut
from tests.flow.steps import BAD, end, run_agents, run_jobs
from tests.operator.planted import PLANTED
from tests.operator.taking import taken
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Submission, Task

NAMES = [invariant.name for invariant in INVARIANTS]


def campaign() -> None:
    """Tasks in all conditions: done, failed, aborted, pending, running after failures, with leased, waiting and ended jobs; a
    file that jobs share.
    """
    (queue,) = grid("ALPHA")
    begin_counting()
    catalogue_dataset("in.data", 4)
    done = submitted(reading("done", "in.data"))
    Submission.objects.create(user_name="ada", key="k1", body_sha256="0" * 64, task_id=done.id)
    submitted(reading("failed", "in.data", maxAttempt=1))
    run_agents()
    for task in Task.objects.filter(task_name="failed"):
        Job.objects.filter(task_id=task.id).update(priority=900, ready_priority=-900)
    end(taken(queue), BAD)
    end(taken(queue), BAD)
    run_jobs(queue)
    killed = submitted(parameters("killed"))
    run_agents()
    command(killed.id, "kill", "user:ada")
    run_agents()
    merging(queue)
    submitted(parameters("pending", ramCount=64000))
    submitted(parameters("running", nEvents=60))
    run_agents()
    end(taken(queue), BAD)
    run_agents()
    end(taken(queue))
    taken(queue)
    of = shared([30], queue)
    good, bad = cut(of, 10, most=2)
    end_cut(good, "finished")
    end_cut(bad, "failed")
    cut(of, 5, most=1)
    transfers()
    elements()


def elements() -> None:
    """An element that a child has, of which a file is settled, and one that waits."""
    catalogue_dataset("parts.data", 4)
    submitted(reading("divided", "parts.data", workTo="children"))
    submitted(parameters("waits", nEvents=10, workTo="children"))
    run_agents(2, ("refine", "feed", "offer"))
    child = Child()
    (head,) = child.pulled(most=1)
    (work,) = child.work(head)
    files = [file["lfn"] for file in work["inputs"][0]["files"]]
    child.report(child.of(head, "Running", ended(work, 1, *files[:2])))


def begin_counting() -> None:
    """Nothing that this transaction writes is counted yet, whatever others do meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text")
        (own,) = cursor.fetchone()
    TallyMark.objects.create(id=1, seen=f"{own}:{own}:")


def merging(queue: ComputingQueue) -> None:
    """A task with jobs that wait for a merge job, which a pilot has."""
    submitted(parameters("merging", mergeOutput=True, nEvents=20))
    run_agents()
    run_jobs(queue)
    run_agents(1, ("merge",))
    taken(queue)


def transfers() -> None:
    """Files of in.data are wished at BETA: one is there, one is on its way, one waits, and one is not wanted any more."""
    site = Site.objects.create(name="SITE_BETA")
    StorageEndpoint.objects.create(name="BETA_DISK", site=site)
    files = CatalogueFile.objects.filter(dataset__name="in.data").order_by("id")
    asked = ask([FileWish(f.id, "BETA_DISK", "dataset", DATASETS, "demo", dataset_id=1) for f in files], "test")
    done, under_way, _, unwanted = (TransferMove(id_, new_key=uuid4()) for id_ in asked if id_ is not None)
    move_transfers([done, under_way], "submitting", "test", claim_s=60).run()
    finish([TransferMove(done.id)], "test")
    end_unmet([TransferMove(unwanted.id, "not wanted", reason="no_wish")], "cancelled", "test")


@pytest.fixture(scope="module")
def worked(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A database after a campaign, with guards, checks and unique indexes off; nothing of it stays."""
    with django_db_blocker.unblock(), transaction.atomic():
        campaign()
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for statement in undone(cursor):
                cursor.execute(statement)
        yield
        transaction.set_rollback(True)


def undone(cursor: CursorWrapper) -> list[str]:
    """Statements that drop what would refuse the planted rows: constraints, then unique indexes, then the guard triggers."""
    tables = "r.relname ~ '^(workqueues|brokerage)_'"
    cursor.execute(
        f"""
        (SELECT format('ALTER TABLE %I DROP CONSTRAINT %I', r.relname, c.conname)
         FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
         WHERE c.contype IN ('c', 'u', 'f', 'x') AND {tables} ORDER BY c.contype)
        UNION ALL
        SELECT format('DROP INDEX %I', x.relname)
        FROM pg_index i JOIN pg_class r ON r.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
        WHERE i.indisunique AND NOT i.indisprimary AND {tables}
          AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid)
        UNION ALL
        SELECT format('ALTER TABLE %I DISABLE TRIGGER USER', r.relname) FROM pg_class r WHERE r.relkind = 'r' AND {tables}
        """
    )
    return [row[0] for row in cursor.fetchall()]


def test_the_campaign_has_everything_that_the_invariants_speak_of(worked: None) -> None:
    assert set(Task.objects.values_list("status", flat=True)) == {"done", "failed", "aborted", "pending", "ready", "running"}
    assert {"activated", "running", "merging", "finished", "failed", "cancelled"} <= set(
        Job.objects.values_list("status", flat=True)
    )
    assert [f for f in look() if f.violations] == []


def test_there_is_a_planted_violation_for_each_invariant() -> None:
    assert sorted(PLANTED) == sorted(NAMES)
    assert len(set(NAMES)) == len(NAMES) >= 25


@pytest.mark.parametrize("invariant", INVARIANTS, ids=NAMES)
def test_a_planted_violation_is_found(worked: None, invariant: Invariant) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(PLANTED[invariant.name])
            assert cursor.rowcount == 1
        found = look_at(invariant)
        assert found.violations, invariant.says
        assert found.examples
        transaction.set_rollback(True)
