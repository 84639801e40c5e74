"""What pilots call, over HTTP: from an enrolment secret to a settled job, and every way of doing it wrong."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db.models import F
from django.test import Client

from broker_site.foundation.access.authentication import forget_verified, principal_of_token
from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.tokens import mint_job_token, read_job_token
from broker_site.foundation.gdpconfig import set_override
from brokerage.api.matching import FINISHING, MATCHING
from brokerage.api.pilots import ASKING_FOR_OUTCOMES, REGISTERING
from brokerage.api.reports import REPORTING
from brokerage.ledger.expiry import expire_leases
from brokerage.ledger.last_asks import LAST_ASKS
from brokerage.models import ComputingQueue, DeclaredSlots, Job, Pilot, StorageEndpoint
from brokerage.queries.pilots import PILOT_CORES, QUEUES
from brokerage.queries.waiting import WAITING
from tests.api.people import Person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from tests.locks import locked
from workqueues.models import CatalogueFile

pytestmark = pytest.mark.django_db


class Wire:
    """A pilot's side of the wire."""

    def __init__(self) -> None:
        self.client = Client(raise_request_exception=False)

    def post(self, path: str, token: str, body: Any) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.client.post(f"/api/v1/{path}", data, content_type="application/json", headers=headers)

    def register(self, secret: str, **more: Any) -> Any:
        return self.post("pilots/", secret, {"queue": "ALPHA", "host": "wn7", "slot": "s1", "cores": 1, **more})

    def match(self, token: str, **more: Any) -> Any:
        WAITING.forget()
        QUEUES.forget()
        return self.post("pilots/match/", token, {"request": str(uuid4()), "cores": 1, **more})


@pytest.fixture
def wire() -> Wire:
    LAST_ASKS.forget()
    for verb in (REGISTERING, MATCHING, REPORTING, FINISHING, ASKING_FOR_OUTCOMES):
        verb.forget()
    return Wire()


def another_pilot(wire: Wire, **more: Any) -> str:
    """The token of one more pilot at ALPHA."""
    return wire.register(issue_enrolment("ALPHA").text, **more).json()["token"]


@pytest.fixture
def pilot_token(wire: Wire) -> str:
    """The token of a pilot at ALPHA, where two jobs wait."""
    grid("ALPHA", "BETA")
    submitted(parameters(nEvents=20, nEventsPerJob=10, site="ALPHA"))
    run_agents()
    return wire.register(issue_enrolment("ALPHA").text).json()["token"]


@pytest.fixture
def job(wire: Wire, pilot_token: str) -> dict[str, Any]:
    """A job as it was handed out."""
    answer = wire.match(pilot_token)
    assert answer.status_code == 200, answer.content
    return answer.json()["job"]


def finished(job: dict[str, Any]) -> dict[str, Any]:
    outputs = [{"lfn": o["lfn"], "size": 3, "checksum": "ad:0000000a", "storage": o["storage"]} for o in job["outputs"]]
    return {"status": "finished", "outputs": outputs, "exit_code": 0}


def test_a_pilot_registers_gets_a_job_runs_it_and_reports_it(wire: Wire, pilot_token: str, job: dict[str, Any]) -> None:
    assert Pilot.objects.filter(queue__name="ALPHA", host="wn7").exists()
    assert job["parameters"].startswith("--seed 1 --run 1 --out=")
    beat = wire.post(f"jobs/{job['id']}/heartbeat/", job["token"], {"status": "starting"})
    beat = wire.post(f"jobs/{job['id']}/heartbeat/", beat.json()["token"], {"status": "running"})
    assert beat.json()["command"] is None
    assert Job.objects.get(id=job["id"]).status == "running"
    assert ComputingQueue.objects.get(name="ALPHA").last_start is not None
    answer = wire.post(f"jobs/{job['id']}/report/", beat.json()["token"], finished(job))
    assert (answer.status_code, answer.json()) == (200, {"status": "finished"})
    assert set(CatalogueFile.objects.values_list("checksum", flat=True)) == {"0000000a"}


