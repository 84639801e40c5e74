"""Grants by REST: who gives which, what is refused with field and rule, who sees them, and what the audit and the admin say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from tests.api.people import Person, faults, ids, person
from workqueues.models import ReadGrant

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db: None) -> Person:
    return person("olga", ("demo", "operator"))


@pytest.fixture
def ada(db: None) -> Person:
    """One who owns datasets; of the other VO too, so that there is one."""
    return person("ada", ("demo", "submitter"))


@pytest.fixture(autouse=True)
def guest(db: None) -> Person:
    return person("gus", ("guests", "submitter"))


def body(**more: Any) -> dict[str, Any]:
    return {"vo": "demo", "pattern": "data26.*", "grantee_kind": "vo", "grantee": "guests", **more}


def test_an_operator_opens_all_that_fits_and_a_user_what_is_his(operator: Person, ada: Person) -> None:
    given = operator.post("read-grants/", body()).json()
    assert {name: given[name] for name in ("owner", "pattern", "grantee", "made_by", "ends_at")} == {
        "owner": "", "pattern": "data26.*", "grantee": "guests", "made_by": "olga", "ends_at": None,
    }  # fmt: skip
    answer = ada.post(
        "read-grants/", body(pattern="demo:mine.*", grantee_kind="user", grantee="gus", ends_at="2030-01-01T00:00Z")
    )
    own = answer.json()
    assert (own["owner"], own["pattern"], own["ends_at"]) == ("ada", "mine.*", "2030-01-01T00:00:00Z")
    assert ada.get(answer["Location"].split("/api/v1/")[1]).json() == own


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"pattern": "data?"}, ("pattern", "format")),
        ({"pattern": ""}, ("pattern", "blank")),
        ({"grantee_kind": "group"}, ("grantee_kind", "not_supported_yet")),
        ({"grantee_kind": "site"}, ("grantee_kind", "choice")),
        ({"grantee": "demo"}, ("grantee", "contradiction")),
        ({"grantee": "nowhere"}, ("grantee", "vo")),
        ({"grantee_kind": "user", "grantee": "nobody"}, ("grantee", "user")),
        ({"ends_at": "2020-01-01T00:00Z"}, ("ends_at", "range")),
        ({"until": "2030-01-01"}, ("until", "unknown")),
    ],
)
def test_a_bad_grant_is_refused_with_field_and_rule_and_changes_nothing(
    operator: Person, wrong: dict[str, Any], fault: tuple[str, str]
) -> None:
    assert fault in faults(operator.post("read-grants/", body(**wrong)))
    assert not ReadGrant.objects.exists()


def test_the_same_grant_is_given_once_and_anew_when_it_has_ended(operator: Person) -> None:
    first = operator.post("read-grants/", body()).json()["id"]
    assert faults(operator.post("read-grants/", body())) == {("pattern", "unique")}
    ReadGrant.objects.filter(id=first).update(ends_at=timezone.now() - timedelta(seconds=1))
    again = operator.post("read-grants/", body())
    assert again.status_code == 201
    assert list(ReadGrant.objects.values_list("id", flat=True)) == [again.json()["id"]]


def test_grants_are_seen_by_who_gives_and_who_gets(operator: Person, ada: Person, guest: Person) -> None:
    gil, stranger = person("gil", ("other", "submitter")), person("sue", ("other", "operator"))
    for_vo = operator.post("read-grants/", body()).json()["id"]
    for_user = operator.post("read-grants/", body(grantee_kind="user", grantee="gil")).json()["id"]
    seen = {who.name: ids(who.get("read-grants/")) for who in (operator, ada, guest, gil, stranger)}
    assert seen == {"olga": [for_user, for_vo], "ada": [for_user, for_vo], "gus": [for_vo], "gil": [for_user], "sue": []}
    assert ids(ada.get("read-grants/", grantee="gil")) == [for_user]
    assert stranger.get(f"read-grants/{for_vo}/").status_code == 404


def test_giving_and_withdrawing_leave_audit_rows_refusals_too(operator: Person, ada: Person) -> None:
    given = operator.post("read-grants/", body()).json()["id"]
    assert ada.delete(f"read-grants/{given}/").status_code == 403
    assert operator.delete(f"read-grants/{given}/").status_code == 204
    assert not ReadGrant.objects.exists()
    rows = Audit.objects.filter(vo="demo", act__startswith="dataset.").order_by("id").values_list("who", "act", "object")
    assert list(rows) == [("olga", "dataset.grant", f"read grant {given}"), ("olga", "dataset.withdraw", f"read grant {given}")]
    assert Audit.objects.filter(act="dataset.withdraw", before__grantee="guests").exists()
    assert Audit.objects.filter(who="ada", act="dataset:grant", outcome="refused").count() == 1


def test_the_admin_gives_by_the_same_rules_and_says_who_did(operator: Person) -> None:
    client = Client()
    client.force_login(ensure_user("root", superuser=True))
    form = {
        "vo": "demo",
        "pattern": "data26.*",
        "owner": "",
        "grantee_kind": "vo",
        "grantee": "demo",
        "ends_at_0": "",
        "ends_at_1": "",
    }
    refused = client.post("/admin/workqueues/readgrant/add/", form)
    assert "may read its datasets without a grant" in refused.content.decode()
    assert client.post("/admin/workqueues/readgrant/add/", form | {"grantee": "guests"}).status_code == 302
    given = ReadGrant.objects.get()
    assert (given.grantee, given.made_by) == ("guests", "root")
    assert Audit.objects.filter(act="readgrant.add", who="root", vo="demo").exists()
    client.post(f"/admin/workqueues/readgrant/{given.id}/delete/", {"post": "yes"})
    assert not ReadGrant.objects.exists()
    assert Audit.objects.filter(act="readgrant.delete", who="root").exists()
