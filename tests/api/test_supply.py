"""Jobs, decisions and the grid over REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker_site.foundation.kernel import clock
from brokerage.models import ComputingQueue, Decision, Feed, IdleHour, Job, LocalOverride, Site, StorageEndpoint, StoredSnapshot
from brokerage.rules.facts.job_kind import JobKind
from tests.api.people import Person, faults, ids, refused
from tests.builders import grid, parameters, submitted
from tests.cutting import cut, shared
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def worked(db: None) -> Task:
    """A task of ada whose jobs run at ALPHA: one failed, its retry running, the others waiting; BETA is offline."""
    alpha, _ = grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    task = submitted(parameters(nEvents=40, nEventsPerJob=10))
    run_agents()
    first = take(alpha)
    assert first is not None
    end(first, BAD)
    run_agents()
    take(alpha)
    return task


def rows(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_jobs_are_listed_newest_first_and_filtered(ada: Person, worked: Task) -> None:
    all_of_it = ids(ada.get("jobs/"))
    assert all_of_it == sorted(all_of_it, reverse=True)
    assert len(all_of_it) == 5
    Job.objects.filter(id=all_of_it[0]).update(kind=JobKind.MERGE)
    assert [job["kind"] for job in rows(ada.get("jobs/"))] == ["merge", *["normal"] * 4]
    assert ids(ada.get(f"tasks/{worked.id}/jobs/")) == all_of_it
    for query, n in (
        ({"status": "failed"}, 1),
        ({"status": "running,activated"}, 4),
        ({"task": worked.id}, 5),
        ({"task": worked.id + 1}, 0),
        ({"queue": "ALPHA"}, 5),
        ({"queue": "B*"}, 0),
        ({"vo": "demo", "user_name": "ada"}, 5),
        ({"processing_type": "simul"}, 0),
        ({"error_code": "PAYLOAD_EXIT"}, 1),
        ({"kind": "normal"}, 4),
        ({"kind": "merge"}, 1),
        ({"kind": "merge,normal"}, 5),
        ({"ended": "true"}, 1),
        ({"ended": "false"}, 4),
    ):
        assert len(ids(ada.get("jobs/", **query))) == n, query
    assert faults(ada.get("jobs/", stauts="failed"), 400) == {("stauts", "unknown")}


def test_a_job_is_read_with_inputs_outputs_result_and_history(ada: Person, worked: Task) -> None:
    failed = Job.objects.get(status="failed")
    told = ada.get(f"jobs/{failed.id}/").json()
    assert (told["status"], told["computing_queue"], told["vo"], told["user_name"]) == ("failed", "ALPHA", "demo", "ada")
    assert told["spec"]["transformation"] == "make_events.py"
    assert "--seed 1" in told["spec"]["job_parameters"]
    assert [(i["type"], i["use"], i["dataset_name"]) for i in told["inputs"]] == [
        ("pseudo_input", "returned", "pseudo_dataset"),
        ("random_seed", "returned", "pseudo_rndmseed"),
    ]
    assert [(o["type"], o["status"]) for o in told["outputs"]] == [("output", "failed"), ("log", "failed")]
    assert (told["result"]["error_code"], told["result"]["exit_code"]) == ("PAYLOAD_EXIT", 1)
    assert [m["new"] for m in told["history"]] == ["activated", "sent", "running", "holding", "failed"]
    (retry,) = told["retried_by"]
    assert ada.get(f"jobs/{retry}/").json()["retry_of"] == [failed.id]


def test_a_job_on_events_of_a_file_says_which(ada: Person) -> None:
    _, second = cut(shared([30]), 20)
    (told,) = ada.get(f"jobs/{second}/").json()["inputs"]
    assert (told["first_event"], told["last_event"], told["use"], told["tracked"]) == (20, 29, "live", True)
    assert told["event_range_id"] is not None


def test_a_live_job_has_no_result_and_tells_no_lease_holder(ada: Person, worked: Task) -> None:
    told = ada.get(f"jobs/{Job.objects.get(status='running').id}/").json()
    assert told["result"] is None
    assert told["lease_until"] is not None
    assert not {"lease_holder", "lease_request"} & set(told)


def test_jobs_and_decisions_of_other_vos_are_not_there(eve: Person, worked: Task) -> None:
    job, decision = Job.objects.first(), Decision.objects.first()
    assert job is not None
    assert decision is not None
    assert ids(eve.get("jobs/")) == []
    assert ids(eve.get("jobs/", task=worked.id, vo="demo")) == []
    assert refused((eve.get(p) for p in (f"jobs/{job.id}/", f"decisions/{decision.id}/", f"tasks/{worked.id}/jobs/")), 404)


def test_a_decision_tells_why_each_queue_was_chosen_or_not(ada: Person, worked: Task) -> None:
    decision = rows(ada.get(f"tasks/{worked.id}/decisions/"))[-1]
    assert (decision["outcome"], decision["n_candidates"], decision["n_chosen"]) == ("assign", 2, 1)
    told = ada.get(f"decisions/{decision['id']}/").json()
    assert told["explanation"]["chosen"][0]["name"] == "ALPHA"
    assert [(s["name"], s["criterion"]) for s in told["explanation"]["skipped"]] == [("BETA", "-status")]
    assert (told["why_not"], told["ask"]["task_id"]) == (None, worked.id)
    why = ada.get(f"decisions/{decision['id']}/", queue="BETA").json()["why_not"][0]
    assert (why["chosen"], why["first"]["criterion"]) == (False, "-status")
    assert set(why["checks"][0]) == {
        "criterion", "about", "passed", "reason", "numbers", "kind", "need", "limit", "depends_on"
    }  # fmt: skip


def test_a_queue_that_the_decision_did_not_know_is_404_and_a_lost_snapshot_410(ada: Person, worked: Task) -> None:
    decision = rows(ada.get(f"tasks/{worked.id}/decisions/"))[0]["id"]
    answer = ada.get(f"decisions/{decision}/", queue="GAMMA")
    faults(answer, 404)
    assert "knew no queue 'GAMMA'" in answer.json()["detail"]
    StoredSnapshot.objects.all().delete()
    assert ada.get(f"decisions/{decision}/").json()["explanation"]["detailed"] is False
    faults(ada.get(f"decisions/{decision}/", queue="BETA"), 410)


def test_decisions_are_filtered(ada: Person, worked: Task) -> None:
    path = f"tasks/{worked.id}/decisions/"
    assert rows(ada.get(path, outcome="pending")) == []
    assert rows(ada.get(path, policy="analysis"))
    assert rows(ada.get(path, policy="generic")) == []
    assert faults(ada.get(path, outcome="maybe"), 400) == {("outcome", "invalid_choice")}


def test_queues_tell_their_storage_and_their_jobs_by_state(ada: Person, eve: Person, worked: Task) -> None:
    alpha, beta = rows(ada.get("queues/"))
    assert (alpha["name"], alpha["site"], alpha["status"], beta["status"]) == ("ALPHA", "SITE_ALPHA", "online", "offline")
    assert alpha["jobs"] == {"activated": 3, "running": 1}
    assert beta["jobs"] == {}
    assert alpha["storages"] == [
        {"access": "read_lan", "position": 1, "storage": "ALPHA_DISK"},
        {"access": "write_lan", "position": 1, "storage": "ALPHA_DISK"},
    ]
    assert ada.get("queues/ALPHA/").json() == alpha
    assert ada.get("queues/NONE/").status_code == 404
    assert [q["name"] for q in rows(ada.get("queues/", status="offline"))] == ["BETA"]
    assert [q["name"] for q in rows(ada.get("queues/", name="*A", site="SITE_A*"))] == ["ALPHA"]
    assert [q["name"] for q in rows(eve.get("queues/"))] == ["ALPHA", "BETA"]


def test_queues_tell_what_operators_set_by_hand(ada: Person, worked: Task) -> None:
    LocalOverride.objects.create(
        kind="queue", name="BETA", attribute="status", value="offline", reason="water leak", who="olga", beneath="online"
    )
    alpha, beta = rows(ada.get("queues/"))
    assert alpha["overrides"] == []
    (told,) = beta["overrides"]
    assert [told[name] for name in ("attribute", "value", "beneath", "reason", "who")] == [
        *("status", "offline", "online", "water leak", "olga"),
    ]
    assert ada.get("queues/BETA/").json() == beta


def test_queues_tell_how_many_slots_idle_beside_work_and_why(ada: Person, worked: Task) -> None:
    now = clock.now()
    past = IdleHour(queue_id=ComputingQueue.objects.get(name="BETA").id, hour=now - timedelta(hours=2), looked_at=now, idle_s=9)
    last = IdleHour(queue=past.queue, hour=now, looked_at=now, idle_s=60, beside_s=20, idle=3, beside=1, why="jobs fit")
    IdleHour.objects.bulk_create([past, last])
    alpha, beta = rows(ada.get("queues/"))
    assert (alpha["idle"]["idle"], alpha["idle"]["hours"]) == (0, [])
    assert [beta["idle"][name] for name in ("idle", "beside", "held", "why")] == [3, 1, 0, "jobs fit"]
    assert [(hour["idle_s"], hour["beside_s"]) for hour in beta["idle"]["hours"]] == [(60, 20), (9, 0)]
    assert ada.get("queues/BETA/").json() == beta


def test_feeds_tell_how_old_they_are(ada: Person, worked: Task) -> None:
    then = clock.now() - timedelta(hours=3)
    place = "https://secret.example.org/"
    Feed.objects.create(name="cric", kind="cric-queues", place=place, good_at=then, fault="timeout", fault_since=then)
    answer = ada.get("feeds/")
    (feed,) = rows(answer)
    assert (feed["state"], feed["entries"], round(feed["age_s"] / 3600)) == ("fresh", 0, 3)
    assert feed["told"].startswith("feed cric: of 3 h ago; failing since ")
    assert "secret" not in answer.text


def test_sites_tell_their_storage_without_its_place_on_disk(ada: Person, worked: Task) -> None:
    StorageEndpoint.objects.update(path="/srv/secret/place", attributes={"token": "DATADISK"})
    Site.objects.update(attributes={"tier_level": 1})
    answer = ada.get("sites/")
    alpha, _ = rows(answer)
    assert (alpha["name"], alpha["queues"]) == ("SITE_ALPHA", ["ALPHA"])
    assert (alpha["storages"][0]["name"], alpha["storages"][0]["free_gb"]) == ("ALPHA_DISK", 5000)
    assert (alpha["attributes"], alpha["storages"][0]["attributes"]) == ({"tier_level": 1}, {"token": "DATADISK"})
    assert "/srv/secret" not in answer.text
    assert rows(ada.get("sites/", nucleus="true")) == []


def test_pages_by_name_follow_each_other(ada: Person, worked: Task) -> None:
    first = ada.get("queues/", page_size=1).json()
    assert [q["name"] for q in first["results"]] == ["ALPHA"]
    cursor = first["next"].partition("cursor=")[2].partition("&")[0].replace("%3D", "=")
    assert [q["name"] for q in rows(ada.get("queues/", page_size=1, cursor=cursor))] == ["BETA"]


@pytest.mark.parametrize("path", ["jobs/", "tasks/{}/jobs/", "tasks/{}/decisions/", "queues/", "sites/"])
def test_a_list_asks_as_much_of_the_database_for_many_rows_as_for_one(ada: Person, worked: Task, path: str) -> None:
    address = path.format(worked.id)
    ada.get(address)

    def queries(size: int) -> int:
        with CaptureQueriesContext(connection) as seen:
            assert rows(ada.get(address, page_size=size))
        return sum("gdpconfig_revision" not in query["sql"] for query in seen)  # looked at every two seconds

    run_jobs(ComputingQueue.objects.get(name="ALPHA"))
    assert queries(1) == queries(50)
