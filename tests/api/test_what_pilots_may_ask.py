"""What a pilot says of itself never widens what its credential, its queue and its VO let it do, or know."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from broker_site.foundation.access.principal import Principal
from broker_site.foundation.gdpconfig import set_override
from brokerage.api.matching import nothing_now, resource_of, with_unknown
from brokerage.queries.pilots import QUEUES
from brokerage.rules.dispatch.pilot_messages import read_ask
from brokerage.rules.dispatch.requirement import Requirement, Resource, fits
from tests.builders import grid

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
