"""Pilots that ask with what makes no sense, leave things out, or say what is not so: over HTTP, as they do it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now

from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.last_asks import LAST_ASKS
from brokerage.ledger.site_limits import SiteCount, advertise
from brokerage.ledger.site_room import SITE_ROOM
from brokerage.models import Job, QueueAsk
from brokerage.rules.dispatch.site_limits import Advertisement
from tests.api.test_pilot_verbs import Wire, another_pilot, pilot_token, wire  # noqa: F401 - fixtures
from tests.builders import parameters, submitted
from tests.flow.steps import run_agents

pytestmark = pytest.mark.django_db


def sent() -> int:
    return Job.objects.filter(status="sent").count()


def faults(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.content
    return [(error["field"], error["rule"]) for error in answer.json()["errors"]]


def test_a_number_out_of_its_range_is_refused_by_its_name(wire: Wire, pilot_token: str, subtests: pytest.Subtests) -> None:  # noqa: F811
    for field in ("cores", "memory_mb", "disk_mb", "walltime_s", "cpu_time_s", "n", "wait_s"):
        for number in (-1, -(10**15), 10**15):
            with subtests.test(field=field, number=number):
                assert faults(wire.match(pilot_token, **{field: number})) == [(field, "range")]
                assert sent() == 0


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity", "9" * 5000, '"many"', "[1]"])
def test_what_is_no_number_is_refused(wire: Wire, pilot_token: str, number: str) -> None:  # noqa: F811
    request = "0d1c0c0e-6a44-4b1c-9c0e-2f5f3f0e1a11"
    answer = wire.post("pilots/match/", pilot_token, f'{{"request": "{request}", "cpu_time_s": {number}}}'.encode())
    assert answer.status_code in (400, 422), answer.content
    assert sent() == 0


@pytest.mark.parametrize("field", ["tags", "required_tags", "grid_ce", "banned_sites", "owner_group"])
def test_ten_thousand_names_are_refused_by_the_name_of_their_list(wire: Wire, pilot_token: str, field: str) -> None:  # noqa: F811
    many = [f"tag{n}" for n in range(10_000)]
    assert (field, "length") in faults(wire.match(pilot_token, **{field: many}))
    assert sent() == 0


def test_a_pilot_that_tells_neither_site_nor_cpu_time_has_those_of_its_queue(wire: Wire, pilot_token: str) -> None:  # noqa: F811
    submitted(parameters("banned", nEvents=10, nEventsPerJob=10, bannedSites=["SITE_BETA"], taskPriority=990))
    run_agents()
    job = wire.match(pilot_token, site=None, cpu_time_s=None).json()["job"]
    assert job["queue"] == "ALPHA"
    LAST_ASKS.write()
    offer = QueueAsk.objects.get().offer
    assert (offer["sites"], offer["cpu_time_s"]) == (["SITE_ALPHA"], 86_400)


def test_a_pilot_with_no_cpu_time_left_gets_no_job_that_needs_some(wire: Wire, pilot_token: str) -> None:  # noqa: F811
    assert [wire.match(another_pilot(wire, slot=slot)).status_code for slot in "ab"] == [200, 200]
    submitted(
        parameters("timed", nEvents=10, nEventsPerJob=10, site="ALPHA", cpuTime=3600, cpuTimeUnit="HS06sPerEvent", baseWalltime=0)
    )
    run_agents()
    told = wire.match(pilot_token, cpu_time_s=0, explain=True).json()["nothing"]
    assert (told["reason"], told["lacks"][0]["attribute"], told["lacks"][0]["has"]) == ("no_fit", "cpu_time_s", "0")
    assert wire.match(pilot_token, cpu_time_s=86_400).status_code == 200


def test_fields_that_nobody_knows_are_reported_and_kept_with_the_ask(wire: Wire, pilot_token: str) -> None:  # noqa: F811
    answer = wire.match(pilot_token, SubmitPool="wms", PilotBenchmark={"DB12": 17})
    assert answer.status_code == 200
    assert answer.json()["unknown"] == ["SubmitPool", "PilotBenchmark"]
    assert answer["X-Unknown-Fields"] == "SubmitPool, PilotBenchmark"
    LAST_ASKS.write()
    assert QueueAsk.objects.get().unknown == ["SubmitPool", "PilotBenchmark"]


@pytest.mark.parametrize("tags", [["GPU"], []])
@pytest.mark.parametrize("any_tag", ["ANY", "any", ["Any"], ["GPU", "ANY"]])
def test_any_as_a_required_tag_requires_none(wire: Wire, pilot_token: str, any_tag: Any, tags: list[str]) -> None:  # noqa: F811
    assert wire.match(pilot_token, tags=tags, required_tags=any_tag).status_code == 200


def test_required_tags_leave_jobs_without_them(wire: Wire, pilot_token: str) -> None:  # noqa: F811
    assert faults(wire.match(pilot_token, required_tags="GPU")) == [("required_tags", "subset")]
    assert wire.match(pilot_token, tags="GPU", required_tags="GPU").status_code == 204


@pytest.mark.parametrize("said", ["SITE_BETA", "NOWHERE", "ANY"])
def test_a_pilot_that_lies_about_its_site_has_the_room_and_jobs_of_its_own(wire: Wire, pilot_token: str, said: str) -> None:  # noqa: F811
    set_override("dispatch", "SITE_BLOCK_LIFE", "1min", who="test", why="test")
    counts = Advertisement(max_jobs=1, max_submitting_jobs=10, current_jobs=0, current_submitting_jobs=0)
    advertise("SITE_ALPHA", SiteCount(counts, now() - timedelta(seconds=5)), "test")
    SITE_ROOM.forget()
    assert wire.match(pilot_token, site=said).json()["job"]["queue"] == "ALPHA"
    told = wire.match(another_pilot(wire), site=said, explain=True).json()["nothing"]
    assert told["limits"] == ["SITE_ALPHA: 0 jobs there and 1 matched since, of at most 1 (MaxJobs)"]
    SITE_ROOM.forget()


def test_a_pilot_serves_no_queue_that_its_enrolment_does_not_name(wire: Wire, pilot_token: str) -> None:  # noqa: F811
    assert wire.register(issue_enrolment("ALPHA").text, queue="BETA").status_code == 403
    answer = wire.match(pilot_token, queue="BETA")
    assert (answer.json()["job"]["queue"], answer.json()["unknown"]) == ("ALPHA", ["queue"])
