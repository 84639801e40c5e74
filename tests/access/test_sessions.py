"""Sessions end when nobody uses them, and what changes rights or configuration asks for the password again."""

from __future__ import annotations

import re

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from broker_site.foundation.access import sessions
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.login_limits import PER_DEVICE
from broker_site.foundation.access.models import Audit, Role, User
from broker_site.foundation.access.sessions import IDLE_S, LONGEST_S, NOTE_S, PASSWORD_S
from broker_site.foundation.gdpconfig.models import Override
from workqueues.models import GlobalShare

PASSWORD = "correct horse battery"

pytestmark = pytest.mark.django_db


class Clock:
    """The time of sessions, set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(sessions, "time", own)
    return own


@pytest.fixture
def root(db: None) -> Client:
    """A superuser who has just signed in."""
    ensure_user("root", superuser=True, password=PASSWORD)
    client = Client()
    assert client.post("/login/", {"username": "root", "password": PASSWORD}).status_code == 302
    return client


def signed_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_a_session_that_nobody_uses_for_half_an_hour_is_over(root: Client, clock: Clock) -> None:
    clock.now += IDLE_S - 1
    assert signed_in(root)
    clock.now += IDLE_S - 1
    assert signed_in(root), "use prolongs it"
    clock.now += IDLE_S
    answer = root.get("/tasks/")
    assert (answer.status_code, answer["Location"]) == (302, "/login/?next=/tasks/")
    assert not Session.objects.exists()


def test_a_page_that_fetches_itself_anew_is_no_use(root: Client, clock: Clock) -> None:
    for _ in range(int(IDLE_S / NOTE_S) + 1):
        answer = root.get("/tasks/", headers={"HX-Request": "true"})
        clock.now += NOTE_S
    assert (answer.status_code, answer["HX-Redirect"]) == (401, "/login/")


def test_no_use_prolongs_a_session_beyond_eight_hours(root: Client, clock: Clock) -> None:
    begun = clock.now
    while clock.now < begun + LONGEST_S:
        assert signed_in(root)
        clock.now += IDLE_S / 2
    assert not signed_in(root)


def test_a_session_of_an_older_release_ends(root: Client) -> None:
    session = root.session
    del session[sessions.BEGUN]
    session.save()
    assert not signed_in(root)


def test_use_is_written_once_a_minute_at_most(root: Client, clock: Clock) -> None:
    before = Session.objects.get().session_data
    root.get("/tasks/")
    assert Session.objects.get().session_data == before
    clock.now += NOTE_S
    root.get("/tasks/")
    assert Session.objects.get().session_data != before


def edits() -> list[tuple[str, dict[str, object], type]]:
    """A role, a share and a value of the configuration, as their forms send them."""
    alice = ensure_user("alice")
    share: dict[str, object] = {"name": "Top", "vo": "atlas", "parent": "", "value": "10", "position": "0", "why": "a test"}
    value: dict[str, object] = {"value": "150", "vo": "", "why": "a test", "seen": "0"}
    return [
        ("/admin/access/role/add/", {"user": alice.pk, "vo": "atlas", "role": "operator"}, Role),
        ("/admin/workqueues/globalshare/add/", share, GlobalShare),
        ("/admin/gdpconfig/override/add/?component=jobbroker&name=NQUEUED_SAT_CAP", value, Override),
    ]


@pytest.mark.parametrize("which", range(3))
def test_rights_shares_and_configuration_ask_for_the_password_when_it_is_old(root: Client, clock: Clock, which: int) -> None:
    address, form, rows = edits()[which]
    clock.now += PASSWORD_S
    asked = root.post(address, form)
    assert (asked.status_code, rows.objects.exists()) == (403, False)  # type: ignore[attr-defined]
    assert "Your password, please" in asked.text
    sent = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', asked.text))
    sent.pop("csrfmiddlewaretoken", None)
    assert sent == {name: str(value) for name, value in form.items()}, "nothing has to be typed twice"
    wrong = root.post(address, {**sent, "password_again": "wrong"})
    assert (wrong.status_code, rows.objects.exists()) == (403, False)  # type: ignore[attr-defined]
    assert "That is not your password." in wrong.text
    done = root.post(address, {**sent, "password_again": PASSWORD})
    assert (done.status_code, rows.objects.exists()) == (302, True), done.text  # type: ignore[attr-defined]
    assert list(Audit.objects.filter(act="password").order_by("id").values_list("object", "outcome")) == [
        ("user root", "refused"),
        ("user root", "done"),
    ]


def test_a_fresh_password_is_not_asked_for(root: Client, clock: Clock) -> None:
    address, form, rows = edits()[0]
    clock.now += PASSWORD_S - 1
    assert root.post(address, form).status_code == 302
    assert rows.objects.exists()  # type: ignore[attr-defined]


def test_a_taken_session_cannot_guess_the_password(root: Client, clock: Clock) -> None:
    address, form, _ = edits()[0]
    clock.now += PASSWORD_S
    answers = [root.post(address, {**form, "password_again": f"guess {i}"}).status_code for i in range(PER_DEVICE + 2)]
    assert answers == [403] * PER_DEVICE + [429] * 2
    old = {"old_password": "guess", "new_password1": "x", "new_password2": "x"}
    assert "Your password, please" in root.post("/admin/password_change/", old).text


def test_reading_and_signing_out_ask_for_nothing(root: Client, clock: Clock) -> None:
    clock.now += PASSWORD_S
    assert root.get("/admin/access/role/").status_code == 200
    assert root.post("/admin/logout/").status_code == 200
    assert not signed_in(root)


def test_typing_the_password_does_not_prolong_the_eight_hours(root: Client, clock: Clock) -> None:
    begun = clock.now
    while clock.now < begun + LONGEST_S - IDLE_S:
        clock.now += IDLE_S / 2
        assert signed_in(root)
    clock.now = begun + LONGEST_S - 1
    address, form, _ = edits()[0]
    assert root.post(address, {**form, "password_again": PASSWORD}).status_code == 302
    clock.now += 1
    assert not signed_in(root)


def test_the_password_of_somebody_inactive_is_not_asked(root: Client) -> None:
    User.objects.update(is_active=False)
    assert not signed_in(root)
