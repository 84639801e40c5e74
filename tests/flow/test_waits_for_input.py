"""Tasks whose input is not where their jobs could run now go on as soon as they can run where it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.postgres.functions import TransactionNow

from broker_site.foundation.agency.run import run_agent
from brokerage.ledger import grid_overrides
from brokerage.ledger.pilots import note_vain_ask
from brokerage.models import ComputingQueue, Job, LocalOverride, Pilot, WaitGroup
from brokerage.rules.dispatch.requirement import Resource
from tests.builders import catalogue_dataset, grid, pilot, reading, submitted
from tests.flow.steps import run_agents
from workqueues.models import Task

pytestmark = pytest.mark.django_db


def stuck() -> Task:
    """A task that could run anywhere but where its input is."""
    catalogue_dataset("in.data", 4, storage="BETA_DISK")
    task = submitted(reading("t", "in.data"))
    run_agents()
    task.refresh_from_db()
    assert task.status == "pending"
    assert task.error_dialog.startswith("the input is not at the chosen queues (ALPHA), and is not brought there: BETA has it")
    return task


def asks_in_vain(queue: ComputingQueue) -> None:
    note_vain_ask(pilot(queue, "s2"), queue.id, Resource(queue.name, 1, 4000, 10000), 1.0)
    WaitGroup.objects.update(judged_at=TransactionNow() - timedelta(seconds=60))


def queues_of_jobs() -> set[str]:
    return set(Job.objects.values_list("computing_queue__name", flat=True))


def test_a_queue_that_is_back_gets_the_jobs_whose_input_it_has() -> None:
    _, beta = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    stuck()
    online = LocalOverride(kind="queue", name=beta.name, attribute="status", value="online", reason="repaired", who="ada")
    grid_overrides.set_override(online)
    run_agents(2, ("free", "wake", "generate"))
    assert queues_of_jobs() == {"BETA"}


def test_a_pilot_that_asks_where_the_input_is_gets_a_job_and_another_one_wakes_nobody() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    Pilot.objects.filter(queue=beta).update(last_seen="2020-01-01T00:00Z")
    task = stuck()
    until = task.next_look_at
    run_agent("free", looked=True)
    asks_in_vain(alpha)
    run_agent("free", looked=True)
    task.refresh_from_db()
    assert task.next_look_at == until, "nothing moves the input to ALPHA"
    asks_in_vain(beta)
    run_agents(2, ("free", "wake", "generate"))
    assert queues_of_jobs() == {"BETA"}
