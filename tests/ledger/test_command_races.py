"""Orders of people while agents work on the same task: nobody waits in a circle, and what the one began the other finds."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from brokerage.ledger.settle import settle_job
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import run_agents, run_jobs, take
from tests.locks import locked
from workqueues.ledger.claims import claim_tasks, lock_claimed
from workqueues.ledger.open_inputs import close_dataset
from workqueues.models import CatalogueDataset, Dataset, Task

pytestmark = pytest.mark.django_db(transaction=True)


def begun(pool: ThreadPoolExecutor, action: Callable[[], Any]) -> Future[Any]:
    """Another process does this: it waits for a lock of this one, or is through."""

    def run() -> Any:
        try:
            return action()
        finally:
            connection.close()

    future = pool.submit(run)
    while not (future.done() or _somebody_waits()):
        time.sleep(0.01)
    return future


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_locks WHERE NOT granted")
        return bool(cursor.rowcount)


def test_a_dataset_is_closed_while_an_agent_brings_its_files_to_a_task() -> None:
    (queue,) = grid("ALPHA")
    dataset = catalogue_dataset("in.data", 2)
    CatalogueDataset.objects.filter(id=dataset.id).update(state="open")
    task = submitted(reading("t", "in.data", runUntilClosed=True))
    run_agents(2)
    run_jobs(queue)
    run_agents(1, ["finish"])
    Task.objects.update(next_look_at=None)
    assert [each.id for each in claim_tasks("feed-1", 60, ["defined"], 1)] == [task.id]
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        lock_claimed(task.id, "feed-1")
        closing = begun(pool, lambda: close_dataset(dataset.id))
        list(Dataset.objects.select_for_update(no_key=True).filter(task_id=task.id, type="input"))
    assert closing.result().state == "closed"
    Task.objects.update(locked_by="", locked_time=None)
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "done"


def test_a_job_that_ran_out_of_memory_ends_also_while_somebody_keeps_its_task_for_long() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", prodSourceLabel="managed", ramCount=1000, ramUnit="MB", maxAttempt=9))
    run_agents(1)
    leased = take(queue)
    report = Report("failed", error_code="PAYLOAD_MEMORY", error_message="too much", metrics={"max_rss_mb": 1500})
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
        with locked(f"SELECT FROM workqueues_task WHERE id = {task.id} FOR NO KEY UPDATE"):
            assert settle_job(leased.job_id, leased.epoch, report, "pilot") == "failed"
        cursor.execute("RESET lock_timeout")