def test_the_next_pilot_at_the_slot_gets_the_job_for_which_the_one_before_it_asked(wire: Wire, pilot_token: str) -> None:
    ask = {"request": str(uuid4())}
    lost = wire.match(pilot_token, **ask).json()["job"]
    another_pilot(wire)
    again = wire.match(pilot_token, **ask).json()["job"]
    assert (again["id"], again["epoch"]) == (lost["id"], lost["epoch"])
    assert wire.post(f"jobs/{again['id']}/report/", again["token"], finished(again)).json() == {"status": "finished"}


def test_it_is_told_where_a_job_ran_however_it_ended(wire: Wire, pilot_token: str, job: dict[str, Any], ada: Person) -> None:
    lost = wire.match(another_pilot(wire)).json()["job"]
    wire.post(f"jobs/{job['id']}/report/", job["token"], finished(job))
    Job.objects.filter(id=lost["id"]).update(lease_until="2020-01-01T00:00Z")
    assert expire_leases("agent:reap", 10) == 1
    Pilot.objects.filter(host="wn7").delete()
    for ended, how in ((job, "finished"), (lost, "failed")):
        answer = ada.get(f"jobs/{ended['id']}/").json()
        assert (answer["status"], answer["result"]["host"]) == (how, "wn7")


@pytest.mark.parametrize(
    ("label", "workflow", "hours"),
    [
        ("user", "", 0.5),
        ("panda", "", 0.5),
        ("managed", "", 4),
        ("ptest", "", 4),
        ("managed", "pull_ups", 4),
        ("user", "pull_ups", 0.5),
        ("managed", "push", 6),
        ("user", "push", 6),
    ],
)
def test_a_lease_is_as_long_as_a_job_of_the_activity_may_be_silent_at_the_queue(
    wire: Wire, label: str, workflow: str, hours: float
) -> None:
    for name, value in (("analysis", "30min"), ("production", "4h"), ("push", "6h")):
        set_override("watcher", f"HEARTBEAT_TIMEOUT_{name}", value, app="pandaserver", who="ada", why="test")
    grid("ALPHA")
    ComputingQueue.objects.update(workflow=workflow)
    submitted(parameters(prodSourceLabel=label, nEvents=10))
    run_agents()
    token, ask = wire.register(issue_enrolment("ALPHA").text).json()["token"], str(uuid4())
    first, again = (wire.match(token, request=ask).json()["job"] for _ in range(2))
    assert (first["lease_s"], again["lease_s"]) == (hours * 3600, hours * 3600)
    beat = wire.post(f"jobs/{first['id']}/heartbeat/", again["token"], {"status": "running"})
    assert beat.json()["lease_s"] == hours * 3600


def test_a_pilot_enrolled_for_a_vo_is_given_nothing_of_another(wire: Wire) -> None:
    grid("ALPHA")
    submitted(parameters(nEvents=10))
    run_agents()
    for vo, status in (("other", 204), ("demo", 200)):
        token = wire.register(issue_enrolment("ALPHA", vo=vo).text).json()["token"]
        assert wire.match(token).status_code == status


def test_of_jobs_of_one_priority_the_oldest_is_handed_out_first_whatever_it_needs(wire: Wire) -> None:
    grid("ALPHA")
    for name, ram in (("small", 500), ("large", 900), ("later", 500)):
        submitted(parameters(name, nEvents=10, ramCount=ram))
        run_agents()
    assert Job.objects.values("task_queue").distinct().count() == 2, "jobs of equal needs wait together"
    handed_out = [wire.match(another_pilot(wire)).json()["job"]["id"] for _ in range(3)]
    assert handed_out == sorted(Job.objects.values_list("id", flat=True))


def test_a_report_said_twice_gets_the_same_answer(wire: Wire, job: dict[str, Any]) -> None:
    first, second = (wire.post(f"jobs/{job['id']}/report/", job["token"], finished(job)) for _ in range(2))
    assert (first.status_code, first.content) == (second.status_code, second.content) == (200, first.content)


def test_a_report_with_an_old_epoch_is_409_for_another_job_403_and_changes_nothing(wire: Wire, job: dict[str, Any]) -> None:
    other = Job.objects.exclude(id=job["id"]).get()
    assert wire.post(f"jobs/{other.id}/report/", job["token"], finished(job)).status_code == 403
    Job.objects.filter(id=job["id"]).update(lease_until="2020-01-01T00:00Z")
    assert expire_leases("agent:reap", 10) == 1
    for verb, body in (("report", finished(job)), ("heartbeat", {"status": "running"})):
        answer = wire.post(f"jobs/{job['id']}/{verb}/", job["token"], body)
        assert answer.status_code == 409
        assert answer["Content-Type"] == "application/problem+json"
        assert "not held under this token" in answer.json()["detail"]
    assert not CatalogueFile.objects.exists()
    assert Job.objects.get(id=job["id"]).status == "failed"


