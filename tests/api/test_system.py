"""Agents, errors and the caller by REST: the same as the pages show, for whoever may see it."""

from __future__ import annotations

import pytest

from broker_site.foundation.agency.duties import AGENTS
from tests.api.people import faults, person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import BAD, end, run_agents, take


@pytest.mark.django_db
def test_every_agent_is_told_also_one_that_never_ran() -> None:
    told = person("ada", ("demo", "auditor")).get("agents/").json()
    assert [agent["name"] for agent in told] == list(AGENTS)
    assert {agent["health"] for agent in told} == {"never"}


@pytest.mark.django_db(transaction=True)
def test_errors_are_those_of_the_callers_vos_with_what_helps() -> None:
    (queue,) = grid("ALPHA")
    run_agents(1, ("tally",))
    submitted(parameters("t1", skipScout=True))
    run_agents()
    end(take(queue), BAD)
    run_agents(1, ("tally",))
    ada = person("ada", ("demo", "submitter"))
    (error,) = ada.get("errors/").json()["results"]
    assert (error["code"], error["jobs"], error["queues"]) == ("PAYLOAD_EXIT", 1, [{"queue": "ALPHA", "jobs": 1}])
    assert error["helps"]
    assert person("eve", ("other", "submitter")).get("errors/").json()["results"] == []
    assert faults(ada.get("errors/", window="2y", kind="all"), 400) == {("window", "one_of"), ("kind", "unknown")}


@pytest.mark.django_db
def test_the_caller_is_told_roles_and_what_they_allow() -> None:
    me = person("ada", ("demo", "submitter"), ("other", "auditor")).get("me/").json()
    assert (me["name"], me["roles"]) == ("ada", {"demo": ["submitter"], "other": ["auditor"]})
    assert "task:submit" in me["permissions"]
    assert "job:rebroker" not in me["permissions"]
    assert me["token"]
