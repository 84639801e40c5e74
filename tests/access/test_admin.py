"""The admin of access: credentials are made and revoked there, the audit is read there, every edit is audited."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from broker_site.foundation.access.authentication import principal_of_token
from broker_site.foundation.access.credentials import ensure_user, issue_enrolment, issue_user_token
from broker_site.foundation.access.models import Audit, Credential, Role, User
from broker_site.foundation.access.tokens import BadToken
from brokerage.models import ComputingQueue
from tests.builders import grid

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sample_site")]


@pytest.fixture
def root(db: None) -> Client:
    client = Client()
    client.force_login(ensure_user("root", superuser=True))
    return client


NO_OWNER = {"owner": "", "owner_group": "", "days": "", "note": ""}


def form(**fields: object) -> dict[str, object]:
    return {"kind": "user", "user": "", "vo": "", "site": "", "queues": "", "pilot_kind": "generic", **NO_OWNER, **fields}


def test_a_new_token_is_shown_once_and_works(root: Client, alice: User) -> None:
    response = root.post("/admin/access/credential/add/", form(user=alice.pk, days=30, roles=["submitter"]))
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    found = re.search(r"gbu_[\w-]{43}", response.text)
    assert found
    text = found.group()
    assert principal_of_token(text).roles == {"atlas": {"submitter"}}
    credential = Credential.objects.get()
    assert credential.expires_at is not None
    for address in ("/admin/access/credential/", f"/admin/access/credential/{credential.pk}/change/"):
        page = root.get(address).text
        assert credential.prefix in page
        assert text not in page
        assert credential.secret not in page
    assert Audit.objects.get(act="credential.create").who == "root"


def test_an_enrolment_secret_is_made_for_its_queue(root: Client) -> None:
    grid("ALPHA")
    response = root.post("/admin/access/credential/add/", form(kind="enrolment", queues="ALPHA", site="SITE_ALPHA"))
    found = re.search(r"gbe_[\w-]{43}", response.text)
    assert found
    assert principal_of_token(found.group()).queue == "ALPHA"


def test_an_enrolment_secret_is_made_for_queues_of_a_site_and_the_pilots_of_one_owner(root: Client) -> None:
    grid("ALPHA", "GAMMA")
    ComputingQueue.objects.update(site="SITE_ALPHA")
    fields = {"queues": "ALPHA, GAMMA", "pilot_kind": "private", "owner": "root", "owner_group": "higgs"}
    response = root.post("/admin/access/credential/add/", form(kind="enrolment", site="SITE_ALPHA", **fields))
    found = principal_of_token(re.findall(r"gbe_[\w-]{43}", response.text)[0])
    assert (found.queues, found.private, found.owner, found.owner_group) == (("ALPHA", "GAMMA"), True, "root", "higgs")
    assert "ALPHA" in root.get("/admin/access/credential/?q=gamma").text, "found by any of its queues"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "user"}, "A user token needs a user."),
        ({"kind": "enrolment"}, "An enrolment secret needs a computing queue."),
        ({"kind": "pilot"}, "Select a valid choice"),
        ({"kind": "enrolment", "queues": "A", "days": "0"}, "greater than or equal to 1"),
        ({"kind": "enrolment", "queues": "A", "vo": "no spaces"}, "Letters, digits"),
        ({"kind": "enrolment", "queues": "A" * 200}, "at most 128"),
        ({"kind": "enrolment", "queues": "BETA"}, "there is no computing queue BETA"),
        ({"kind": "enrolment", "queues": "ALPHA", "site": "NOWHERE"}, "ALPHA is at the site SITE_ALPHA, not at NOWHERE"),
        ({"kind": "enrolment", "queues": "ALPHA,GAMMA"}, "ALPHA is at the site SITE_ALPHA, GAMMA at SITE_GAMMA"),
        ({"kind": "enrolment", "queues": "ALPHA", "pilot_kind": "private"}, "a private enrolment needs the owner"),
        ({"kind": "enrolment", "queues": "ALPHA", "pilot_kind": "private", "owner": "zoe"}, "there is no active user zoe"),
        ({"kind": "enrolment", "queues": "ALPHA", "owner": "root"}, "only a private enrolment has an owner"),
        ({"kind": "enrolment", "queues": "ALPHA", "owner_group": "higgs"}, "only a private enrolment has an owner"),
        ({"kind": "enrolment", "queues": "ALPHA", "pilot_kind": "shared"}, "Select a valid choice"),
        ({"kind": "user", "pilot_kind": "private", "owner": "root"}, "A user token needs a user."),
    ],
)
def test_a_bad_form_says_what_is_wrong_and_makes_nothing(root: Client, fields: dict[str, object], words: str) -> None:
    grid("ALPHA", "GAMMA")
    response = root.post("/admin/access/credential/add/", form(**fields))
    assert response.status_code == 200
    assert words in response.text
    assert not Credential.objects.exists()


def test_credentials_are_revoked_in_a_list_and_never_deleted(root: Client, alice: User) -> None:
    issued = issue_user_token(alice)
    data = {"action": "revoke_selected", "_selected_action": [issued.credential.pk]}
    assert "1 credentials revoked" in root.post("/admin/access/credential/", data, follow=True).text
    with pytest.raises(BadToken, match="revoked"):
        principal_of_token(issued.text)
    assert root.post(f"/admin/access/credential/{issued.credential.pk}/delete/", {"post": "yes"}).status_code == 403
    assert root.post(f"/admin/access/credential/{issued.credential.pk}/change/", form()).status_code == 403


def test_staff_without_the_right_cannot_revoke(alice: User) -> None:
    issued = issue_enrolment("ALPHA")
    alice.is_staff = True
    alice.save()
    client = Client()
    client.force_login(alice)
    data = {"action": "revoke_selected", "_selected_action": [issued.credential.pk]}
    assert client.post("/admin/access/credential/", data).status_code == 403
    assert principal_of_token(issued.text).queue == "ALPHA"


def test_editing_roles_is_audited_with_what_changed(root: Client, alice: User) -> None:
    root.post("/admin/access/role/add/", {"user": alice.pk, "vo": "cms", "role": "operator"})
    role = Role.objects.get(vo="cms")
    root.post(f"/admin/access/role/{role.pk}/change/", {"user": alice.pk, "vo": "cms", "role": "auditor"})
    root.post("/admin/access/role/", {"action": "delete_selected", "_selected_action": [role.pk], "post": "yes"})
    rows = Audit.objects.filter(who="root", act__startswith="role.").order_by("id").values_list("act", "before", "after", "vo")
    assert list(rows) == [
        ("role.add", None, {"user": alice.pk, "vo": "cms", "role": "operator"}, "cms"),
        ("role.change", {"role": "operator"}, {"role": "auditor"}, "cms"),
        ("role.delete", {"id": role.pk, "user": alice.pk, "vo": "cms", "role": "auditor"}, None, "cms"),
    ]


def test_a_password_that_is_set_is_audited_without_it(root: Client, alice: User) -> None:
    data = {"username": "carol", "usable_password": "true", "password1": "Correct-horse-9", "password2": "Correct-horse-9"}
    inline = {"roles-TOTAL_FORMS": "1", "roles-INITIAL_FORMS": "0", "roles-0-vo": "cms", "roles-0-role": "auditor"}
    response = root.post("/admin/access/user/add/", data | inline)
    assert response.status_code == 302, response.context["errors"]
    rows = list(Audit.objects.filter(who="root", act__in=["user.add", "role.add"]).values_list("act", flat=True))
    assert "user.add" in rows
    assert "Correct-horse" not in str(list(Audit.objects.values_list()))


def test_the_audit_is_read_only_and_searchable(root: Client, alice: User) -> None:
    row = Audit.objects.filter(act="role.give").first()
    assert row is not None
    assert "role.give" in root.get("/admin/access/audit/?q=alice").text
    assert root.get(f"/admin/access/audit/{row.pk}/change/").status_code == 200
    assert root.post(f"/admin/access/audit/{row.pk}/change/", {"who": "x"}).status_code == 403
    assert root.post(f"/admin/access/audit/{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert root.get("/admin/access/audit/add/").status_code == 403


@pytest.mark.parametrize("model", ["user", "role", "credential", "audit"])
def test_every_list_and_form_opens(root: Client, alice: User, model: str) -> None:
    issue_user_token(alice)
    assert root.get(f"/admin/access/{model}/").status_code == 200
    assert root.get(f"/admin/access/{model}/?q=alice").status_code == 200
    if model != "audit":
        assert root.get(f"/admin/access/{model}/add/").status_code == 200