def test_tokens_that_are_forged_expired_or_of_the_wrong_kind_are_refused(
    wire: Wire, pilot_token: str, job: dict[str, Any]
) -> None:
    path = f"jobs/{job['id']}/heartbeat/"
    body = {"status": "running"}
    assert wire.post(path, "", body).status_code == 401
    assert wire.post(path, job["token"][:-2] + ("00" if job["token"][-2:] != "00" else "11"), body).status_code == 401
    assert wire.post(path, mint_job_token(job["id"], job["epoch"], -100), body).status_code == 401
    assert wire.post(path, pilot_token, body).status_code == 403
    assert wire.post("pilots/match/", job["token"], {"request": str(uuid4())}).status_code == 403


def test_a_pilot_serves_only_the_queue_of_its_enrolment(wire: Wire) -> None:
    grid("ALPHA", "BETA")
    secret = issue_enrolment("BETA").text
    assert wire.register(secret).status_code == 403
    assert wire.register(secret, queue="BETA").status_code == 201
    assert not Pilot.objects.filter(queue__name="ALPHA", host="wn7").exists()


def test_a_pilot_registers_for_one_of_the_queues_of_its_enrolment_and_its_token_is_for_that_one(wire: Wire) -> None:
    grid("ALPHA", "BETA", "GAMMA")
    ComputingQueue.objects.exclude(name="GAMMA").update(site_id="SITE_ALPHA")
    secret = issue_enrolment("ALPHA", "BETA", site="SITE_ALPHA", owner="ada", owner_group="higgs").text
    refused = wire.register(secret, queue="GAMMA")
    assert (refused.status_code, refused.json()["title"]) == (403, "Another queue")
    assert refused.json()["detail"] == "The enrolment is for ALPHA, BETA, not for GAMMA."
    for name in ("ALPHA", "BETA"):
        pilot = principal_of_token(wire.register(secret, queue=name, owner="bob", pilot_kind="generic").json()["token"])
        assert (pilot.queues, pilot.private, pilot.owner, pilot.owner_group) == ((name,), True, "ada", "higgs")
    assert sorted(Pilot.objects.filter(host="wn7").values_list("queue__name", flat=True)) == ["ALPHA", "BETA"]


def test_a_pilot_serves_only_the_site_of_its_enrolment(wire: Wire) -> None:
    queue, _ = grid("ALPHA", "BETA")
    secret = issue_enrolment("ALPHA", site="SITE_ALPHA").text
    assert wire.register(secret).status_code == 201
    Pilot.objects.all().delete()
    ComputingQueue.objects.filter(id=queue.id).update(site_id="SITE_BETA")
    answer = wire.register(secret)
    assert (answer.status_code, answer.json()["title"]) == (403, "Another site")
    assert wire.register(issue_enrolment("ALPHA", site="NOWHERE").text).status_code == 403
    assert not Pilot.objects.exists()


def test_nothing_to_do_is_204_and_a_queue_that_is_offline_hands_out_nothing(wire: Wire, pilot_token: str) -> None:
    assert wire.match(pilot_token, memory_mb=10).status_code == 204
    assert wire.match(pilot_token).status_code == 200
    assert wire.match(another_pilot(wire)).status_code == 200
    assert wire.match(another_pilot(wire)).status_code == 204
    QUEUES.forget()
    ComputingQueue.objects.update(status="offline")
    token = another_pilot(wire)
    Pilot.objects.update(last_seen="2026-01-01T00:00Z")
    assert wire.match(token).status_code == 204
    assert Pilot.objects.filter(last_seen__gt="2026-01-02T00:00Z").count() == 1


def test_a_queue_whose_storages_are_down_hands_out_nothing_until_one_is_back(wire: Wire, pilot_token: str) -> None:
    storage = StorageEndpoint.objects.filter(name="ALPHA_DISK")
    storage.update(root_state="down")
    assert wire.match(pilot_token).status_code == 204
    storage.update(root_state="up")
    assert wire.match(pilot_token).status_code == 200


