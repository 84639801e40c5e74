"""What a change of the configuration would have done to kept decisions: told with on how many it rests; nothing is written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.models import ChangeSet
from broker_site.foundation.kernel import clock
from brokerage.ledger.decisions import KEPT_SNAPSHOTS, store_snapshot
from brokerage.models import ComputingQueue, Decision, Site, StorageEndpoint
from brokerage.queries.world import load_snapshot
from tests.api.people import Person, person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: None) -> Person:
    return person("root", superuser=True)


def decided(name: str = "first", **more: Any) -> Task:
    task = submitted(parameters(name, **more))
    run_agents()
    return task


def tried(who: Person, key: str, value: Any, vo: str = "") -> Any:
    body = {"lines": [{"key": key, "value": value, "vo": vo}], "reason": "try", "dry_run": True}
    answer = who.post("config/changes/", body)
    assert answer.status_code == 200, answer.content
    return answer.json()["decisions"]


def test_a_key_that_no_decision_reads_leaves_all_of_them_unchanged(root: Person) -> None:
    grid("ALPHA", "BETA")
    decided()
    decided("second", ramCount=64000)
    before = (Decision.objects.count(), ChangeSet.objects.count())
    told = tried(root, "agents.PERIOD_reap", "30s")
    assert before[0] == 2
    assert told["decisions"] == told["unchanged"] == told["untouched"] == told["kept"] == before[0]
    assert told["candidates"] == []
    assert (Decision.objects.count(), ChangeSet.objects.count()) == before


def test_who_is_cut_off_is_named_and_decisions_that_turn_are_counted(root: Person) -> None:
    grid("ALPHA", "BETA")
    Site.objects.filter(name="SITE_ALPHA").update(nucleus=True)
    StorageEndpoint.objects.update(free_gb=10_000)
    decided(prodSourceLabel="managed", workingGroup="phys")
    decided("second")
    n = Decision.objects.count()
    told = tried(root, "taskbrokerage.DISK_THRESHOLD", 20)
    assert (told["decisions"], told["lose"], told["gain"], told["to_pending"], told["unchanged"]) == (n, 1, 0, 1, n - 1)
    assert told["candidates"] == [{"name": "SITE_ALPHA", "gained": 0, "lost": 1}]
    assert told["sentence"] == f"{n - 1} of {n} kept decisions unchanged; 0 gain candidates, 1 lose some; 1 would now wait."
    assert tried(root, "taskbrokerage.DISK_THRESHOLD", 20, vo="other")["lose"] == 0


def test_another_policy_is_tried_with_its_own_criteria(root: Person) -> None:
    grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(name="BETA").update(maxrss=100)
    set_override("core", "POLICY_analysis", "generic", who="test", why="few criteria")
    decided()
    told = tried(root, "core.POLICY_analysis", None)
    assert (told["decisions"], told["untouched"]) == (1, 0)


def test_the_work_does_not_grow_with_history_and_a_task_that_waits_for_long_is_not_forgotten(root: Person) -> None:
    """Equal decisions in a row are one, with the snapshot of the first: that one is older than all that others were taken on."""
    grid("ALPHA")
    decided(ramCount=64000)
    with CaptureQueriesContext(connection) as few:
        assert tried(root, "jobbroker.NQUEUED_SAT_CAP", 7)["decisions"] == 1
    for _ in range(KEPT_SNAPSHOTS + 2):
        store_snapshot(load_snapshot())
    with CaptureQueriesContext(connection) as many:
        told = tried(root, "jobbroker.NQUEUED_SAT_CAP", 7)
    assert told["decisions"] == told["kept"] == 1
    assert len(many) <= len(few)


def test_the_agent_refresh_ends_what_was_set_for_some_time(root: Person) -> None:
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="slow links")
    until = clock.now() + timedelta(hours=1)
    line = {"key": "jobbroker.NQUEUED_SAT_CAP", "value": 400, "until": until.isoformat()}
    assert root.post("config/changes/", {"lines": [line], "reason": "for the night"}).status_code == 201
    with clock.frozen(until - timedelta(seconds=1)):
        run_agent("refresh", looked=True)
    assert gdpconfig.value("jobbroker", "NQUEUED_SAT_CAP") == 400
    with clock.frozen(until + timedelta(seconds=1)):
        run_agent("refresh", looked=True)
        run_agent("refresh", looked=True)
    assert gdpconfig.value("jobbroker", "NQUEUED_SAT_CAP") == 150
    assert [made["who"] for made in root.get("config/changes/").json()["results"]] == ["expiry", "root", "bob"]
