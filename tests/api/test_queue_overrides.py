"""Attributes of a queue by hand over REST: set, changed and taken away, all at once or not at all; who, why and until when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from broker_site.foundation.access.models import Audit
from broker_site.foundation.kernel import clock
from brokerage.ledger.grid_overrides import end_expired
from brokerage.models import ComputingQueue, LocalOverride
from tests.api.people import Person, faults, person
from tests.builders import grid

pytestmark = pytest.mark.django_db
PATH = "queues/ALPHA/overrides/"


@pytest.fixture
def root() -> Person:
    grid("ALPHA")
    return person("root", superuser=True)


def act(who: Person, attributes: Any, path: str = PATH, **more: Any) -> Any:
    return who.post(path, {"attributes": attributes, "reason": "water leak", **more})


def alpha() -> ComputingQueue:
    return ComputingQueue.objects.get(name="ALPHA")


def test_attributes_hold_at_once_and_what_the_document_says_holds_again_without_them(root: Person) -> None:
    before = alpha()
    until = clock.now() + timedelta(hours=2)
    answer = act(root, {"status": "offline", "maxrss": "9000"}, until=until.isoformat())
    assert answer.status_code == 200, answer.json()
    told = {row["attribute"]: (row["value"], row["beneath"], row["reason"], row["who"]) for row in answer.json()["results"]}
    assert told == {
        "status": ("offline", "online", "water leak", "root"), "maxrss": ("9000", before.maxrss, "water leak", "root"),
    }  # fmt: skip
    assert (alpha().status, alpha().maxrss) == ("offline", 9000)
    assert root.get(PATH).json() == answer.json()
    gone = act(root, {"maxrss": None}, reason="dry again")
    assert [row["attribute"] for row in gone.json()["results"]] == ["status"]
    assert (alpha().status, alpha().maxrss) == ("offline", before.maxrss)
    end_expired(until)
    assert (alpha().status, list(LocalOverride.objects.all())) == ("online", [])
    rows = Audit.objects.filter(act__startswith="localoverride").order_by("id")
    assert [(row.act, row.who, row.reason) for row in rows] == [
        ("localoverride.add", "root", "water leak"), ("localoverride.add", "root", "water leak"),
        ("localoverride.delete", "root", "dry again"), ("localoverride.expire", "system", "water leak"),
    ]  # fmt: skip


def test_what_is_so_already_is_left_alone_and_a_new_value_keeps_what_is_beneath(root: Person) -> None:
    for _ in range(2):
        assert act(root, {"maxrss": "9000"}).status_code == 200
    assert act(root, {"corecount": None}).status_code == 200  # there is none to take away
    assert Audit.objects.filter(act__startswith="localoverride").count() == 1
    beneath = LocalOverride.objects.get().beneath
    act(root, {"maxrss": "9001"})
    override = LocalOverride.objects.get()
    assert (override.value, override.beneath, alpha().maxrss) == ("9001", beneath, 9001)


@pytest.mark.parametrize(
    ("attributes", "more", "field", "rule"),
    [
        ({"maxrss": "many"}, {}, "attributes.maxrss", "type"),
        ({"maxrss": "-1"}, {}, "attributes.maxrss", "range"),
        ({"maxrs": "1"}, {}, "attributes.maxrs", "unknown"),
        ({"maxrs": None}, {}, "attributes.maxrs", "unknown"),
        ({"status": "on"}, {}, "attributes.status", "choice"),
        ({"maxrss": 9000}, {}, "attributes.maxrss", "type"),
        ({}, {}, "attributes", "empty"),
        ({"maxrss": "1"}, {"reason": ""}, "reason", "blank"),
        ({"maxrss": "1"}, {"until": "2020-01-01T00:00:00Z"}, "until", "range"),
        ({"maxrss": "1"}, {"untill": None}, "untill", "unknown"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name_and_changes_nothing(
    root: Person, attributes: dict[str, Any], more: dict[str, Any], field: str, rule: str
) -> None:
    good = {"status": "offline"} | attributes if attributes and field != "attributes.status" else attributes
    assert faults(act(root, good, **more)) == {(field, rule)}
    assert (alpha().status, LocalOverride.objects.count()) == ("online", 0)


def test_only_who_may_set_them_in_the_admin_may_and_only_of_a_queue_that_there_is(root: Person) -> None:
    operator = person("olga", ("demo", "operator"))
    assert act(operator, {"status": "offline"}).status_code == 403
    assert operator.get(PATH).json() == {"results": []}
    assert act(root, {"status": "offline"}, "queues/NONE/overrides/").status_code == 404
    assert alpha().status == "online"