def test_a_repeated_ask_gets_the_same_job(wire: Wire, pilot_token: str) -> None:
    request = str(uuid4())
    first, again = (wire.match(pilot_token, request=request).json()["job"]["id"] for _ in range(2))
    assert first == again != wire.match(another_pilot(wire), request=request).json()["job"]["id"]


def test_a_pilot_holds_one_job_and_more_only_where_the_configuration_says_so_within_its_cores(
    wire: Wire, pilot_token: str, job: dict[str, Any]
) -> None:
    assert wire.match(pilot_token).status_code == 204
    set_override("dispatch", "LEASES_PER_SLOT", 0, who="ada", why="test")
    assert wire.match(pilot_token).status_code == 204, "the only core of the pilot is taken"
    wire.post(f"jobs/{job['id']}/report/", job["token"], finished(job))
    ComputingQueue.objects.update(corecount=0)
    DeclaredSlots.objects.create(queue=ComputingQueue.objects.get(name="ALPHA"), n=10)
    submitted(parameters("more", nEvents=30, nEventsPerJob=10, site="ALPHA"))
    run_agents()
    two = another_pilot(wire, cores=2)
    assert [wire.match(two, cores=2).status_code for _ in range(3)] == [200, 200, 204]
    set_override("dispatch", "LEASES_PER_SLOT", 2, who="ada", why="test")
    many = another_pilot(wire, cores=8)
    assert [wire.match(many, cores=8).status_code for _ in range(3)] == [200, 200, 204]


def test_cores_that_a_slot_has_not_are_refused_but_a_queue_without_number_gives_whole_nodes(wire: Wire) -> None:
    grid("ALPHA")
    secret = issue_enrolment("ALPHA").text
    answer = wire.register(secret, cores=2)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "cores")
    token = wire.register(secret).json()["token"]
    answer = wire.match(token, cores=10_000)
    assert (answer.status_code, answer.json()["errors"]) == (
        422,
        [{"field": "cores", "rule": "range", "message": "10000 cores, but the pilot registered with 1"}],
    )
    ComputingQueue.objects.update(corecount=0)
    assert wire.register(secret, cores=64).status_code == 201


