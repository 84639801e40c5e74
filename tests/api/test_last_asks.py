"""Why a pilot gets nothing, told apart; what the last asks at a queue got; which of them passed a waiting job by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user, issue_enrolment
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel import clock
from brokerage.ledger.last_asks import LAST_ASKS, NEWEST, RING, forget_old_asks
from brokerage.models import AskHour, ComputingQueue, Job, QueueAsk
from brokerage.plugins import check_named
from brokerage.rules.dispatch import dispatch_policy
from brokerage.rules.dispatch.dispatch_policy import DISPATCH_POLICIES
from brokerage.rules.dispatch.policies import Panda
from brokerage.rules.dispatch.queue_asks import EndedAsk, offer_of, resource_of
from brokerage.rules.dispatch.requirement import Misfit, Resource
from brokerage.rules.dispatch.why_nothing import Nothing
from tests.api.people import person
from tests.api.test_pilot_verbs import Wire, wire  # noqa: F401 - a fixture
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Iterator[ComputingQueue]:
    (made,) = grid("ALPHA")
    LAST_ASKS.forget()
    yield made
    LAST_ASKS.forget()


@pytest.fixture
def token(wire: Wire, queue: ComputingQueue) -> str:  # noqa: F811
    """The token of a pilot at ALPHA."""
    answer = wire.register(issue_enrolment("ALPHA").text)
    return str(answer.json()["token"])


def work(**more: object) -> Job:
    """One job that waits."""
    submitted(parameters(f"t{uuid4().hex[:8]}", **{"nEvents": 10, **more}))
    run_agents(1)
    return Job.objects.latest("id")


def reason(answer: object) -> tuple[int, str]:
    return answer.status_code, answer.headers.get("X-Nothing", "")  # type: ignore[attr-defined]


def test_the_answer_to_an_ask_in_vain_names_its_reason(wire: Wire, token: str, queue: ComputingQueue) -> None:  # noqa: F811
    assert reason(wire.match(token)) == (204, "no_job")
    work(ramCount=4000)
    assert reason(wire.match(token, memory_mb=1000)) == (204, "no_fit")
    told = wire.match(token, memory_mb=1000, explain=True)
    assert reason(told) == (200, "no_fit")
    (lack,) = told.json()["nothing"]["lacks"]
    assert (lack["attribute"], lack["has"]) == ("memory_mb", "1000")
    assert wire.match(token, memory_mb=1000, explain=True, n=2).json()["jobs"] == []
    ComputingQueue.objects.update(status="offline")
    assert reason(wire.match(token)) == (204, "queue")


def test_a_pilot_that_holds_as_much_as_it_may_is_told_so(wire: Wire, token: str) -> None:  # noqa: F811
    submitted(parameters(nEvents=30))
    run_agents(1)
    assert wire.match(token).status_code == 200
    full = wire.match(token, explain=True)
    assert reason(full) == (200, "pilot_full")
    assert full.json()["nothing"]["text"].endswith("it holds 1 of at most 1")
    set_override("dispatch", "LEASES_PER_SLOT", 0, who="test", why="test")
    assert wire.match(token, explain=True).json()["nothing"]["text"].endswith("its jobs have 1 of its 1 cores")


def test_fields_of_an_ask_that_are_not_known_are_named_and_kept(wire: Wire, token: str, queue: ComputingQueue) -> None:  # noqa: F811
    vain = wire.match(token, favourite_colour="blue")
    assert (vain.status_code, vain.headers["X-Unknown-Fields"]) == (204, "favourite_colour")
    assert wire.match(token, explain=True, favourite_colour="blue").json()["unknown"] == ["favourite_colour"]
    work()
    got = wire.match(token, favourite_colour="blue")
    assert (got.status_code, got.json()["unknown"]) == (200, ["favourite_colour"])
    LAST_ASKS.write()
    assert set(QueueAsk.objects.values_list("outcome", "unknown__0")) == {
        ("no_job", "favourite_colour"),
        ("job", "favourite_colour"),
    }


def test_an_ask_writes_nothing_by_itself_and_the_last_ones_of_a_queue_are_shown_with_their_outcome(
    wire: Wire,  # noqa: F811
    token: str,
    queue: ComputingQueue,
) -> None:
    LAST_ASKS.by_server = True
    try:
        wire.match(token)
        job = work(ramCount=900)
        wire.match(token, memory_mb=500)
        wire.match(token, memory_mb=5000)
        assert not QueueAsk.objects.exists()
        LAST_ASKS.write()
    finally:
        LAST_ASKS.by_server = False
    shown = person("ada", ("demo", "auditor")).get("queues/ALPHA/asks/").json()
    assert [ask["outcome"] for ask in shown["asks"]] == ["job", "no_fit", "no_job"]
    got, missed, _ = shown["asks"]
    assert (got["jobs"], got["task_queue"]) == ([job.id], job.task_queue_id)
    assert (missed["lacks"][0]["attribute"], missed["task_queue"]) == ("memory_mb", job.task_queue_id)
    assert "500 MB" in missed["offer"]
    counts = {c["outcome"]: (c["ten_minutes"], c["hour"], c["day"], sum(c["minutes"])) for c in shown["counts"]}
    assert counts == dict.fromkeys(("job", "no_fit", "no_job"), (1, 1, 1, 1))
    out = StringIO()
    call_command("explain", "--ask", "ALPHA", "--json", stdout=out)
    assert json.loads(out.getvalue()) == shown
    out = StringIO()
    call_command("explain", "--ask", "ALPHA", stdout=out)
    assert f"jobs {job.id}" in out.getvalue()
    assert re.search(r"\n  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC pilot ", out.getvalue())
    for wrong in (["--ask", "ALPHE"], ["7", "--ask", "ALPHA"]):
        with pytest.raises(CommandError):
            call_command("explain", *wrong)
    browser = Client()
    browser.force_login(ensure_user("eve", roles=[("demo", "operator")]))
    page = browser.get("/queues/ALPHA/").content.decode()
    assert f'<a href="/jobs/{job.id}/">{job.id}</a>' in page
    assert "memory_mb: it needs 900, the pilot has 500" in page
    assert browser.get("/queues/ALPHA/asks.json").json() == shown
    assert browser.get("/queues/NONE/asks.json").status_code == 404


def test_who_may_not_look_into_a_vo_sees_that_pilots_asked_and_nothing_of_its_jobs(
    wire: Wire,  # noqa: F811
    token: str,
) -> None:
    work(ramCount=900)
    wire.match(token, memory_mb=500)
    wire.match(token, memory_mb=5000)
    LAST_ASKS.write()
    got, missed = person("mal", ("other", "auditor")).get("queues/ALPHA/asks/").json()["asks"]
    assert (got["outcome"], got["jobs"], got["task_queue"]) == ("job", [], None)
    assert (missed["text"], missed["lacks"]) == ("jobs wait here, and none suits the pilot", [])


def test_a_waiting_job_tells_where_it_stands_and_which_asks_passed_it_by(
    wire: Wire,  # noqa: F811
    token: str,
    queue: ComputingQueue,
) -> None:
    set_override("dispatch", "MATCH_BURST", 100, who="test", why="test")
    first = work(taskPriority=900, ramCount=300)
    job = work(ramCount=2000)
    last = work(ramCount=2000)
    wire.match(token, memory_mb=1000)
    wire.match(token, memory_mb=100)
    LAST_ASKS.write()
    ada = person("ada", ("demo", "auditor"))
    told = ada.get(f"jobs/{last.id}/waiting/").json()
    assert (told["ready"], told["ahead"], told["waiting"]) == (True, 1, 2)
    assert [(p["queue"], p["policy"], p["task_queues"], p["ahead"]) for p in told["places"]] == [("ALPHA", "panda", 1, 0)]
    assert told["places"][0]["share"] == "work queue default"
    assert re.match(r"1 core, [\d,]+ MB", told["requires"])
    assert (told["asks"], told["suited"], told["lacked"]) == (2, 0, {"memory_mb": 2})
    assert told["passed"][0]["why"] == "memory_mb: the job needs 1800, the pilot had 100"
    wire_2 = wire.register(issue_enrolment("ALPHA").text, slot="s2").json()["token"]
    assert wire.match(wire_2, memory_mb=8000).json()["job"]["id"] == job.id
    LAST_ASKS.write()
    told = ada.get(f"jobs/{last.id}/waiting/").json()
    assert (told["passed"][0]["suited"], told["passed"][0]["why"]) == (True, "another job of the same task queue was first")
    browser = Client()
    browser.force_login(ensure_user("eve", roles=[("demo", "operator")]))
    assert browser.get(f"/jobs/{last.id}/waiting.json").json() == told
    page = browser.get(f"/jobs/{last.id}/").content.decode()
    assert "memory_mb: the job needs 1800, the pilot had 100" in page
    assert f"among jobs that require {told['requires']}<" in page
    for gone in (first.id, 10**9):
        assert ada.get(f"jobs/{gone}/waiting/").status_code == 404
    assert person("mal", ("other", "auditor")).get(f"jobs/{last.id}/waiting/").status_code == 404


def kept(queue: ComputingQueue, *ended: EndedAsk) -> None:
    for ask in ended:
        LAST_ASKS.note(queue.id, ask)
    LAST_ASKS.write()


def test_asks_for_jobs_of_another_vo_pass_a_job_by_without_a_word_of_its_task_queues_and_limits(queue: ComputingQueue) -> None:
    job = work(ramCount=300)
    now, big = clock.now().timestamp(), Resource("ALPHA", 8, 16000)
    theirs = Nothing("limits", limits=["secret at SITE_ALPHA"], vo="other")
    got = EndedAsk(now, uuid4(), big, jobs=[10**6], vo="other", task_queue=777_001)
    ours = Nothing("limits", limits=["known at SITE_ALPHA"], vo="demo")
    kept(queue, got, EndedAsk(now, uuid4(), big, nothing=theirs), EndedAsk(now, uuid4(), big, nothing=ours))
    told = person("ada", ("demo", "auditor")).get(f"jobs/{job.id}/waiting/").json()
    whys = sorted(one["why"] for one in told["passed"])
    assert len(whys) == 3
    assert "the pilot got jobs of another task queue" in whys
    assert [why.endswith(": known at SITE_ALPHA") for why in whys].count(True) == 1
    browser = Client()
    browser.force_login(ensure_user("eve", roles=[("demo", "operator")]))
    page = browser.get(f"/jobs/{job.id}/").content.decode()
    for shown in (json.dumps(told), page, browser.get(f"/jobs/{job.id}/waiting.json").content.decode()):
        assert "secret" not in shown
        assert "777001" not in shown
    everything = json.dumps(person("root", superuser=True).get(f"jobs/{job.id}/waiting/").json())
    assert "secret at SITE_ALPHA" in everything
    assert "other jobs were served first" in everything


def test_a_job_that_others_overtake_is_told_their_priority(queue: ComputingQueue) -> None:
    job, first = work(ramCount=300), work(ramCount=700, taskPriority=900)
    kept(
        queue,
        EndedAsk(
            clock.now().timestamp(), uuid4(), Resource("ALPHA", 8, 16000), jobs=[1], vo="demo", task_queue=first.task_queue_id
        ),
    )
    (passed,) = person("ada", ("demo", "auditor")).get(f"jobs/{job.id}/waiting/").json()["passed"]
    assert passed["why"].startswith(f"other jobs were served first: the first of them has the priority {first.priority}")


def test_whose_private_pilots_ask_is_told_to_who_sees_all_vos_only(queue: ComputingQueue) -> None:
    job = work(ramCount=300)
    private = Resource("ALPHA", 8, 16000, owners=frozenset({"carol"}), owner_groups=frozenset({"physics"}))
    private = private._replace(sharing_groups=frozenset({"chem"}))
    lack = Misfit("owner", "ada", "carol, physics")
    missed = Nothing("no_fit", task_queue=job.task_queue_id or 0, lacks=[lack], vo="demo")
    kept(queue, EndedAsk(clock.now().timestamp(), uuid4(), private, nothing=missed))
    ada, root = person("ada", ("demo", "auditor")), person("root", superuser=True)
    for path in ("queues/ALPHA/asks/", f"jobs/{job.id}/waiting/"):
        hidden, shown = ada.get(path).content.decode(), root.get(path).content.decode()
        assert "other owners" in hidden
        assert not [name for name in ("carol", "physics", "chem") if name in hidden]
        assert "carol" in shown
    (ask,) = root.get("queues/ALPHA/asks/").json()["asks"]
    assert "owners carol" in ask["offer"]


def test_a_request_sent_again_is_not_filed_under_the_task_queue_that_was_tried_now(
    wire: Wire,  # noqa: F811
    token: str,
    queue: ComputingQueue,
) -> None:
    work(ramCount=300)
    first = wire.match(token, request=(request := str(uuid4()))).json()["job"]["id"]
    work(ramCount=900)
    assert wire.match(token, request=request, memory_mb=5000).json()["job"]["id"] == first
    LAST_ASKS.write()
    again, once = QueueAsk.objects.order_by("-id")
    assert (once.jobs, once.vo, "task_queue" in once.told) == ([first], "demo", True)
    assert (again.jobs, again.vo, again.told) == ([first], "", {"task_queue": None})


def asks(n: int, at: float, outcome: Nothing | None = None) -> list[EndedAsk]:
    return [EndedAsk(at + i, uuid4(), Resource("ALPHA", 1, 2000, vo="demo"), nothing=outcome) for i in range(n)]


def test_of_many_asks_the_newest_hundred_are_kept_and_all_are_counted(queue: ComputingQueue) -> None:
    LAST_ASKS.by_server = True
    now = clock.now().replace(second=0).timestamp()
    try:
        for each in range(RING // NEWEST + 3):
            for ask in asks(3 * NEWEST, now, Nothing("no_job")):
                LAST_ASKS.note(queue.id, ask._replace(at=now, took_ms=each))
            LAST_ASKS.write()
    finally:
        LAST_ASKS.by_server = False
    assert QueueAsk.objects.count() == RING
    assert QueueAsk.objects.earliest("id").took_ms == 3
    (hour,) = AskHour.objects.all()
    assert (sum(hour.minutes), len(hour.minutes)) == (3 * NEWEST * (RING // NEWEST + 3), 60)


def test_counts_are_kept_for_a_day_and_asks_of_a_queue_that_is_gone_harm_nobody(queue: ComputingQueue) -> None:
    now = clock.now().timestamp()
    LAST_ASKS.by_server = True
    try:
        for at in (now, now - 60, now - 26 * 3600):
            LAST_ASKS.note(queue.id, asks(1, at)[0])
        LAST_ASKS.note(queue.id + 1000, asks(1, now)[0])
        LAST_ASKS.write()
    finally:
        LAST_ASKS.by_server = False
    assert QueueAsk.objects.count() == 3
    assert AskHour.objects.filter(hour__lt=clock.now() - timedelta(hours=25)).count() == 1
    forget_old_asks()
    assert sum(sum(row.minutes) for row in AskHour.objects.all()) == 2


def test_what_a_pilot_offered_is_read_back_as_it_was() -> None:
    offered = Resource(
        "ALPHA", 8, 16000, 0, 3600, "demo", 28800, tags=None, sites=frozenset({"S"}), grid_ces=frozenset({"ce"}), setup="x"
    )
    assert resource_of("ALPHA", json.loads(json.dumps(offer_of(offered)))) == offered


def test_a_policy_that_is_not_installed_is_told_to_pilots_and_people(
    wire: Wire,  # noqa: F811
    token: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = work()
    fancy = type("Fancy", (Panda,), {"name": "fancy"})()
    with monkeypatch.context() as installed:
        installed.setattr(dispatch_policy, "DISPATCH_POLICIES", {**DISPATCH_POLICIES, "fancy": fancy})
        set_override("dispatch", "DISPATCH_POLICY", "fancy", vo="demo", who="test", why="its package is there")
    why = "DISPATCH_POLICY of VO demo names a policy that is not installed (there is no dispatch policy 'fancy'; there are: "
    assert reason(wire.match(token)) == (204, "policy")
    told = wire.match(token, explain=True).json()["nothing"]
    assert told["reason"] == "policy"
    assert why in told["text"]
    LAST_ASKS.write()
    ada = person("ada", ("demo", "auditor"))
    (place,) = ada.get(f"jobs/{job.id}/waiting/").json()["places"]
    assert (place["policy"], why in place["fault"]) == ("", True)
    browser = Client()
    browser.force_login(ensure_user("eve", roles=[("demo", "operator")]))
    assert "names a policy that is not installed" in browser.get(f"/jobs/{job.id}/").content.decode()
    (warning,) = check_named(databases=["default"])
    assert (warning.id, warning.msg.partition(";")[0]) == (
        "brokerage.W002",
        "dispatch.DISPATCH_POLICY of VO demo: there is no dispatch policy 'fancy'",
    )
    set_override("dispatch", "DISPATCH_POLICY_ALPHA", "panda", who="test", why="another one for this queue")
    assert wire.match(token).status_code == 200
