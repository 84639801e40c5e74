"""What a pilot says of itself never widens what its credential, its queue and its VO let it do, or know."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.api.matching import nothing_now, resource_of, with_unknown
from brokerage.ledger.refiled_jobs import refile
from brokerage.models import Job, TaskQueue
from brokerage.queries.invariants import look
from brokerage.queries.pilots import QUEUES
from brokerage.rules.dispatch.pilot_messages import read_ask
from brokerage.rules.dispatch.requirement import Requirement, Resource, fits
from tests.api.test_pilot_verbs import Wire, wire  # noqa: F401 - a fixture
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents

pytestmark = pytest.mark.django_db


def resource(says: dict[str, Any], group: str = "") -> Resource:
    """What a private pilot of alice in a group offers."""
    QUEUES.forget()
    queue = QUEUES.named("ALPHA")
    assert queue is not None
    principal = Principal("pilot", "pilot", queues=("ALPHA",), vo="demo", pilot_kind="private", owner="alice", owner_group=group)
    return resource_of(principal, queue, read_ask({"request": str(uuid4()), **says}))


@pytest.mark.parametrize("says", [{}, {"owner_group": ["prod"]}, {"owner_group": "prod", "owner": "bob"}, {"owner": ["bob"]}])
@pytest.mark.parametrize("group", ["", "higgs"])
def test_a_private_pilot_gets_no_job_of_another_owner_by_naming_a_group_that_shares_its_jobs(
    says: dict[str, Any], group: str
) -> None:
    grid("ALPHA")
    set_override("dispatch", "GROUPS", {"prod": {"properties": ["JOB_SHARING"]}}, who="test", why="a group that shares")
    offer = resource(says, group)
    assert not fits(Requirement("ALPHA", vo="demo", owner="bob", owner_group="prod"), offer)
    assert not fits(Requirement("ALPHA", vo="demo", owner="bob", owner_group=group), offer)


def test_a_private_pilot_of_a_group_that_shares_its_jobs_runs_them_all() -> None:
    grid("ALPHA")
    set_override("dispatch", "GROUPS", {"prod": {"properties": ["JOB_SHARING"]}}, who="test", why="a group that shares")
    offer = resource({}, "prod")
    assert fits(Requirement("ALPHA", vo="demo", owner="bob", owner_group="prod"), offer)
    assert not fits(Requirement("ALPHA", vo="demo", owner="alice", owner_group="higgs"), offer)


def test_a_pilot_is_where_its_queue_is_whatever_it_says() -> None:
    grid("ALPHA")
    assert resource({"site": "ELSEWHERE"}).sites == frozenset({"SITE_ALPHA"})


def test_names_of_unknown_fields_cannot_break_an_answer() -> None:
    answer = with_unknown(nothing_now(), ("a\nb: c", "é\r\n"))
    assert answer["X-Unknown-Fields"] == "a b: c, ?"


def in_a_task_queue_of_before() -> TaskQueue:
    """All waiting jobs, as an update from a release finds them whose task queues did not tell whose the jobs are."""
    said = TaskQueue.objects.values().first()
    assert said is not None
    old = TaskQueue.objects.create(
        **{**said, "id": None, "owner": "", "owner_group": "", "cpu_time_s": 0, "requirement_set_id": None}
    )
    Job.objects.update(task_queue_id=old.id)
    TaskQueue.objects.exclude(id=old.id).delete()
    return old


def test_jobs_of_before_an_update_come_to_the_task_queues_of_their_owners(wire: Wire) -> None:  # noqa: F811
    grid("ALPHA")
    submitted(parameters("hers", userName="alice", workingGroup="higgs", tags=["MultiProcessor"], nEvents=20, nEventsPerJob=10))
    submitted(parameters("his", userName="bob", nEvents=10, nEventsPerJob=10))
    run_agents()
    old = in_a_task_queue_of_before()
    secret = issue_enrolment("ALPHA", owner="alice").text
    token = wire.register(secret).json()["token"]
    assert wire.match(token, tags=["MultiProcessor"]).status_code == 204
    for _ in range(2):
        run_agent("reap", looked=True)
    assert Counter(Job.objects.values_list("task_queue__owner", "task_queue__owner_group")) == {
        ("alice", "higgs"): 2,
        ("bob", ""): 1,
    }
    assert not Job.objects.filter(task_queue_id=old.id).exists()
    assert wire.match(token).status_code == 204, "what the task asks for is known again"
    told = wire.match(token, tags=["MultiProcessor"]).json()["job"]
    assert Job.objects.get(id=told["id"]).task_queue.owner == "alice"
    assert [finding.invariant.name for finding in look() if finding.examples] == []


def test_few_jobs_of_before_are_put_elsewhere_at_a_time() -> None:
    grid("ALPHA")
    submitted(parameters("t", nEvents=50, nEventsPerJob=10))
    run_agents()
    in_a_task_queue_of_before()
    assert [refile(2), refile(2), refile(2), refile(2)] == [2, 2, 1, 0]