def test_whoever_asks_too_often_waits_and_heartbeats_do_not(
    wire: Wire, pilot_token: str, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MATCHING, "clock", lambda: 0.0)
    MATCHING.forget()
    set_override("dispatch", "MATCH_BURST", 10, who="ada", why="test")
    answers = [wire.match(pilot_token) for _ in range(30)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 20
    assert refused[0]["Retry-After"] == "1"
    assert 0 < int(refused[0]["Retry-After-Ms"]) <= 200, "5 a second"
    assert refused[0]["Content-Type"] == "application/problem+json"
    path = f"jobs/{job['id']}/heartbeat/"
    assert {wire.post(path, job["token"], {"status": "running"}).status_code for _ in range(20)} == {200}
    assert wire.match(another_pilot(wire)).status_code == 200


def test_whoever_asks_too_often_what_became_of_jobs_waits_and_asks_for_work_do_not(
    wire: Wire, pilot_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ASKING_FOR_OUTCOMES, "clock", lambda: 0.0)
    set_override("dispatch", "MATCH_BURST", 10, who="ada", why="test")
    answers = [wire.post("pilots/settled/", pilot_token, {"jobs": [[7, 1]]}) for _ in range(30)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 20
    assert 0 < int(refused[0]["Retry-After-Ms"]) <= 200, "5 a second"
    assert wire.match(pilot_token).status_code == 200
    assert wire.post("pilots/settled/", another_pilot(wire), {"jobs": [[7, 1]]}).status_code == 200


def test_asks_of_a_pilot_whose_jobs_finish_at_once_do_not_count_and_of_one_whose_jobs_fail_do(wire: Wire) -> None:
    grid("ALPHA")
    for key, value in (("MATCH_RATE", 0.01), ("MATCH_BURST", 5), ("POLL", "1h")):
        set_override("dispatch", key, value, who="ada", why="test")
    set_override("jobbroker", "NQUEUELIMITSITE", 50, who="ada", why="test")
    submitted(parameters(nEvents=300, nEventsPerJob=10, site="ALPHA"))
    run_agents()
    quick, bad = another_pilot(wire), another_pilot(wire)
    for _ in range(8):
        answer = wire.match(quick)
        assert answer.status_code == 200
        job = answer.json()["job"]
        assert wire.post(f"jobs/{job['id']}/report/", job["token"], finished(job)).json() == {"status": "finished"}
    taken = 0
    while (answer := wire.match(bad)).status_code == 200:
        job, taken = answer.json()["job"], taken + 1
        wire.post(f"jobs/{job['id']}/report/", job["token"], {"status": "failed"})
    assert (answer.status_code, taken) == (429, 5)


def test_one_secret_registers_as_many_pilots_at_once_as_the_burst_and_then_slowly(wire: Wire) -> None:
    grid("ALPHA")
    set_override("dispatch", "REGISTER_BURST", 5, who="ada", why="test")
    set_override("dispatch", "REGISTER_RATE", 0.5, who="ada", why="test")
    secret = issue_enrolment("ALPHA").text
    assert [wire.register(secret).status_code for _ in range(6)] == [201] * 5 + [429]
    assert wire.register(issue_enrolment("ALPHA").text).status_code == 201, "that of another site"


def later(job_id: int, seconds: int) -> None:
    """The token of a job is so many seconds older."""
    Job.objects.filter(id=job_id).update(token_since=F("token_since") - timedelta(seconds=seconds))


def older(job: dict[str, Any], token: str, seconds: int) -> str:
    """The token as it would be, had it been issued so many seconds earlier."""
    return mint_job_token(job["id"], job["epoch"], 7200, issued=issued_of(token) - seconds)


def test_a_job_token_dies_a_minute_after_its_successor_was_issued_and_used(wire: Wire, job: dict[str, Any]) -> None:
    beat, body = f"jobs/{job['id']}/heartbeat/", {"status": "running"}
    old = older(job, job["token"], 121)
    later(job["id"], 121)
    new = wire.post(beat, old, body).json()["token"]
    assert new != old
    assert wire.post(beat, new, body).json()["token"] == new, "it is young"
    assert wire.post(beat, old, body).status_code == 200, "a request that was on its way"
    later(job["id"], 61)
    old, new = (older(job, token, 61) for token in (old, new))
    for path, message in ((beat, body), (f"jobs/{job['id']}/report/", finished(job))):
        answer = wire.post(path, old, message)
        assert (answer.status_code, "replaced" in answer.json()["detail"]) == (401, True)
    assert Job.objects.get(id=job["id"]).status == "running"
    assert wire.post(f"jobs/{job['id']}/report/", new, finished(job)).json() == {"status": "finished"}


@pytest.mark.parametrize("last", ["heartbeat", "report"])
def test_a_pilot_whose_answers_are_lost_for_long_keeps_its_job(wire: Wire, job: dict[str, Any], last: str) -> None:
    """A slow server or a broken network: heartbeats are done, and no answer brings the new token."""
    beat, body = f"jobs/{job['id']}/heartbeat/", {"status": "running"}
    old = job["token"]
    for _ in range(5):
        old = older(job, old, 150)
        later(job["id"], 150)
        assert wire.post(beat, old, body).status_code == 200
    path, message = (beat, body) if last == "heartbeat" else (f"jobs/{job['id']}/report/", finished(job))
    assert wire.post(path, old, message).status_code == 200


def test_who_held_a_job_before_takes_no_reports_from_who_holds_it_now(wire: Wire, job: dict[str, Any]) -> None:
    beat, body = f"jobs/{job['id']}/heartbeat/", {"status": "running"}
    set_override("dispatch", "REPORT_RATE", 0.01, who="ada", why="test")
    over = mint_job_token(job["id"], job["epoch"] - 1, 7200)
    assert [wire.post(beat, over, body).status_code for _ in range(3)] == [409, 429, 429]
    assert wire.post(f"jobs/{job['id']}/report/", job["token"], finished(job)).json() == {"status": "finished"}


def test_a_token_of_an_epoch_that_the_job_has_not_reached_is_told(wire: Wire, job: dict[str, Any]) -> None:
    """As after the database was set back."""
    ahead = mint_job_token(job["id"], job["epoch"] + 1, 7200)
    behind = mint_job_token(job["id"], job["epoch"] - 1, 7200)
    for token in (behind, ahead, ahead):
        assert wire.post(f"jobs/{job['id']}/heartbeat/", token, {"status": "running"}).status_code == 409
    (row,) = Audit.objects.filter(who="alert")
    assert (row.act, row.object) == ("alert.future_epoch", "job tokens")
    assert f"job {job['id']} is behind the epoch {job['epoch'] + 1}" in row.reason


def issued_of(token: str) -> int:
    return read_job_token(token).issued


def test_a_job_that_was_leased_before_tokens_said_when_they_were_issued_goes_on(wire: Wire, job: dict[str, Any]) -> None:
    Job.objects.filter(id=job["id"]).update(token_since=None, lease_slot=None)
    old = mint_job_token(job["id"], job["epoch"], 7200)
    new = wire.post(f"jobs/{job['id']}/heartbeat/", old, {"status": "running"}).json()["token"]
    assert issued_of(new) > 0
    assert wire.post(f"jobs/{job['id']}/report/", new, finished(job)).json() == {"status": "finished"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"status": ', 400),
        (b"[" * 100_000, 400),
        (b'{"status": "running", "status": "running"}', 400),
        (b'{"status": "run\\u0000ning"}', 400),
        (b'{"status": "\\ud800"}', 400),
        (b'{"status": NaN}', 400),
        (b'{"x": "' + b"a" * 1_100_000 + b'"}', 413),
        (b"[]", 400),
        (b'{"status": "sleeping"}', 422),
        (b"{}", 422),
    ],
)
def test_a_broken_deep_huge_or_wrong_body_is_a_clear_refusal(wire: Wire, job: dict[str, Any], body: bytes, status: int) -> None:
    before = Job.objects.get(id=job["id"]).status
    answer = wire.post(f"jobs/{job['id']}/heartbeat/", job["token"], body)
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert Job.objects.get(id=job["id"]).status == before


def test_a_report_without_a_status_is_refused_and_names_every_field_that_is_wrong(wire: Wire, job: dict[str, Any]) -> None:
    body = {
        "status": "perhaps",
        "outputs": [{"lfn": "", "size": -1, "checksum": "xyz", "storage": 7}, "no"],
        "exit_code": "1",
        "killed": "yes",
        "start_time": "2026-01-01T00:00:00",
        "missing_inputs": [1],
    }
    answer = wire.post(f"jobs/{job['id']}/report/", job["token"], body)
    assert answer.status_code == 422
    assert {e["field"] for e in answer.json()["errors"]} == {
        *("status", "exit_code", "killed", "start_time", "missing_inputs[0]", "outputs[1]"),
        *("outputs[0].lfn", "outputs[0].size", "outputs[0].checksum", "outputs[0].storage"),
    }
    assert Job.objects.get(id=job["id"]).ended_at is None


def test_what_of_a_report_cannot_be_is_left_out_and_noted_and_the_job_ends(wire: Wire, job: dict[str, Any], ada: Person) -> None:
    body = finished(job) | {
        "exit_code": "1",
        "start_time": "0001-01-01T00:00:00+14:00",
        "end_time": "9999-12-31T23:59:59-12:00",
        "metrics": {"cpu_s": 3.5, "text": "x" * 100_000},
        "samples": {"step_s": 1, "memory_mb": [7, -1], "cpu_s": [0, 1]},
    }
    body["outputs"][0]["n_events"] = 2**31 - 1
    assert wire.post(f"jobs/{job['id']}/report/", job["token"], body).json() == {"status": "finished"}
    result = ada.get(f"jobs/{job['id']}/").json()["result"]
    assert (result["exit_code"], result["metrics"], result["samples"]) == (None, {"cpu_s": 3.5}, None)
    assert Job.objects.get(id=job["id"]).spec.created_at.year == int(result["start_time"][:4])
    for name in ("start_time", "end_time", "exit_code", "outputs[0].n_events", "metrics.text"):
        assert name in result["notes"], name
    assert ada.get("jobs/").status_code == 200


def test_a_finished_job_whose_output_is_larger_than_any_file_has_failed_and_says_why(
    wire: Wire, job: dict[str, Any], ada: Person
) -> None:
    body = finished(job)
    body["outputs"][0]["size"] = 2**53
    assert wire.post(f"jobs/{job['id']}/report/", job["token"], body).json() == {"status": "failed"}
    result = ada.get(f"jobs/{job['id']}/").json()["result"]
    assert result["error_code"] == "OUTPUT_MISSING"
    assert "outputs[0].size: expected 0 to 100000000000000, found the number 9007199254740992" in result["error_message"]


def test_a_later_pilot_learns_what_became_of_the_jobs_of_a_dead_one(wire: Wire, pilot_token: str, job: dict[str, Any]) -> None:
    def outcomes() -> list[str]:
        pairs = [[job["id"], job["epoch"]], [job["id"], 99], [10**9, 1]]
        return [o["outcome"] for o in wire.post("pilots/settled/", pilot_token, {"jobs": pairs}).json()["outcomes"]]

    assert outcomes() == ["live", "gone"]
    wire.post(f"jobs/{job['id']}/report/", job["token"], finished(job))
    assert outcomes() == ["finished", "gone"]


def test_after_a_restore_a_pilot_that_held_a_job_registers_again_and_works(
    wire: Wire, pilot_token: str, job: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """It reported the job after the backup and asks; the restored database has the job as running until its lease ends."""
    idle = another_pilot(wire)
    assert wire.match(pilot_token).status_code == 204
    call_command("after_restore")
    forget_verified()
    assert wire.match(pilot_token).status_code == 401
    assert wire.match(another_pilot(wire)).status_code == 200, "the other job"
    assert wire.match(idle).status_code == 204, "who held nothing goes on"
    end = Job.objects.get(id=job["id"]).lease_until
    assert end is not None
    assert f"the last ends at {end:%Y-%m-%d %H:%M:%S} UTC" in capsys.readouterr().out


@pytest.fixture
def three_jobs(wire: Wire) -> tuple[str, list[dict[str, Any]]]:
    """A pilot's token, and the three jobs that it holds."""
    grid("ALPHA")
    submitted(parameters(nEvents=30, nEventsPerJob=10, site="ALPHA"))
    run_agents()
    token = wire.register(issue_enrolment("ALPHA").text, cores=1).json()["token"]
    Pilot.objects.update(core_count=8)
    PILOT_CORES.forget()
    set_override("dispatch", "LEASES_PER_SLOT", 3, who="ada", why="test")
    return token, [wire.match(token).json()["job"] for _ in range(3)]


def test_several_jobs_are_told_of_in_one_request(wire: Wire, three_jobs: tuple[str, list[dict[str, Any]]]) -> None:
    token, jobs = three_jobs
    beats = wire.post("pilots/reports/", token, {"jobs": [{"token": job["token"], "status": "running"} for job in jobs]})
    assert beats.status_code == 200, beats.content
    assert [(answer["token"], answer["command"]) for answer in beats.json()["jobs"]] == [(job["token"], None) for job in jobs]
    assert set(Job.objects.values_list("status", flat=True)) == {"running"}
    words = [{"token": job["token"], **finished(job)} for job in jobs]
    words[1] |= {"status": "failed", "error": {"code": "PAYLOAD_EXIT", "message": "exit code 1"}}
    for _ in range(2):  # an answer may be lost, and all be sent again
        ends = wire.post("pilots/reports/", token, {"jobs": words})
        assert ends.json() == {"jobs": [{"status": "finished"}, {"status": "failed"}, {"status": "finished"}]}
    assert list(Job.objects.order_by("id").values_list("status", flat=True)) == ["finished", "failed", "finished"]
    assert (
        CatalogueFile.objects.count() == sum(len(job["outputs"]) for job in (jobs[0], jobs[2])) + 1
    )  # the log of the failed one


def test_an_entry_that_is_refused_holds_up_no_other(wire: Wire, three_jobs: tuple[str, list[dict[str, Any]]]) -> None:
    token, jobs = three_jobs
    Job.objects.filter(id=jobs[0]["id"]).update(epoch=F("epoch") + 1)
    claim = read_job_token(jobs[1]["token"])
    of_another = mint_job_token(claim.job_id, claim.epoch, 60, pilot=claim.pilot + 1, issued=claim.issued)
    answers = wire.post(
        "pilots/reports/",
        token,
        {
            "jobs": [
                {"token": jobs[0]["token"], **finished(jobs[0])},
                {"token": of_another, **finished(jobs[1])},
                {"token": jobs[2]["token"], **finished(jobs[2])},
                {"token": jobs[1]["token"], "outputs": []},
                {"token": "gbj_1.1.1.1.1." + "0" * 64, "status": "running"},
                {"status": "running"},
            ]
        },
    ).json()["jobs"]
    assert [a.get("status") or a["problem"]["status"] for a in answers] == [409, 403, "finished", 422, 401, 401]
    assert answers[3]["problem"]["errors"][0]["field"] == "status"
    assert list(Job.objects.filter(ended_at__isnull=False).values_list("id", flat=True)) == [jobs[2]["id"]]


def test_one_job_twice_in_a_request_ends_once(wire: Wire, three_jobs: tuple[str, list[dict[str, Any]]]) -> None:
    token, jobs = three_jobs
    word = {"token": jobs[0]["token"], **finished(jobs[0])}
    answer = wire.post("pilots/reports/", token, {"jobs": [word, {**word, "status": "failed"}, word]})
    assert answer.json() == {"jobs": [{"status": "finished"}] * 3}


@pytest.mark.parametrize("jobs", [None, [], {}, [7], [{}] * 101])
def test_a_request_without_a_list_of_jobs_is_refused_as_a_whole(wire: Wire, pilot_token: str, jobs: Any) -> None:
    answer = wire.post("pilots/reports/", pilot_token, {"jobs": jobs})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("jobs")


def test_several_jobs_are_given_to_one_ask_within_the_room_of_the_pilot(wire: Wire) -> None:
    (queue,) = grid("ALPHA")
    DeclaredSlots.objects.create(queue=queue, n=10)
    submitted(parameters(nEvents=80, nEventsPerJob=10, site="ALPHA"))
    run_agents()
    token = wire.register(issue_enrolment("ALPHA").text).json()["token"]
    Pilot.objects.update(core_count=5)
    PILOT_CORES.forget()
    ask = {"request": str(uuid4()), "n": 4}
    set_override("dispatch", "LEASES_PER_SLOT", 3, who="ada", why="test")
    first = wire.match(token, **ask).json()["jobs"]
    assert len({job["id"] for job in first}) == 3, "as many as a slot may hold"
    again = wire.match(token, **ask).json()["jobs"]
    assert [(job["id"], job["epoch"]) for job in again] == [(job["id"], job["epoch"]) for job in first]
    set_override("dispatch", "LEASES_PER_SLOT", 0, who="ada", why="test")
    rest = wire.match(token, n=4).json()["jobs"]
    assert len(rest) == 2, "as many as cores are left"
    assert not {job["id"] for job in first} & {job["id"] for job in rest}
    assert wire.match(token, n=4).status_code == 204
    for job in first + rest:
        assert wire.post(f"jobs/{job['id']}/report/", job["token"], finished(job)).json() == {"status": "finished"}


@pytest.mark.parametrize("n", [0, 101, 1.5, "two"])
def test_a_number_of_jobs_that_cannot_be_is_refused(wire: Wire, pilot_token: str, n: Any) -> None:
    answer = wire.match(pilot_token, n=n)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "n")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("status", ["running", "finished"])
def test_a_job_that_somebody_else_has_locked_holds_up_no_other(
    wire: Wire, three_jobs: tuple[str, list[dict[str, Any]]], status: str
) -> None:
    token, jobs = three_jobs
    words = [{"token": job["token"], **(finished(job) | {"status": status})} for job in jobs]
    with locked(f"SELECT FROM brokerage_job WHERE id = {jobs[1]['id']} FOR UPDATE"):
        began = time.monotonic()
        answers = wire.post("pilots/reports/", token, {"jobs": words}).json()["jobs"]
        assert time.monotonic() - began < 4
    told = [answer["problem"]["status"] if "problem" in answer else "done" for answer in answers]
    assert told == ["done", 503, "done"]
    assert list(Job.objects.order_by("id").values_list("status", flat=True)) == [status, "sent", status]
    assert "problem" not in wire.post("pilots/reports/", token, {"jobs": words}).json()["jobs"][1]
