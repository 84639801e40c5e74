"""No JSON or CSV of a page and no list of REST ignores what it does not know: a mistyped filter would show all rows for some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import URLPattern, reverse

from broker_site.foundation.access.credentials import ensure_user
from monitoring.urls import urlpatterns

pytestmark = pytest.mark.django_db


def data_addresses() -> Iterator[str]:
    """Each address of data of a page; what it is about need not be there, for the address is looked at first."""
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        words = str(pattern.pattern)
        if not (words.endswith(".json") or "json|csv" in words):
            continue
        names = pattern.pattern.regex.groupindex
        known: dict[str, Any] = {name: 1 if name.endswith(("_id", "revision")) else "x" for name in names}
        if "pilot_id" in names:
            known["pilot_id"] = uuid4()
        for ending in ("json", "csv") if "format" in names else ("json",):
            yield reverse(str(pattern.name), kwargs={**known, "format": ending} if "format" in names else known)


def test_json_and_csv_of_every_page_refuse_what_they_do_not_know(client: Client) -> None:
    client.force_login(ensure_user("root", password="a good password", superuser=True))
    addresses = list(data_addresses())
    assert len(addresses) > 40
    for address in addresses:
        answer = client.get(f"{address}?colour=red")
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json"), address
        assert "colour" in [error["field"] for error in answer.json()["errors"]], address


def test_lists_of_rest_that_are_always_whole_take_no_filter(client: Client) -> None:
    client.force_login(ensure_user("root", password="a good password", superuser=True))
    for name in ("agents", "shares", "work-queues", "tree/children"):
        answer = client.get(f"/api/v1/{name}/?name=x")
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json"), name
        assert [(error["field"], error["rule"]) for error in answer.json()["errors"]] == [("name", "unknown")], name
        assert client.get(f"/api/v1/{name}/").status_code == 200, name
