"""Stored decisions: taken again on their snapshot they give the same bytes, and they are small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from brokerage.ledger.decisions import KEPT_SNAPSHOTS, record_decisions, store_snapshot
from brokerage.models import ComputingQueue, Decision, GridPart, Site, StorageEndpoint, StoredSnapshot
from brokerage.policies.generic import Generic
from brokerage.policies.production import Production
from brokerage.queries.decisions import DecisionFacts, decision_facts, latest, with_snapshot
from brokerage.queries.world import load_snapshot
from brokerage.rules.decision.assembly import DecisionInputs, DecisionRequest, TaskDecision, decide_task
from brokerage.rules.decision.pipeline import decide
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.decision.record import encode, replay
from brokerage.rules.explain.explanation import decision_document, explain
from brokerage.rules.facts.ask import Ask, Chunk
from brokerage.rules.world.stored_snapshot import TaskFacts
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, run_agents, run_jobs
from workqueues.models import Task

pytestmark = pytest.mark.django_db


def of_every_policy() -> list[Task]:
    """Tasks of users and of production, with and without input, one with jobs that failed."""
    alpha, _ = grid("ALPHA", "BETA")
    Site.objects.filter(name="SITE_ALPHA").update(nucleus=True)
    StorageEndpoint.objects.update(free_gb=50_000)
    catalogue_dataset("in.data", 4)
    catalogue_dataset("in.more", 2, storage="BETA_DISK")
    tasks = [
        submitted(reading("t1", "in.data")),
        submitted(reading("t2", "in.more", prodSourceLabel="managed")),
        submitted(parameters("t3", prodSourceLabel="managed", workingGroup="phys")),
        submitted(parameters("t4", ramCount=64000)),
    ]
    run_agents()
    run_jobs(alpha, BAD)
    run_agents()
    return tasks


def stored(decision_id: int) -> DecisionFacts:
    return decision_facts(with_snapshot(Decision.objects.all()).get(id=decision_id))


def test_a_stored_decision_gives_the_same_bytes_when_it_is_taken_again() -> None:
    of_every_policy()
    ComputingQueue.objects.update(status="offline")
    seen = set()
    for row in Decision.objects.all():
        found = stored(row.id)
        assert found.record is not None and found.policy is not None and found.ask is not None
        columns = found.columns()
        assert columns is not None
        assert replay(found.record, found.policy, found.ask, columns, found.config) == bytes(row.record)
        seen.add((row.policy, row.outcome))
    assert seen >= {("analysis", "assign"), ("analysis", "pending"), ("production", "assign"), ("nucleus", "assign")}


def test_its_documents_lead_decide_to_the_same_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = of_every_policy()[1]
    (decision,) = [d for d in latest(task.id) if d.policy == "production"]
    found = stored(decision.id)
    assert found.policy is not None and found.ask is not None
    documents = found.documents()
    assert documents is not None
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    files = [f"--{name}={tmp_path / name}.json" for name in documents]
    call_command("decide", *files, "--policy=production", f"--seed={0}")
    columns = found.columns()
    assert columns is not None
    inputs = DecisionInputs(found.policy, found.ask, columns, found.config)
    again = TaskDecision(decide(*inputs, "0"), inputs, found.task_facts)
    assert json.loads(capsys.readouterr().out) == decision_document(again)


def test_the_grid_is_stored_once_and_old_snapshots_go() -> None:
    grid("ALPHA")
    first = store_snapshot(load_snapshot())
    for _ in range(KEPT_SNAPSHOTS + 2):
        last = store_snapshot(load_snapshot())
    assert GridPart.objects.count() == 2
    assert not StoredSnapshot.objects.filter(id=first).exists()
    assert StoredSnapshot.objects.count() == KEPT_SNAPSHOTS
    ComputingQueue.objects.update(status="offline")
    assert store_snapshot(load_snapshot()) > last
    assert GridPart.objects.count() == 3


def test_a_pinned_decision_keeps_its_snapshot() -> None:
    grid("ALPHA")
    submitted(parameters(ramCount=64000))
    for name in ("refine", "feed", "generate"):
        run_agent(name, looked=True)
    decision = Decision.objects.get()
    Task.objects.all().delete()
    Decision.objects.update(pinned=True)
    for _ in range(KEPT_SNAPSHOTS + 2):
        store_snapshot(load_snapshot())
    assert stored(decision.id).columns() is not None
    Decision.objects.update(pinned=False)
    store_snapshot(load_snapshot())
    assert stored(decision.id).columns() is None


def test_equal_decisions_in_a_row_are_counted_also_within_one_cycle() -> None:
    grid("ALPHA")
    snapshot, config = load_snapshot(), BrokerConfig(gdpconfig.component)

    def decided(ram: int) -> TaskDecision[Any]:
        ask = Ask(task_id=7, vo="demo", ram_count=ram)
        return decide_task(DecisionRequest(snapshot, TaskFacts(), ask, Generic, config, "7"))

    stored = store_snapshot(snapshot)
    numbers = record_decisions([decided(1), decided(1), decided(64000), decided(1)], 0, stored)
    assert numbers[0] == numbers[1] != numbers[2] != numbers[3]
    with CaptureQueriesContext(connection) as asked:
        assert record_decisions([decided(1)] * 9, 0, stored) == [numbers[3]] * 9
    assert len(asked) <= 5
    assert list(Decision.objects.order_by("id").values_list("n_times", flat=True)) == [2, 1, 10]


SCOUT = {"scout": True}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (SCOUT, {"priority": 900}, "tasks of priority 900 run only at SITE_BETA"),
        (SCOUT, SCOUT | {"nucleus": "SITE_GAMMA"}, "scouts run only at SITE_GAMMA"),
        ({"priority": 900}, {"priority": 950}, "tasks of priority 950 run only at SITE_BETA"),
        ({"site": "NOWHERE"}, {"site": "ELSEWHERE"}, "the jobs run only at ELSEWHERE, and no queue here is called so"),
    ],
)
def test_the_reasons_of_a_decision_are_those_of_what_was_asked_last(
    before: dict[str, Any], after: dict[str, Any], told: str
) -> None:
    """Also where every queue fails by the same criterion as before."""
    grid("ALPHA", "OMEGA")
    snapshot, config = load_snapshot(), BrokerConfig(gdpconfig.component)
    place = store_snapshot(snapshot)
    for more in (before, after):
        ask = Ask(**{"task_id": 7, "vo": "demo", "nucleus": "SITE_BETA", **more})
        record_decisions([decide_task(DecisionRequest(snapshot, TaskFacts(), ask, Production, config, "7"))], 0, place)
    found = stored(latest(7)[0].id)
    columns = found.columns()
    assert columns is not None and found.record is not None
    story = explain(found.record, found.policy, found.ask, columns, found.config)
    assert {skip.reason for skip in story.skipped} == {told}


def test_decisions_that_are_asked_alike_are_one_whatever_the_moment() -> None:
    grid("ALPHA")
    snapshot, config = load_snapshot(), BrokerConfig(gdpconfig.component)
    place = store_snapshot(snapshot)
    for n in range(3):
        chunk = Chunk(n_events=n, files=n, gb=1.5 * n)
        ask = Ask(task_id=7, vo="demo", ram_count=64000, priority=500 + n, waits_s=9.5 * n, chunk=chunk)
        record_decisions([decide_task(DecisionRequest(snapshot, TaskFacts(), ask, Generic, config, "7"))], 0, place)
    assert Decision.objects.get().n_times == 3


def test_a_decision_over_a_thousand_queues_takes_8_kb_at_most() -> None:
    from benchmarks.cycle import asks, fill_grid

    fill_grid(1000)
    snapshot, config = load_snapshot(), BrokerConfig(gdpconfig.component)
    values = config.values(Production, "bench")
    sizes = []
    for ask in asks(40, 1000):
        decided = decide_task(DecisionRequest(snapshot, TaskFacts(), ask, Production, config, "1"))
        sizes.append(len(encode(decided.decision, Production)) + len(json.dumps(ask.to_document())) + len(json.dumps(values)))
    assert max(sizes) <= 8000
