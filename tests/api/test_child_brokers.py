"""Child brokers: let in, drained and revoked, by whom, and how soon it counts."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.access.models import Audit
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.sessions import PASSWORD
from broker_site.foundation.access.tokens import BadToken
from broker_site.foundation.kernel import clock
from workqueues.ledger.child_brokers import (
    BadChild,
    add_child,
    child_of,
    drain_child,
    renew_child,
    revoke_child,
    undrain_child,
)
from workqueues.models import ChildBroker

pytestmark = pytest.mark.django_db


def test_a_child_pulls_and_reports_with_its_token_and_does_nothing_else() -> None:
    child, secret = add_child("north", "higgs", "demo", SYSTEM)
    caller = principal_of_token(secret)
    assert secret.startswith("gbc_")
    assert (caller.kind, caller.name, caller.vo) == ("child", "child broker north", "demo")
    assert may(caller, "tree:pull", "demo")
    assert not may(caller, "tree:pull", "atlas")
    assert child_of(caller).id == child.id
    assert (child.credential.expires_at, child.credential.user_id) == (None, None)


def test_a_revoked_child_is_refused_at_once_though_a_process_still_remembers_its_token() -> None:
    child, secret = add_child("north", "", "", SYSTEM)
    caller = principal_of_token(secret)  # what a process keeps of it for a few seconds
    assert revoke_child(child, SYSTEM, "sold") == 1
    assert revoke_child(child, SYSTEM, "sold") == 0
    with pytest.raises(Refused, match="revoked") as refused:
        child_of(caller)
    assert refused.value.status == 401
    _, again = renew_child(child, SYSTEM)
    assert child_of(principal_of_token(again)).id == child.id
    with pytest.raises(Refused):
        child_of(caller)


def test_a_new_token_ends_the_one_before() -> None:
    child, first = add_child("north", "", "", SYSTEM)
    _, second = renew_child(child, SYSTEM)
    with pytest.raises(BadToken, match="revoked"):
        principal_of_token(first)
    assert child_of(principal_of_token(second)).id == child.id


def test_a_child_drains_for_its_grace_time_and_every_act_is_audited() -> None:
    child, _ = add_child("north", "", "demo", SYSTEM)
    first = drain_child(child, 3600, SYSTEM)
    later = drain_child(child, 60, SYSTEM)
    assert first.drain_since == later.drain_since
    assert later.drain_until is not None
    assert timedelta(0) < later.drain_until - clock.now() <= timedelta(seconds=60)
    back = undrain_child(child, SYSTEM)
    assert (back.drain_since, back.drain_until) == (None, None)
    acts = Audit.objects.filter(object="child broker north").order_by("id").values_list("act", "vo")
    assert list(acts) == [(f"child.{act}", "demo") for act in ("add", "drain", "drain", "undrain")]


@pytest.mark.parametrize(
    ("name", "team", "vo", "found"),
    [
        ("", "", "", ("name", "required")),
        ("no spaces", "", "", ("name", "characters")),
        ("north", "t" * 65, "", ("team", "length")),
        ("north", "", "<vo>", ("vo", "characters")),
        ("taken", "", "", ("name", "unique")),
    ],
)
def test_a_child_that_cannot_be_is_refused_by_field_and_rule(name: str, team: str, vo: str, found: tuple[str, str]) -> None:
    add_child("taken", "", "", SYSTEM)
    with pytest.raises(BadChild) as bad:
        add_child(name, team, vo, SYSTEM)
    assert [(p.field, p.rule) for p in bad.value.problems] == [found]
    assert ChildBroker.objects.count() == 1


@pytest.mark.parametrize("grace_s", [-1.0, 1e12, float("nan")])
def test_a_grace_time_out_of_its_range_changes_nothing(grace_s: float) -> None:
    child, _ = add_child("north", "", "", SYSTEM)
    with pytest.raises(BadChild, match="grace_s"):
        drain_child(child, grace_s, SYSTEM)
    assert ChildBroker.objects.get().drain_since is None


CHILDREN = "/api/v1/tree/children/"


def token_of(name: str, *, vo: str = "demo", role: str = "operator", superuser: bool = False) -> Client:
    user = ensure_user(name, superuser=superuser, roles=[] if superuser else [(vo, role)])
    return Client(headers={"Authorization": f"Bearer {issue_user_token(user).text}"})


def post(client: Client, address: str, **body: object) -> Any:
    return client.post(address, json.dumps(body), content_type="application/json")


def test_by_rest_an_operator_lets_a_broker_of_his_vo_in_drains_and_revokes_it() -> None:
    ada = token_of("ada")
    made = post(ada, CHILDREN, name="north", vo="demo", team="higgs")
    assert (made.status_code, made.headers["Cache-Control"]) == (201, "no-store")
    caller = principal_of_token(made.json()["secret"])
    assert child_of(caller).name == "north"
    assert "secret" not in ada.get(f"{CHILDREN}north/").json()
    assert post(ada, f"{CHILDREN}north/drain/", grace_s=60).json()["state"] == "draining"
    assert post(ada, f"{CHILDREN}north/undrain/").json()["state"] == "new"
    assert post(ada, f"{CHILDREN}north/revoke/", reason="sold").status_code == 204
    with pytest.raises(Refused):
        child_of(caller)
    assert [row["state"] for row in ada.get(CHILDREN).json()["results"]] == ["revoked"]
    again = post(ada, f"{CHILDREN}north/renew/").json()
    assert child_of(principal_of_token(again["secret"])).name == "north"
    assert ada.get("/api/v1/tree/").json() == {"broker": None, "parent": None, "elements": {}}


def test_a_child_is_changed_by_operators_of_its_vo_alone_and_one_of_all_vos_by_who_configures_everything() -> None:
    ada, bob, root = token_of("ada"), token_of("bob", vo="cms"), token_of("root", superuser=True)
    assert post(ada, CHILDREN, name="all").status_code == 403
    assert post(bob, CHILDREN, name="north", vo="demo").status_code == 403
    assert post(root, CHILDREN, name="all").status_code == 201
    assert post(ada, CHILDREN, name="north", vo="demo").status_code == 201
    for name, caller in (("all", ada), ("north", bob)):
        assert [post(caller, f"{CHILDREN}{name}/{act}/").status_code for act in ("drain", "undrain", "revoke", "renew")] == [
            403
        ] * 4
    assert [row["name"] for row in bob.get(CHILDREN).json()["results"]] == ["all", "north"]
    assert ChildBroker.objects.filter(drain_since=None, credential__revoked_at=None).count() == 2


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, ("name", "required")),
        ({"name": "two words", "vo": "demo"}, ("name", "characters")),
        ({"name": "taken", "vo": "demo"}, ("name", "unique")),
        ({"name": "north", "vo": "demo", "colour": "red"}, ("colour", "unknown")),
        ({"name": 7, "vo": "demo"}, ("name", "type")),
    ],
)
def test_by_rest_a_child_that_cannot_be_is_refused_by_field_and_rule(body: dict[str, object], fault: tuple[str, str]) -> None:
    add_child("taken", "", "demo", SYSTEM)
    answer = post(token_of("ada"), CHILDREN, **body)
    assert answer.status_code in (400, 422)
    assert [(p["field"], p["rule"]) for p in answer.json()["errors"]] == [fault]
    assert ChildBroker.objects.count() == 1


def forget_password(page: Client) -> None:
    """As if it had been typed hours ago."""
    session = page.session
    session[PASSWORD] = 0
    session.save()


def test_the_forms_do_the_same_after_the_password_and_show_a_token_once() -> None:
    ada, page = ensure_user("ada", password="correct horse", roles=[("demo", "operator")]), Client()
    page.force_login(ada)
    forget_password(page)
    form = {"name": "north", "vo": "demo", "team": ""}
    page.post("/tree/add-child/", form)
    page.post("/tree/add-child/", {**form, "password_again": "wrong"})
    assert not ChildBroker.objects.exists()
    shown = page.post("/tree/add-child/", {**form, "password_again": "correct horse"})
    assert shown.headers["Cache-Control"] == "no-store"
    secret = re.search(r"gbc_[\w-]{43}", shown.content.decode())
    assert secret is not None
    assert shown.content.decode().count(secret[0]) == 1, "no form of the page sends it on"
    assert secret[0] not in page.get("/tree/children/north/").content.decode()
    said = page.post("/tree/children/north/drain/", {"hours": "soon"}, follow=True).content.decode()
    assert "Nothing was changed. grace_s: from 0 to" in said
    page.post("/tree/children/north/drain/", {"hours": "2"})
    assert ChildBroker.objects.get(id=child_of(principal_of_token(secret[0])).id).drain_until is not None
    page.post("/tree/children/north/undrain/")
    page.post("/tree/children/north/revoke/", {"reason": "sold"})
    assert "revoked" in page.get("/tree/").content.decode()
    assert page.post("/tree/add-child/", {"name": "all", "vo": ""}, follow=True).content.decode().count("may not change") == 1


def test_who_names_a_vo_in_which_nobody_has_a_role_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    ensure_user("ada", roles=[("demo", "submitter")])
    call_command("children", "add", "north", "--vo", "demo")
    assert "note:" not in capsys.readouterr().err
    call_command("children", "add", "east", "--vo", "dmeo")
    assert "note: nobody has a role in the VO dmeo" in capsys.readouterr().err


def test_from_the_shell_a_child_is_let_in_drained_and_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("children", "add", "north", "--vo", "demo", "--team", "higgs")
    secret = capsys.readouterr().out.strip()
    assert ChildBroker.objects.get(id=child_of(principal_of_token(secret)).id).team == "higgs"
    call_command("children", "drain", "north", "--grace", "60")
    call_command("children", "list")
    told = capsys.readouterr().out
    assert "north: draining, not heard of yet; VO demo team higgs" in told
    call_command("children", "undrain", "north")
    call_command("children", "revoke", "north")
    call_command("children", "list", "--json")
    assert '"state": "revoked"' in capsys.readouterr().out
    for wrong in (["add", "north"], ["drain", "south"], ["drain", "north", "--grace", "-1"]):
        with pytest.raises(CommandError, match=r"unique|there is a child|no child broker|grace_s"):
            call_command("children", *wrong)
