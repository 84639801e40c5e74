"""The page of the throttler: the last verdict on each unit, why, what was said in the last 24 hours; and tasks that it holds."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Role
from broker_site.foundation.agency.run import new_run, run_agent
from broker_site.foundation.kernel import clock
from brokerage.agents.throttling import Throttle
from brokerage.models import ComputingQueue, Job
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline
from tests.builders import grid, parameters, submitted
from tests.flow.steps import take
from tests.monitoring.answers import MOST_STATEMENTS, text
from workqueues.models import GlobalShare, Task, ThrottleVerdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader() -> Client:
    """Somebody with a role in the VO demo."""
    user = ensure_user("ada")
    Role.objects.create(user=user, vo="demo", role="submitter")
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def held() -> Task:
    """A task with work whose share has three jobs waiting and none running."""
    grid("ALPHA")
    GlobalShare.objects.create(name="MC 16", vo="demo", value=1, processing_type="evgen")
    submitted(parameters("first", nEvents=30, nEventsPerJob=10))
    for agent in ("refine", "feed", "assign", "generate"):
        run_agent(agent, looked=True)
    task = submitted(parameters("second"))
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    task.refresh_from_db()
    assert Job.objects.filter(status="activated").count() == 3
    Throttle.begin(new_run("generate")).end()
    return task


def test_the_page_says_why_a_unit_gets_no_jobs(reader: Client, held: Task) -> None:
    page = text(reader.get("/throttle/"))
    assert "3 jobs wait, more than 2 x 0 that run" in page
    assert "MC 16" in page
    (row,) = reader.get("/throttle.json").json()["rows"]
    assert (row["unit"], row["kind"], row["resource_type"], row["decision"]) == ("MC 16", "share", "SCORE", "SKIP")
    assert (row["queued"], row["running"], row["ratio"], row["threshold"]) == (3, 0, None, 2.0)
    ((_, first, last),) = [spell for spell in row["spells"] if spell[0] == "SKIP"]
    assert first <= last


def test_limits_stand_with_their_keys(reader: Client, held: Task) -> None:
    gdpconfig.set_override("anal_job_throttler", "NQUEUELIMIT_MC 16_SCORE", 400, who="ada", why="test")
    gdpconfig.set_override("anal_job_throttler", "NQUEUECAP_MC 16", 900, who="ada", why="test")
    Throttle.begin(new_run("generate")).end()
    (row,) = reader.get("/throttle.json").json()["rows"]
    assert (row["decision"], row["lower"], row["cap"], row["max_jobs"], row["lock"]) == ("PASS", 400, 900, 180, False)
    assert row["keys"] == ["NQUEUELIMIT_MC 16_SCORE", "NQUEUECAP_MC 16"]
    assert "NQUEUECAP_MC 16" in text(reader.get("/throttle/"))


def test_the_ribbon_shows_a_day(reader: Client, held: Task) -> None:
    verdict = ThrottleVerdict.objects.get(decision="SKIP")
    now = clock.now()
    ThrottleVerdict.objects.filter(id=verdict.id).update(first_at=now - timedelta(hours=6), last_at=now)
    page = text(reader.get("/throttle/"))
    assert '<rect class="held" x="75.00"' in page
    assert "SKIP 6.0 h" in page
    lines = list(csv.DictReader(io.StringIO(text(reader.get("/throttle.csv")))))
    assert lines[0]["spells"].startswith("SKIP/20")


def test_a_unit_that_is_not_judged_any_more_stands_apart_without_numbers(reader: Client, held: Task) -> None:
    """Defect F9: "PASS, 0 jobs wait, 0 run" stood there while 32 waited and 4 ran."""
    ThrottleVerdict.objects.update(last_at=clock.now() - timedelta(hours=2), first_at=clock.now() - timedelta(hours=3))
    page = text(reader.get("/throttle/"))
    assert "Not judged now" in page
    assert "then: 3 jobs wait" in page
    (row,) = reader.get("/throttle.json").json()["rows"]
    assert (row["judged_now"], row["queued"], row["running"], row["ratio"]) == (False, None, None, None)
    Throttle.begin(new_run("generate")).end()
    assert "Not judged now" not in text(reader.get("/throttle/"))


def test_units_that_are_judged_now_come_first(reader: Client, held: Task) -> None:
    old = ThrottleVerdict.objects.latest("id")
    old.id, old.unit, old.last_at = None, "A former one", clock.now() - timedelta(hours=2)
    old.save()
    assert [row["unit"] for row in reader.get("/throttle.json").json()["rows"]] == ["MC 16", "A former one"]


def test_jobs_that_cannot_start_are_told_apart(reader: Client, held: Task) -> None:
    ComputingQueue.objects.update(status="offline")
    Throttle.begin(new_run("generate")).end()
    page = text(reader.get("/throttle/"))
    assert "0 jobs wait (3 more stand where they cannot start), 0 run" in page
    assert "of them stuck" in page
    (row,) = reader.get("/throttle.json").json()["rows"]
    assert (row["queued"], row["stranded"], row["decision"]) == (3, 3, "PASS")
    (verdict,) = reader.get("/api/v1/throttle-verdicts/?decision=PASS").json()["results"][:1]
    assert verdict["stranded"] == 3


def test_verdicts_of_other_vos_are_not_shown(held: Task) -> None:
    stranger = Client()
    user = ensure_user("eve")
    Role.objects.create(user=user, vo="other", role="submitter")
    stranger.force_login(user)
    assert stranger.get("/throttle.json").json()["rows"] == []
    assert stranger.get("/api/v1/throttle-verdicts/").json()["results"] == []


def test_the_page_asks_little_of_the_database(
    reader: Client, held: Task, django_assert_max_num_queries: pytest.FixtureRequest
) -> None:
    with django_assert_max_num_queries(MOST_STATEMENTS):  # type: ignore[operator]
        reader.get("/throttle/")
    with django_assert_max_num_queries(MOST_STATEMENTS):  # type: ignore[operator]
        reader.get(f"/tasks/{held.id}/brokerage/")


def test_a_held_task_says_so_everywhere(reader: Client, held: Task) -> None:
    said = "hare MC 16 SCORE is throttled: 3 jobs wait, more than 2 x 0 that run"
    assert said in text(reader.get(f"/tasks/{held.id}/"))
    assert said in text(reader.get(f"/tasks/{held.id}/brokerage/"))
    assert said in headline(task_status(held))
    for _ in range(3):
        take(ComputingQueue.objects.get(name="ALPHA"))
    Throttle.begin(new_run("generate")).end()
    assert "throttled" not in text(reader.get(f"/tasks/{held.id}/"))


def test_the_api_lists_verdicts(reader: Client, held: Task) -> None:
    found = reader.get("/api/v1/throttle-verdicts/?decision=SKIP&unit=MC 16").json()["results"]
    assert [(v["rule"], v["activated"], v["config_revision"]) for v in found] == [("ratio", 3, 0)]
    assert reader.get("/api/v1/throttle-verdicts/?decision=MAYBE").status_code == 400
