"""What pilots call leaves nothing behind for the collector of garbage, which a process that serves them runs seldom.

A ring that each ask leaves fills the memory until then, and is looked through with all that lives.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import GeneratorType
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from broker_site.foundation.access.credentials import issue_enrolment
from brokerage.api.matching import MATCHING
from brokerage.api.pilots import REGISTERING
from brokerage.api.reports import REPORTING
from tests.api.test_short_way import ShortWay
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents

pytestmark = pytest.mark.django_db
OURS = ("broker_site.", "brokerage.", "workqueues.")
ROOT = Path(settings.BASE_DIR)


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def objects_of_ours() -> Counter[str]:
    """How many objects of our classes, and generators of our functions, there are."""
    kinds: Counter[str] = Counter()
    for one in gc.get_objects():
        kind = type(one)  # not by isinstance: it asks what a proxy stands for, which may be gone
        if kind is GeneratorType:
            if Path(one.gi_code.co_filename).is_relative_to(ROOT):
                kinds[one.__qualname__] += 1
        elif str(kind.__module__).startswith(OURS):
            kinds[kind.__qualname__] += 1
    return kinds


@pytest.mark.parametrize("outcome", ["a job", "nothing, and why", "the end of a job"])
def test_an_ask_leaves_nothing_for_the_collector(outcome: str) -> None:
    for verb in (REGISTERING, MATCHING, REPORTING):
        verb.forget()
    grid("ALPHA")
    submitted(parameters(nEvents=80, nEventsPerJob=10, site="ALPHA"))
    run_agents()
    wire, secret = ShortWay(), issue_enrolment("ALPHA").text

    def post(path: str, token: str, body: dict[str, Any]) -> Any:
        answer = wire.post(
            f"/api/v1/{path}", json.dumps(body), content_type="application/json", headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code in (200, 201), answer.content
        return json.loads(answer.content)

    pilots = [post("pilots/", secret, {"queue": "ALPHA", "host": "wn7", "slot": f"s{n}", "cores": 1})["token"] for n in range(4)]

    def ask(pilot: str) -> None:
        said = {"request": str(uuid4()), "cores": 1, "memory_mb": 1 if outcome.startswith("nothing") else 0, "explain": True}
        job = post("pilots/match/", pilot, said)["job"]
        assert (job is None) == outcome.startswith("nothing")
        if outcome == "the end of a job":
            post(f"jobs/{job['id']}/heartbeat/", job["token"], {"status": "running"})
            post(f"jobs/{job['id']}/report/", job["token"], {"status": "failed", "error": {"component": "pilot", "code": 1}})

    ask(pilots[0])  # what is kept for later asks is made
    with without_collector():
        for pilot in pilots[1:]:
            ask(pilot)
        before = objects_of_ours()
        gc.collect()
        freed = before - objects_of_ours()
    assert not freed
