"""Pilots ask at a site that has limits: what it advertises, running limits, delays and stations hold, and pilots are told."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import timedelta
from threading import Timer
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, OperationalError, connection
from django.test import Client
from django.utils.timezone import now

from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.sql.prepared import Call, Rows
from broker_site.roof.web.pilot_verbs import PilotVerbs
from brokerage.ledger import handing_out
from brokerage.ledger.match_limits import LIMITS
from brokerage.ledger.site_limits import SiteCount, advertise
from brokerage.ledger.site_room import SITE_ROOM
from brokerage.models import ComputingQueue, Job, SiteAdvertisement
from brokerage.queries.held_slots import forget_tasks
from brokerage.queries.waiting import WaitingWork
from brokerage.rules.dispatch.site_limits import Advertisement
from brokerage.rules.dispatch.waiting_list import WaitingQueue
from tests.api.test_pilot_verbs import Wire, wire  # noqa: F401 - a fixture
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from tests.locks import locked
from tests.pilot.conftest import until

pytestmark = pytest.mark.django_db

SITE = "SITE_ALPHA"


@pytest.fixture(autouse=True)
def alpha() -> Iterator[None]:
    """A queue with 12 waiting jobs of ada, and processes that know nothing."""
    SITE_ROOM.forget()
    LIMITS.forget()
    forget_tasks()
    grid("ALPHA")
    configure("SITE_BLOCK_LIFE", "1min")  # room is handed back when the test says so: who does it by himself sees no row of it
    yield
    SITE_ROOM.forget()
    LIMITS.forget()


class Beginning(Client):
    """Begins requests as the web server does; they are carried out later."""

    def request(self, **request: Any) -> Any:
        return PilotVerbs().begin(self._base_environ(**request))  # type: ignore[attr-defined]


def jobs(n: int = 12, **more: Any) -> None:
    submitted(parameters(f"t{uuid4().hex[:6]}", nEvents=10 * n, nEventsPerJob=10, **more))
    run_agents()
    assert Job.objects.filter(status="activated").exists()


def ad(max_jobs: int, max_submitting: int = 1000, current: int = 0, ago_s: float = 10, stations: tuple[str, ...] = ()) -> None:
    said = Advertisement(max_jobs=max_jobs, max_submitting_jobs=max_submitting, current_jobs=current, current_submitting_jobs=0)
    advertise(SITE, SiteCount(said, now() - timedelta(seconds=ago_s), stations), "enrolment")


def configure(key: str, text: str) -> None:
    set_override("dispatch", key, text, who="ada", why="test")


def pilot_of(wire: Wire) -> str:  # noqa: F811
    return wire.register(issue_enrolment("ALPHA").text).json()["token"]


def got(wire: Wire, n: int, **more: Any) -> int:  # noqa: F811
    """How many of so many pilots, one ask each, get a job."""
    return sum(wire.match(pilot_of(wire), **more).status_code == 200 for _ in range(n))


def nothing(wire: Wire, **more: Any) -> dict[str, Any]:  # noqa: F811
    """What a pilot that gets nothing is told."""
    answer = wire.match(pilot_of(wire), explain=True, **more)
    assert answer.status_code == 200
    assert answer.json()["job"] is None
    return answer.json()["nothing"]


def test_a_site_gets_as_many_jobs_as_it_advertises(wire: Wire) -> None:  # noqa: F811
    jobs()
    ad(100, current=95)
    assert got(wire, 7) == 5
    told = nothing(wire)
    assert told["reason"] == "limits"
    assert told["limits"] == ["SITE_ALPHA: 95 jobs there and 5 matched since, of at most 100 (MaxJobs)"]


def test_asks_that_find_no_job_take_no_room(wire: Wire) -> None:  # noqa: F811
    jobs(2)
    ad(5)
    assert got(wire, 6) == 2
    assert nothing(wire)["reason"] == "no_job"
    SITE_ROOM.hand_back()
    assert SiteAdvertisement.objects.get().matched == 2


def test_an_ask_for_several_gets_what_there_is_room_for(wire: Wire) -> None:  # noqa: F811
    configure("LEASES_PER_SLOT", "0")
    jobs()
    ad(3)
    token = wire.register(issue_enrolment("ALPHA").text).json()["token"]
    assert len(wire.match(token, n=9).json()["jobs"]) == 1, "the pilot has one core"
    SITE_ROOM.hand_back()
    assert SiteAdvertisement.objects.get().matched == 1


def test_the_same_ask_again_gets_its_job_though_there_is_no_room_any_more(wire: Wire) -> None:  # noqa: F811
    jobs()
    ad(1)
    token, request = pilot_of(wire), str(uuid4())
    first = wire.match(token, request=request)
    again = wire.match(token, request=request)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["job"]["id"] == again.json()["job"]["id"]


def test_a_running_limit_holds_and_is_told(wire: Wire) -> None:  # noqa: F811
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"owner": {"ada": 3}, "vo": {"demo": 100}}}')
    jobs()
    assert got(wire, 5) == 3
    told = nothing(wire)
    assert (told["reason"], told["limits"]) == ("limits", ["owner ada: 3 jobs there, of at most 3"])


def test_limits_by_share_and_label_hold_too(wire: Wire) -> None:  # noqa: F811
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"prod_source_label": {"user": 2}}}')
    jobs()
    assert got(wire, 4) == 2
    assert nothing(wire)["limits"] == ["prod_source_label user: 2 jobs there, of at most 2"]


def test_a_limit_is_told_whatever_its_value_looks_like(wire: Wire) -> None:  # noqa: F811
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"job_types": {"Merge at T1: fast": 1}, "owner": {"ada": 1}}}')
    jobs(jobTypes=["Merge at T1: fast"])
    assert got(wire, 2) == 1
    assert nothing(wire)["limits"] == [
        "job_types Merge at T1: fast: 1 job there, of at most 1",
        "owner ada: 1 job there, of at most 1",
    ]


def test_a_limit_of_one_owner_leaves_the_jobs_of_others(wire: Wire) -> None:  # noqa: F811
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"owner": {"ada": 1}}}')
    jobs(4)
    jobs(2, userName="bob")
    assert got(wire, 6) == 3
    assert set(Job.objects.filter(status="activated").values_list("task_queue__owner", flat=True)) == {"ada"}


def test_a_delay_says_for_how_long(wire: Wire) -> None:  # noqa: F811
    configure("MATCHING_DELAYS", '{"SITE_ALPHA": {"owner": {"ada": {"interval": 300, "burst": 2}}}}')
    jobs()
    assert got(wire, 4) == 2
    told = nothing(wire)
    assert told["reason"] == "limits"
    assert 200 < told["wait_s"] <= 301
    assert told["limits"][0].startswith("owner ada: the next match in")


def test_a_limit_of_a_ce_leaves_the_others(wire: Wire) -> None:  # noqa: F811
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"CEs": {"ce1": {"vo": {"demo": 2}}}}}')
    jobs()
    assert got(wire, 4, grid_ce="ce1") == 2
    assert got(wire, 3, grid_ce="ce2") == 3


@pytest.mark.parametrize("named", [["ce1", "ce2"], ["ce2", "ce1", "ce1"], ["ce1", "ANY"]])
def test_a_pilot_that_names_several_ces_does_not_escape_the_limits_of_one(wire: Wire, named: list[str]) -> None:  # noqa: F811
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"CEs": {"ce1": {"vo": {"demo": 2}}}}}')
    jobs()
    assert got(wire, 4, grid_ce=named) == 2
    assert nothing(wire, grid_ce=named)["limits"] == ["vo demo at ce1: 2 jobs there, of at most 2"]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_fails_gives_the_room_back_at_once(wire: Wire) -> None:  # noqa: F811
    jobs()
    ad(2)
    tokens = [pilot_of(wire) for _ in range(3)]
    with locked("LOCK TABLE brokerage_jobchange IN ACCESS EXCLUSIVE MODE"), connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
        failed = [wire.match(token).status_code for token in tokens]
        cursor.execute("RESET lock_timeout")
    assert min(failed) >= 500
    assert [wire.match(token).status_code for token in tokens] == [200, 200, 204]


@pytest.mark.django_db(transaction=True)
def test_where_the_answer_of_the_database_is_lost_the_room_stays_used_as_the_job_may_be_handed_out(wire: Wire) -> None:  # noqa: F811
    jobs()
    ad(2)
    tokens = [pilot_of(wire) for _ in range(3)]
    assert wire.match(tokens[0]).status_code == 200, "the session knows its statements"
    with connection.cursor():
        line = socket.socket(fileno=os.dup(connection.connection.fileno()))
    with locked("LOCK TABLE brokerage_jobchange IN ACCESS EXCLUSIVE MODE"):
        cut = Timer(0.3, line.shutdown, (socket.SHUT_RDWR,))
        cut.start()
        assert wire.match(tokens[1]).status_code == 503
        cut.join()
    line.close()
    connection.close()
    until(lambda: Job.objects.filter(status="sent").count() == 2)
    assert wire.match(tokens[2]).status_code == 204


@pytest.mark.django_db(transaction=True)
def test_asks_after_the_one_whose_connection_broke_have_asked_nothing_and_their_room_comes_back(wire: Wire) -> None:  # noqa: F811
    """Two asks of a pilot, carried out one after the other on one connection."""
    jobs()
    ad(8)
    assert got(wire, 3) == 3
    token, usual, wire.client = pilot_of(wire), wire.client, Beginning()
    begun = [wire.match(token) for _ in range(2)]
    wire.client = usual
    with connection.cursor():
        line = socket.socket(fileno=os.dup(connection.connection.fileno()))
    with locked("LOCK TABLE brokerage_jobchange IN ACCESS EXCLUSIVE MODE"):
        cut = Timer(0.3, line.shutdown, (socket.SHUT_RDWR,))
        cut.start()
        told = [answer.status_code for _, answer in PilotVerbs().end(begun)]
        cut.join()
    line.close()
    assert told == [503, 503]
    connection.close()
    until(lambda: Job.objects.filter(status="sent").count() == 4)
    assert got(wire, 8) == 4, "what the first may have got is used, the other got nothing"


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_document_cannot_be_made_takes_room_all_the_same(wire: Wire) -> None:  # noqa: F811
    jobs()
    ad(1)
    tokens = [pilot_of(wire) for _ in range(2)]
    Job.objects.update(storage="GONE")
    assert wire.match(tokens[0]).status_code == 500
    assert Job.objects.filter(status="sent").count() == 1
    assert wire.match(tokens[1]).status_code == 204


@pytest.mark.django_db(transaction=True)
def test_a_job_whose_document_cannot_be_made_takes_room_once_however_often_the_pilot_asks(wire: Wire) -> None:  # noqa: F811
    jobs()
    ad(8)
    token, request = pilot_of(wire), str(uuid4())
    Job.objects.update(storage="GONE")
    assert [wire.match(token, request=request).status_code for _ in range(4)] == [500] * 4
    SITE_ROOM.hand_back()
    assert (Job.objects.filter(status="sent").count(), SiteAdvertisement.objects.get().matched) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_such_a_job_is_in_the_way_of_no_other_ask_that_came_together_with_it(wire: Wire) -> None:  # noqa: F811
    jobs()
    ad(8)
    tokens, usual, wire.client = [pilot_of(wire) for _ in range(3)], wire.client, Beginning()
    Job.objects.filter(id=min(Job.objects.values_list("id", flat=True))).update(storage="GONE")
    begun, wire.client = [wire.match(token) for token in tokens], usual
    assert sorted(answer.status_code for _, answer in PilotVerbs().end(begun)) == [200, 200, 500]


@pytest.mark.django_db(transaction=True)
def test_of_asks_done_one_by_one_those_before_a_fault_get_their_jobs_and_others_take_no_room(
    wire: Wire,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs()
    ad(8)
    tokens, usual, wire.client = [pilot_of(wire) for _ in range(4)], wire.client, Beginning()
    begun, wire.client = [wire.match(token) for token in tokens], usual
    faults = iter([IntegrityError("raced"), None, OperationalError("its row is locked")])
    run = handing_out.run_together

    def failing(calls: list[Call]) -> Rows:
        if (fault := next(faults, None)) is not None:
            raise fault
        return run(calls)

    monkeypatch.setattr(handing_out, "run_together", failing)
    assert sorted(answer.status_code for _, answer in PilotVerbs().end(begun)) == [200, 503, 503, 503]
    SITE_ROOM.hand_back()
    assert SiteAdvertisement.objects.get().matched == 1


@pytest.mark.django_db(transaction=True)
def test_a_slot_that_cannot_be_noted_as_busy_gets_its_job(wire: Wire) -> None:  # noqa: F811
    token = pilot_of(wire)
    assert wire.match(token).status_code == 204
    jobs()
    with locked("LOCK TABLE brokerage_idleslot IN ACCESS EXCLUSIVE MODE"), connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '50ms'")
        assert wire.match(token).status_code == 200
        cursor.execute("RESET lock_timeout")


def test_a_fault_while_task_queues_are_looked_for_gives_the_room_back(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Open jobs, of which a queue that is drained gets none, and the database goes before what waits is read anew."""
    jobs()
    ad(1)
    token = pilot_of(wire)
    offers = WaitingWork.offers

    def breaking(*asked: Any, **more: Any) -> Iterator[tuple[WaitingQueue, Any]]:
        for waiting, window in offers(*asked, **more):
            yield waiting._replace(is_open=True), window
        raise OperationalError("the database has gone")

    ComputingQueue.objects.filter(name="ALPHA").update(status="brokeroff")
    with monkeypatch.context() as patch:
        patch.setattr(WaitingWork, "offers", breaking)
        assert wire.match(token).status_code == 503
    assert wire.match(token).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_an_ask_that_is_sent_again_counts_once(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """For the room of its site, for limits, and for whose turn it is."""
    jobs()
    ad(3)
    token, request = pilot_of(wire), str(uuid4())
    count, counted = WaitingWork.handed_out, list[float]()

    def counting(self: WaitingWork, waiting: WaitingQueue, hs06: float) -> None:
        counted.append(hs06)
        count(self, waiting, hs06)

    monkeypatch.setattr(WaitingWork, "handed_out", counting)
    jobs_got = {wire.match(token, request=request).json()["job"]["id"] for _ in range(4)}
    assert (len(jobs_got), len(counted)) == (1, 1)
    assert got(wire, 3) == 2, "of room for three the ask took one"


@pytest.mark.django_db(transaction=True)
def test_an_ask_that_is_sent_many_times_at_once_takes_the_room_of_one_job(wire: Wire) -> None:  # noqa: F811
    """Room in blocks of one, two and more is taken for all of them before any is told its job."""
    jobs()
    ad(8)
    token, request, usual, wire.client = pilot_of(wire), str(uuid4()), wire.client, Beginning()
    begun, wire.client = [wire.match(token, request=request) for _ in range(8)], usual
    assert {answer.status_code for _, answer in PilotVerbs().end(begun)} == {200}
    SITE_ROOM.hand_back()
    assert (Job.objects.filter(status="sent").count(), SiteAdvertisement.objects.get().matched) == (1, 1)


def test_jobs_with_stations_go_to_sites_that_advertise_one_of_them(wire: Wire) -> None:  # noqa: F811
    ad(50, stations=("st7",), ago_s=20)
    jobs(2, stations=["st1", "st7"])
    SITE_ROOM.forget()
    ad(50, stations=("st2",))
    SITE_ROOM.forget()
    told = nothing(wire)
    assert told["reason"] == "no_fit"
    assert {"attribute": "stations", "needs": "st1, st7", "has": "st2"} in told["lacks"]
    ad(50, stations=("st2", "st7"), ago_s=1)
    SITE_ROOM.forget()
    assert got(wire, 3) == 2
