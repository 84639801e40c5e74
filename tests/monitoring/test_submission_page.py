"""Submission on pages and over REST: thresholds beside use, sites set by hand and tried, and who gets a submitted job."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.access.credentials import ensure_user, issue_enrolment
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.exchange import exported
from brokerage.api.matching import MATCHING
from brokerage.api.pilots import REGISTERING
from brokerage.models import Job, LocalOverride, Site, SubmittedJob
from brokerage.queries.pilots import PILOT_CORES, QUEUES
from tests.api.people import Person, faults, person
from tests.api.test_pilot_verbs import Wire
from tests.builders import parameters, submitted
from tests.flow.steps import run_agents
from tests.flow.test_submission import come, submission_queue, submit
from tests.monitoring.answers import counted, text

pytestmark = pytest.mark.django_db
CHANGES = "config/changes/"


@pytest.fixture
def submitting() -> None:
    """Two jobs are submitted of four, at a site with four slots."""
    submission_queue(slots=4, FEWEST_CPU_SLOTS=2)
    submitted(parameters(nEvents=40, nEventsPerJob=10))
    run_agents()
    assert submit() == 2


def change(who: Person, key: str = "SITE_ALPHA", *, remove: bool = False, dry_run: bool = False, **value: Any) -> Any:
    lines = [{"kind": "site", "key": key, "value": None if remove else value}]
    return who.post(CHANGES, {"lines": lines, "reason": "repair", "dry_run": dry_run})


@pytest.mark.usefixtures("submitting")
def test_thresholds_stand_beside_what_is_there_in_all_forms() -> None:
    client = Client()
    client.force_login(ensure_user("ada", roles=[("demo", "operator")]))
    with CaptureQueriesContext(connection) as statements:
        rows = {row["kind"]: row for row in client.get("/submission.json").json()["rows"]}
    assert counted(statements) <= 12
    shown = ("pending", "pending_threshold", "running", "running_threshold", "stops")
    assert [rows[""][name] for name in shown] == [2, 2, 0, 4, "NoPendingSlot"]
    assert [rows["Processing"][name] for name in shown] == [2, 2, 0, 4, "NoPendingSlot"]
    assert rows["Merge"]["stops"] == "NoPendingSlot", "the site is full for all kinds"
    with CaptureQueriesContext(connection) as statements:
        page = text(client.get("/submission/"))
    assert counted(statements) <= 12
    assert "2 of 2" in page
    assert text(client.get("/submission.csv")).count("SITE_ALPHA") == 3
    waiting = Job.objects.filter(status="activated").latest("id")
    with CaptureQueriesContext(connection) as statements:
        told = client.get(f"/jobs/{waiting.id}/waiting.json").json()["submission"]
    assert counted(statements) <= 12
    assert [(one["site"], one["reason"]) for one in told] == [("SITE_ALPHA", "NoPendingSlot")]
    assert "as many jobs wait at the site as may" in text(client.get(f"/jobs/{waiting.id}/"))


@pytest.mark.usefixtures("submitting")
def test_a_site_is_tried_set_and_taken_back_by_a_set_of_changes() -> None:
    root = person("root", superuser=True)
    trial = change(root, cpu_slots=12, dry_run=True).json()["submission"]
    assert trial["submitted"] == [{"site": "SITE_ALPHA", "before": 0, "after": 2}]
    told = [(one["kind"], one["pending"], one["running"]) for one in trial["thresholds"]]
    assert told == [("", [2, 6], [4, 12]), ("Processing", [2, 5], [4, 12]), ("Merge", [1, 1], [1, 2])]
    assert Site.objects.get().cpu_slots == 4, "nothing was written"
    answer = change(root, cpu_slots=12, state="Draining")
    assert answer.status_code == 201, answer.content
    site = Site.objects.get()
    assert (site.cpu_slots, site.state) == (12, "Draining")
    assert {(o.who, o.reason) for o in LocalOverride.objects.all()} == {("root", "repair")}
    assert '"name": "SITE_ALPHA", "state": "Draining", "cpu_slots": 12' in exported()
    back = root.post(f"{CHANGES}{answer.json()['revision']}/revert/", {"reason": "repaired"})
    assert back.status_code == 201, back.content
    site.refresh_from_db()
    assert (site.cpu_slots, site.state, LocalOverride.objects.count()) == (4, "ACTIVE", 0)
    assert change(root, io_slots=3).status_code == 201
    assert change(root, remove=True).status_code == 201
    assert LocalOverride.objects.count() == 0


@pytest.mark.parametrize(
    ("value", "field", "rule"),
    [
        ({"cpu_slots": -3}, "lines[0].cpu_slots", "range"),
        ({"io_slots": 2.5}, "lines[0].io_slots", "range"),
        ({"state": "Closed"}, "lines[0].state", "choice"),
        ({"cpu_slot": 3}, "lines[0].cpu_slot", "unknown"),
        ({"cpu_slots": "many"}, "lines[0].cpu_slots", "type"),
        ({}, "lines[0]", "required"),
    ],
)
@pytest.mark.usefixtures("submitting")
def test_what_cannot_be_is_refused_by_field_and_rule(value: dict[str, Any], field: str, rule: str) -> None:
    root = person("root", superuser=True)
    assert (field, rule) in faults(change(root, **value), 422)
    assert ("lines[0].key", "reference") in faults(change(root, "SITE_BETA", cpu_slots=3), 422)
    assert LocalOverride.objects.count() == 0
    ada = person("ada", ("demo", "operator"))
    assert change(ada, cpu_slots=3).status_code == 403


@pytest.mark.usefixtures("submitting")
def test_the_page_of_a_site_tries_and_names_what_is_wrong() -> None:
    client = Client()
    client.force_login(ensure_user("root", superuser=True))
    bad = client.get("/submission/SITE_ALPHA/?state=Closed&cpu_slots=-3")
    assert bad.status_code == 400
    assert "no state of a site" in text(bad)
    assert "-3 is not from 0" in text(bad)
    typed = text(client.get("/submission/SITE_ALPHA/?cpu_slots=many"))
    assert "CPU slots" in typed
    assert ">&#x27;many&#x27; is no number" in typed, "without the name that documents have"
    with CaptureQueriesContext(connection) as statements:
        good = text(client.get("/submission/SITE_ALPHA/?cpu_slots=12"))
    assert counted(statements) <= 20
    assert "Thresholds of 1 site would be others" in good
    assert 'action="/config/apply/"' in good or "page-config-apply" not in good
    assert client.get("/submission/NOWHERE/").status_code == 404
    for key, value in (("MAX_JOBS", -1), ("HIGHER_PRIORITY_PART", 2)):
        with pytest.raises(ValueError, match=key):
            set_override("submission", key, value, who="test", why="bad")


@pytest.mark.usefixtures("submitting")
def test_only_the_pilot_of_a_submitted_job_gets_it_and_asks_in_vain_are_told_why() -> None:
    for kept in (REGISTERING, MATCHING, QUEUES, PILOT_CORES):
        kept.forget()
    wire, row = Wire(), SubmittedJob.objects.order_by("job_id")[0]
    secret, other = issue_enrolment("ALPHA").text, issue_enrolment("ALPHA", vo="atlas").text
    asked = {"request": str(row.pilot_id), "job": row.job_id}
    assert wire.register(other, pilot_id=str(row.pilot_id)).status_code == 403
    assert faults(wire.register(secret, pilot_id="7"), 422) == {("pilot_id", "type")}
    mine = wire.register(secret, pilot_id=str(row.pilot_id), pid=7)
    assert mine.status_code == 201, mine.content
    assert wire.register(secret, pilot_id=str(row.pilot_id), pid=8).status_code == 409
    assert wire.match(mine.json()["token"], **asked).json()["job"]["id"] == row.job_id
    assert wire.match(mine.json()["token"], **asked).json()["job"]["id"] == row.job_id, "the answer was lost"
    stranger = wire.register(secret).json()["token"]
    nothing = wire.match(stranger, **asked)
    assert (nothing.status_code, nothing["X-Nothing"]) == (204, "taken")
    told = wire.match(stranger, explain=True).json()["nothing"]
    assert (told["reason"], "each with a pilot of its own" in told["text"]) == ("queue", True)
    assert come(SubmittedJob.objects.order_by("job_id")[1]).epoch == 1
