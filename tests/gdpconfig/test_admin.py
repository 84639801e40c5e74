"""The admin pages: finding a key, setting it with its range enforced beside the field, the history and the revert."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.models import Change, Override

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]

KEYS = "/admin/gdpconfig/override/keys/"
ADD = "/admin/gdpconfig/override/add/?component={}&name={}"
ADD_CAP = ADD.format("jobbroker", "NQUEUED_SAT_CAP")
REVERT = "/admin/gdpconfig/change/revert/?revision={}"


@pytest.fixture
def operator(client: Client) -> Client:
    """Somebody who may do everything in the admin, logged in."""
    client.force_login(get_user_model().objects.create_superuser("ann"))
    return client


def staff(client: Client, *rights: str) -> Client:
    """Somebody who may log in to the admin and has only these rights on gdpconfig."""
    user = get_user_model().objects.create_user("carl", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="gdpconfig", codename__in=rights))
    client.force_login(user)
    return client


def form(value: str, **more: object) -> dict[str, object]:
    return {"value": value, "vo": "", "why": "ticket 7", "seen": 0, **more}


def text_of(client: Client, address: str) -> str:
    answer = client.get(address, follow=True)
    assert answer.status_code == 200
    return unescape(re.sub(r"<[^>]*>", " ", answer.content.decode()))


def errors(answer: object) -> dict[str, list[str]]:
    found: dict[str, list[str]] = answer.context["adminform"].form.errors  # type: ignore[attr-defined]
    return dict(found)


def test_the_list_of_keys_shows_documentation_default_range_and_who_set_what(operator: Client) -> None:
    gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="links are slow", vo="atlas")
    text = " ".join(text_of(operator, KEYS).split())
    assert "NQUEUED_SAT_CAP Link cap. int, files from 0 to 1000000 300 atlas: 150 bob" in text
    assert "links are slow" in text
    assert "PERIOD_<agent>" in text


def test_keys_are_found_by_words_of_name_and_documentation(operator: Client) -> None:
    text = text_of(operator, f"{KEYS}?q=link+sat")
    assert "NQUEUED_SAT_CAP" in text
    assert "NW_ACTIVE" not in text
    assert "No key has these words" in text_of(operator, f"{KEYS}?q=nonsense")


def test_adding_begins_at_the_list_of_keys(operator: Client) -> None:
    assert operator.get("/admin/gdpconfig/override/add/").headers["Location"] == KEYS
    assert "did you mean NQUEUED_SAT_CAP?" in text_of(operator, ADD.format("jobbroker", "NQUEUED_SAT_CPA"))


def test_a_key_is_set_on_its_own_form(operator: Client) -> None:
    page = text_of(operator, ADD_CAP)
    assert "Link cap." in page
    assert "A whole number, in files; from 0 to 1000000." in page
    answer = operator.post(ADD_CAP, form("150", vo="atlas"))
    assert answer.status_code == 302
    override = Override.objects.get()
    assert (override.name, override.vo, override.value) == ("NQUEUED_SAT_CAP", "atlas", "150")
    assert (override.change.who, override.change.why) == ("ann", "ticket 7")
    assert gdpconfig.value("jobbroker", "NQUEUED_SAT_CAP", vo="atlas") == 150


@pytest.mark.parametrize(
    ("data", "field", "reason"),
    [
        (form("-1"), "value", "NQUEUED_SAT_CAP: -1 is out of range: from 0 to 1000000"),
        (form("many"), "value", "NQUEUED_SAT_CAP: 'many' is not a whole number"),
        (form(""), "value", "This field is required."),
        (form("5", vo="no vo"), "vo", "'no vo' is no name of a VO (at most 32 letters, digits and . _ : -)"),
        (form("5", why="  "), "why", "This field is required."),
    ],
)
def test_a_bad_value_is_refused_with_the_reason_beside_its_field(
    operator: Client, data: dict[str, object], field: str, reason: str
) -> None:
    answer = operator.post(ADD_CAP, data)
    assert answer.status_code == 200
    assert errors(answer) == {field: [reason]}
    assert not Change.objects.exists()


def test_a_pattern_asks_for_its_parts(operator: Client) -> None:
    address = ADD.format("prod_job_throttler", "NQUEUELIMIT_<queue>")
    assert "Stands for <queue> in NQUEUELIMIT_<queue>." in text_of(operator, address)
    assert errors(operator.post(address, form("5"))) == {"part_queue": ["This field is required."]}
    assert operator.post(address, form("5", part_queue="MC 16")).status_code == 302
    assert gdpconfig.value("prod_job_throttler", "NQUEUELIMIT_<queue>", queue="MC 16") == 5


@pytest.mark.parametrize(
    ("name", "value"), [("NW_ACTIVE", "false"), ("MODEL", "work_queue"), ("GROUPS", '{"a": ["b"]}'), ("NOTE", "")]
)
def test_every_type_has_a_form(operator: Client, name: str, value: str) -> None:
    answer = operator.post(ADD.format("jobbroker", name), form(value))
    assert answer.status_code == 302
    assert keys.KEYS.get("jobbroker", name).write(gdpconfig.value("jobbroker", name)) == value


def test_an_override_is_changed_and_a_newer_one_is_not_overwritten_unseen(operator: Client) -> None:
    gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="x")
    override = Override.objects.get()
    address = reverse("admin:gdpconfig_override_change", args=[override.pk])
    assert operator.post(address, form("200", seen=1)).status_code == 302
    assert Override.objects.get().value == "200"
    gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", 250, who="bob", why="x")
    answer = operator.post(address, form("300", seen=2))
    assert errors(answer) == {
        "__all__": ["jobbroker.NQUEUED_SAT_CAP was changed meanwhile: bob has set it to '250'; look at it and save again"]
    }
    assert Override.objects.get().value == "250"


def test_adding_what_is_set_already_says_so(operator: Client) -> None:
    gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="x")
    assert "bob has set it to '150'" in str(errors(operator.post(ADD_CAP, form("5"))))


def test_removing_asks_for_a_reason_and_shows_what_will_hold(operator: Client) -> None:
    gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="x")
    override = Override.objects.get()
    address = reverse("admin:gdpconfig_override_remove", args=[override.pk])
    assert "150 300" in " ".join(text_of(operator, address).split())
    assert "This field is required." in operator.post(address, {"why": ""}).content.decode()
    assert operator.post(address, {"why": "over"}).status_code == 302
    assert not Override.objects.exists()
    assert Change.objects.first().why == "over"  # type: ignore[union-attr]
    assert operator.post(reverse("admin:gdpconfig_override_delete", args=[override.pk]), {"post": "yes"}).status_code in (
        302,
        403,
    )


def test_the_history_of_a_key_leads_to_its_changes(operator: Client) -> None:
    gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="links are slow")
    gdpconfig.set_override("jobbroker", "NW_ACTIVE", "false", who="bob", why="other")
    override = Override.objects.get(name="NQUEUED_SAT_CAP")
    text = text_of(operator, reverse("admin:gdpconfig_override_history", args=[override.pk]))
    assert "links are slow" in text
    assert "other" not in text


def test_chosen_changes_are_reverted_together_with_a_reason(operator: Client) -> None:
    for value in (150, 200):
        gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", value, who="bob", why="x")
    chosen_lines = list(Change.objects.values_list("pk", flat=True))
    chosen = operator.post("/admin/gdpconfig/change/", {"action": "revert_selected", "_selected_action": chosen_lines})
    assert chosen.status_code == 302
    assert "no override" in text_of(operator, chosen.headers["Location"])
    assert operator.post(chosen.headers["Location"], {"why": "all wrong"}).status_code == 302
    assert gdpconfig.value("jobbroker", "NQUEUED_SAT_CAP") == 300
    assert [(c.who, c.why, c.before, c.after) for c in Change.objects.order_by("id")[2:]] == [
        ("ann", "all wrong", "200", "150"),
        ("ann", "all wrong", "150", None),
    ]


def test_a_revert_to_a_value_that_is_no_longer_allowed_is_refused_and_changes_nothing(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (150, 200):
        gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", value, who="bob", why="x")
    narrow = keys.Keys()
    narrow.declare(
        *(key for key in keys.KEYS if key.component == "gdpconfig"),
        gdpconfig.Key(component="jobbroker", name="NQUEUED_SAT_CAP", type="int", default=300, low=180, doc="Narrower."),
    )
    monkeypatch.setattr(keys, "KEYS", narrow)
    answer = operator.post(REVERT.format(2), {"why": "x"})
    assert "150 is out of range: at least 180" in answer.content.decode()
    assert Change.objects.count() == 2


@pytest.mark.parametrize("numbers", ["", "x", "9999", "99999999999999999999999"])
def test_reverting_nothing_says_so(operator: Client, numbers: str) -> None:
    assert "No change was chosen." in text_of(operator, REVERT.format(numbers))


def test_history_cannot_be_added_edited_or_deleted(operator: Client) -> None:
    gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="x")
    assert operator.get("/admin/gdpconfig/change/add/").status_code == 403
    page = f"/admin/gdpconfig/change/{Change.objects.get().pk}"
    assert operator.post(f"{page}/change/", {"why": "y"}).status_code == 403
    assert operator.post(f"{page}/delete/", {"post": "yes"}).status_code == 403
    assert "Revert" in text_of(operator, f"{page}/change/")


def test_who_may_only_look_cannot_write(client: Client) -> None:
    gdpconfig.set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="bob", why="x")
    reader = staff(client, "view_override", "view_change")
    override = Override.objects.get()
    assert "Set" not in text_of(reader, KEYS).split()
    assert "150" in text_of(reader, reverse("admin:gdpconfig_override_change", args=[override.pk]))
    assert reader.post(ADD_CAP, form("5", vo="atlas")).status_code == 403
    assert reader.post(reverse("admin:gdpconfig_override_change", args=[override.pk]), form("5", seen=1)).status_code == 403
    assert reader.post(reverse("admin:gdpconfig_override_remove", args=[override.pk]), {"why": "x"}).status_code == 403
    assert reader.post(REVERT.format(1), {"why": "x"}).status_code == 403
    assert "Revert the sets" not in text_of(reader, "/admin/gdpconfig/change/")
    assert Change.objects.count() == 1


def test_who_has_no_right_sees_nothing(client: Client) -> None:
    nobody = staff(client)
    for address in (KEYS, ADD_CAP, "/admin/gdpconfig/override/", "/admin/gdpconfig/change/", REVERT.format(1)):
        assert nobody.get(address).status_code == 403


def test_without_login_every_page_leads_to_the_login(client: Client) -> None:
    for address in (KEYS, ADD_CAP, REVERT.format(1), "/admin/gdpconfig/override/1/remove/"):
        assert "/login/" in client.get(address).headers["Location"]
