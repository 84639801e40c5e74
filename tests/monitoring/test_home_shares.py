"""The home page says which shares are furthest from what they should have."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel import clock
from tests.monitoring.answers import text
from tests.pages.scene import PASSWORD, visitor
from workqueues.models import GlobalShare, ShareStanding

pytestmark = pytest.mark.django_db


def furthest(page: str) -> list[tuple[str, str]]:
    """Name and deviation of the rows."""
    _, _, rest = page.partition('id="deviating"')
    table = rest.partition("</table>")[0]
    return re.findall(r'<a href="/shares/[^"]+">([^<]+)</a>.*?data-label="Deviation">(?:<[^>]+>)?([^<]+)<', table)


def stands(name: str, target: float, used: float, place: float | None = 0.1) -> None:
    ShareStanding.objects.create(
        share_id=name, at=clock.now(), place=place, percent=10.0, target=target, entitled=target, hs06_running=used,
        hs06_queued=0.0, jobs_running=1, jobs_queued=0, cores_running=1, cores_queued=0,
    )  # fmt: skip


def client_of(name: str, *vos: str) -> Client:
    client = Client()
    client.force_login(ensure_user(name, password=PASSWORD, roles=[(vo, "operator") for vo in vos]))
    return client


def test_those_come_first_that_lack_or_exceed_most_power_and_one_level_of_the_tree_is_told() -> None:
    top = GlobalShare.objects.create(name="Top", vo="demo", value=90)
    stands("Top", target=900, used=100, place=None)
    for name, target, used in (("Big", 800.0, 600.0), ("Small", 10.0, 30.0), ("Even", 50.0, 50.0), ("Zero", 0.0, 40.0)):
        GlobalShare.objects.create(name=name, vo="demo", value=10, parent=top)
        stands(name, target=target, used=used)
    GlobalShare.objects.create(name="Theirs", vo="other", value=10)
    stands("Theirs", target=9_000, used=0)
    page = text(client_of("ada", "demo").get("/"))
    assert furthest(page) == [("Big", "-25 %"), ("Zero", "no target"), ("Small", "+200 %")]
    assert furthest(text(client_of("both", "demo", "other").get("/")))[0] == ("Theirs", "-100 %")
    assert "Theirs" not in page


def test_nothing_is_said_of_shares_before_they_are_counted() -> None:
    client = Client()
    client.force_login(visitor())
    assert "furthest from their target" not in text(client.get("/"))
