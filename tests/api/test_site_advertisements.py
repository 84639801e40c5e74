"""Sites advertise themselves over HTTP with their enrolment; people read what a site told and what room is left."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils.timezone import now

from broker_site.foundation.access.credentials import ensure_user, issue_enrolment, issue_user_token
from brokerage.ledger.site_limits import take_room
from brokerage.models import SiteAdvertisement
from tests.builders import grid

pytestmark = pytest.mark.django_db

SITE = "SITE_ALPHA"


@pytest.fixture(autouse=True)
def sites() -> None:
    grid("ALPHA", "BETA")


@pytest.fixture
def secret() -> str:
    return issue_enrolment("ALPHA", site=SITE).text


def send(token: str, body: Any, site: str = SITE) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})
    return client.post(f"/api/v1/sites/{site}/advertisement/", data, content_type="application/json")


def ad(ago_s: float = 1, **more: Any) -> dict[str, Any]:
    said = {"max_jobs": 100, "max_submitting_jobs": 10, "current_jobs": 95, "current_submitting_jobs": 3}
    told = {**said, "counted_at": (now() - timedelta(seconds=ago_s)).isoformat(), **more}
    return {name: value for name, value in told.items() if value is not ...}


def errors(answer: Any) -> set[tuple[str, str]]:
    return {(error["field"], error["rule"]) for error in answer.json()["errors"]}


def test_a_site_advertises_itself_and_is_told_its_room(secret: str) -> None:
    answer = send(secret, ad(stations=["st2", "st1", "st1"], kind="forwarding"))
    assert answer.status_code == 200
    told = answer.json()
    assert (told["room"], told["why_no_room"], told["matched"], told["cur_matches"]) == (5, "", 0, 95)
    assert (told["stations"], told["kind"]) == (["st1", "st2"], "forwarding")
    row = SiteAdvertisement.objects.get()
    assert row.sent_by.startswith("enrolment of ALPHA gbe_")


def test_people_read_it_and_why_there_is_no_room(secret: str) -> None:
    auditor = issue_user_token(ensure_user("eve", roles=[("demo", "auditor")])).text
    client = Client(headers={"Authorization": f"Bearer {auditor}"})
    address = f"/api/v1/sites/{SITE}/advertisement/"
    assert client.get(address).status_code == 404
    send(secret, ad())
    assert take_room(SITE, 5, 900.0)
    told = client.get(address).json()
    assert (told["room"], told["matched"], told["cur_matches"]) == (0, 5, 100)
    assert told["why_no_room"] == "95 jobs there and 5 matched since, of at most 100 (MaxJobs)"


def test_the_numbers_may_be_named_as_the_document_names_them(secret: str) -> None:
    named = {"MaxJobs": 8, "MaxSubmittingJobs": 4, "CurrentJobs": 1, "CurrentSubmittingJobs": 0, "counted_at": now().isoformat()}
    answer = send(secret, named)
    assert (answer.status_code, answer.json()["room"]) == (200, 4)
    twice = send(secret, ad(MaxJobs=8))
    assert twice.status_code == 422
    assert errors(twice) == {("max_jobs", "contradiction")}


def test_a_limit_that_is_not_advertised_lets_nothing_pass_and_the_site_is_told(secret: str) -> None:
    told = send(secret, ad(max_submitting_jobs=...)).json()
    assert told["room"] == 0
    assert "does not say MaxSubmittingJobs" in told["why_no_room"]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"current_jobs": ...}, ("current_jobs", "required")),
        ({"counted_at": ...}, ("counted_at", "required")),
        ({"counted_at": "yesterday"}, ("counted_at", "type")),
        ({"counted_at": "2026-01-01T00:00:00"}, ("counted_at", "zone")),
        ({"counted_at": "0001-01-01T00:00:00Z"}, ("counted_at", "range")),
        ({"counted_at": "0001-01-01T00:00:00+23:59"}, ("counted_at", "range")),
        ({"counted_at": "1969-12-31T23:59:59Z"}, ("counted_at", "range")),
        ({"max_jobs": -1}, ("max_jobs", "range")),
        ({"max_jobs": 10**10}, ("max_jobs", "range")),
        ({"max_jobs": "100"}, ("max_jobs", "type")),
        ({"max_jobs": True}, ("max_jobs", "type")),
        ({"maxjobs": 100}, ("maxjobs", "unknown")),
        ({"kind": "cloud"}, ("kind", "choice")),
        ({"stations": "st1"}, ("stations", "type")),
        ({"stations": ["st1", ""]}, ("stations[1]", "format")),
        ({"stations": ["a,b"]}, ("stations[0]", "format")),
        ({"stations": ["x" * 61]}, ("stations[0]", "format")),
        ({"stations": [f"s{n}" for n in range(1001)]}, ("stations", "length")),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_changed(secret: str, more: dict[str, Any], fault: tuple[str, str]) -> None:
    answer = send(secret, ad(**more))
    assert answer.status_code == 422, answer.content
    assert fault in errors(answer)
    assert not SiteAdvertisement.objects.exists()


def test_one_that_goes_back_in_time_or_comes_from_the_future_changes_nothing(secret: str) -> None:
    assert send(secret, ad(ago_s=10)).status_code == 200
    before = SiteAdvertisement.objects.values().get()
    back = send(secret, ad(ago_s=20, current_jobs=0))
    assert back.status_code == 409
    assert errors(back) == {("counted_at", "order")}
    same = send(secret, {**ad(current_jobs=0), "counted_at": before["counted_at"].isoformat()})
    assert same.status_code == 409
    assert "of the same time as that of the last advertisement" in same.content.decode()
    ahead = send(secret, ad(ago_s=-3600, current_jobs=0))
    assert ahead.status_code == 422
    assert errors(ahead) == {("counted_at", "range")}
    assert SiteAdvertisement.objects.values().get() == before


def test_an_answer_that_was_lost_may_be_asked_for_again(secret: str) -> None:
    said = ad()
    first, again = send(secret, said), send(secret, said)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["arrived_at"] == again.json()["arrived_at"]


def test_only_the_enrolment_of_that_site_advertises_it(secret: str) -> None:
    other = send(secret, ad(), site="SITE_BETA")
    assert other.status_code == 403
    assert "is for SITE_ALPHA, not for SITE_BETA" in other.json()["detail"]
    assert "names no site" in send(issue_enrolment("ALPHA").text, ad()).json()["detail"]
    assert send(secret, ad(), site="NOWHERE").status_code == 404
    private = issue_enrolment("ALPHA", site=SITE, owner="ada")
    assert "for pilots of ada" in send(private.text, ad()).json()["detail"]
    of_one_vo = send(issue_enrolment("ALPHA", site=SITE, vo="demo").text, ad())
    assert (of_one_vo.status_code, of_one_vo.json()["title"]) == (403, "For one VO")
    assert "is for jobs of demo, the limits of a site hold for those of all VOs" in of_one_vo.json()["detail"]
    operator = issue_user_token(ensure_user("ada", roles=[("demo", "operator")])).text
    assert send(operator, ad()).status_code == 403
    assert not SiteAdvertisement.objects.exists()


@pytest.mark.parametrize("body", [b"[]", b"3", b"{", b'{"max_jobs": NaN}', b""])
def test_a_body_that_is_no_object_is_refused(secret: str, body: bytes) -> None:
    assert send(secret, body).status_code in (400, 422)
