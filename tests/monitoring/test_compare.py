"""Two tasks or queues beside each other: what differs, what does not, and what cannot be compared."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from brokerage.models import ComputingQueue
from tests.builders import grid, parameters, submitted
from tests.monitoring.answers import text
from tests.pages.scene import visitor

pytestmark = pytest.mark.django_db


def test_tasks_differ_in_parameters_and_queues_in_configuration() -> None:
    client = Client()
    client.force_login(visitor())
    grid("ALPHA", "BETA")
    ComputingQueue.objects.filter(name="BETA").update(maxrss=4321, attributes={"cloud": "NORTH", "maxrss": 1})
    one, other = submitted(parameters("t1", nEvents=20)).id, submitted(parameters("t2", nEvents=20, ramCount=1234)).id
    answer = client.get("/compare/tasks.json", {"a": one, "b": other}).json()
    lines = {part["title"]: {line["name"]: line for line in part["lines"]} for part in answer["parts"]}
    assert lines["Parameters"]["ramCount"] == {"name": "ramCount", "a": "500", "b": "1234", "same": False}
    assert lines["Parameters"]["nEvents"]["same"]
    assert lines["Outcome"]["status"]["same"]
    page = text(client.get(f"/compare/tasks/?a={one}&b={other}"))
    assert "ramCount" in page and "1234" in page
    assert ">Owner</th>" in page and "user_name" not in page and "error_dialog" not in page
    assert re.search(r"[\d-]{10} [\d:]{8} UTC", page) and not re.search(r">\d{4}-[\d-]+T[\d:]+Z<", page), (
        "times as all pages tell them"
    )
    (part,) = client.get("/compare/queues.json?a=ALPHA&b=BETA").json()["parts"]
    assert {"name": "maxrss", "a": "8000", "b": "4321", "same": False} in part["lines"]
    assert {"name": "cloud", "a": "", "b": "NORTH", "same": False} in part["lines"]
    page = re.sub(r"<[^>]+>", "", text(client.get("/compare/queues/?a=ALPHA&b=BETA")))
    assert "maxrss MB" in page and "maxtime s" in page
    for address, status in (
        (f"a={one}&b=99999999", 404),
        ("a=x&b=1", 400),
        (f"a={one}&b={'9' * 30}", 400),
    ):
        assert client.get(f"/compare/tasks/?{address}").status_code == status, address
        data = client.get(f"/compare/tasks.json?{address}")
        assert (data.status_code, data["Content-Type"]) == (status, "application/problem+json")
    assert client.get("/compare/tasks/").status_code == 200
    client.force_login(ensure_user("eve", roles=[("other", "operator")]))
    assert client.get(f"/compare/tasks.json?a={one}&b={other}").status_code == 404
