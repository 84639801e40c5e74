"""A parent broker that gives what it should not: the child tells what is wrong, keeps its own going, and harms nobody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from django.db.models import F
from pytest_django import Settings

from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue
from tests.flow.small_parent import SmallParent, input_dataset
from tests.flow.steps import run_agents, run_jobs
from tests.flow.test_pull import SITES, cycle, named, parent, queue, why
from workqueues.models import CatalogueFile, Installation, ParentBroker, PulledElement, Task

pytestmark = pytest.mark.django_db
__all__ = ["parent", "queue"]  # fixtures


def offered(small: SmallParent, *numbers: int, **more: Any) -> None:
    for number in numbers:
        small.offer(number, named(), [input_dataset("in.1", 4)], SITES, **more)


def faults() -> dict[int, str]:
    return {row.element_id: row.work.get("fault", "") for row in PulledElement.objects.all()}


def deep(n: int) -> Any:
    value: Any = 1
    for _ in range(n):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"lease_s": float("nan")}, "no JSON"),
        ({"lease_s": 1e300}, "elements[0].lease_s: expected 0 to 31536000"),
        ({"lease_s": -1.0}, "elements[0].lease_s: expected 0 to 31536000"),
        ({"vo": "x" * 33}, "elements[0].vo: 33 characters, the limit is 32"),
        ({"site": "a\x00"}, "a text holds a NUL character or half of a surrogate pair"),
        ({"task_name": "a\ud800"}, "a text holds a NUL character or half of a surrogate pair"),
    ],
)
def test_heads_that_cannot_be(parent: SmallParent, queue: ComputingQueue, more: dict[str, Any], told: str) -> None:
    offered(parent, 5, **more)
    cycle()
    assert told in why()
    assert not PulledElement.objects.exists()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda work: work["parameters"].update(foo="a\x00b"), "a text holds a NUL character"),
        (lambda work: work["parameters"].update(foo=deep(300)), "nested deeper than 100 levels"),
    ],
)
def test_work_that_no_database_keeps(
    parent: SmallParent, queue: ComputingQueue, spoil: Callable[[dict[str, Any]], None], told: str
) -> None:
    offered(parent, 5)
    spoil(parent.works[5])
    cycle(2)
    assert told in why()
    assert [row.status for row in PulledElement.objects.all()] == ["Negotiating"]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda work: work.update(owner="x" * 129), "owner: 129 characters, the limit is 128"),
        (lambda work: work.update(owner="root"), "no user root has a role in VO demo here"),
        (lambda work: work.update(sites=["NOWHERE"]), "none of the sites where it may run is a site here"),
        (lambda work: work["inputs"][0].update(vo="x" * 33), "inputs[0].vo: 33 characters"),
        (lambda work: work["inputs"][0]["files"][0].update(lfn="../x"), "inputs[0].files[0].lfn: a name of a file has no slash"),
        (lambda work: work["inputs"][0]["files"][0].update(guid="x" * 65), "inputs[0].files[0].guid: 65 characters"),
        (
            lambda work: work["inputs"][0]["files"][0]["copies"][0].update(path="../../etc/passwd"),
            "copies[0].path: must be a path below the root of a storage",
        ),
    ],
)
def test_work_that_breaks_rules_is_told_as_failed_and_holds_up_no_other(
    parent: SmallParent, queue: ComputingQueue, spoil: Callable[[dict[str, Any]], None], told: str
) -> None:
    offered(parent, 5, 6)
    spoil(parent.works[5])
    cycle(3)
    assert told in faults()[5]
    assert parent.told(5)[-1]["state"] == "Failed"
    assert Task.objects.get().pulled_element.element_id == 6
    assert not CatalogueFile.objects.filter(lfn__startswith=".").exists()


def test_a_copy_without_a_path_lies_by_its_name(parent: SmallParent, queue: ComputingQueue) -> None:
    offered(parent, 5)
    parent.works[5]["inputs"][0]["files"][0]["copies"][0]["path"] = ""
    cycle(3)
    assert faults() == {5: ""}
    assert Task.objects.get().pulled_element.element_id == 5


def test_the_owner_is_not_whoever_the_parameters_name(parent: SmallParent, queue: ComputingQueue) -> None:
    offered(parent, 5)
    parent.works[5]["parameters"]["userName"] = "carol"
    cycle(2)
    run_agents()
    assert Task.objects.get().user_name == "ada"
    assert run_jobs(queue) == 2


def test_so_many_jobs_of_an_element_do_not_make_a_message_that_is_refused(parent: SmallParent, queue: ComputingQueue) -> None:
    offered(parent, 5, 6, jobs=999_999_999)
    cycle(3)
    assert why() == ""
    assert parent.asked("pull")[-1]["jobs"]["SITE_ALPHA"] == {"500": 999_999_999}


def test_reports_are_as_long_as_the_parent_takes_them(parent: SmallParent, queue: ComputingQueue) -> None:
    """Three elements of a thousand files with long names come back, each file with what is wrong."""
    name = "long." * 44
    for number in (5, 6, 7):
        params = named(1, **{"x" * 240: 1, "y" * 240: 2})
        parent.offer(number, params, [input_dataset(f"{name}{number}", 1000)], SITES, jobs=1)
    cycle(6)
    assert why() == ""
    assert [sum(len(inputs) for inputs, _ in parent.ends(number)) for number in (5, 6, 7)] == [1000, 1000, 1000]
    assert not PulledElement.objects.filter(ended_at=None).exists()


def test_a_child_that_can_do_nothing_of_what_it_gets_does_not_pull_it_again_and_again(
    parent: SmallParent, queue: ComputingQueue
) -> None:
    params = named(4, noSuchParameter=1)
    for number in range(5, 65):
        parent.offer(number, params, [input_dataset("in.1", 4)], SITES)
    set_override("elements", "WORK_PER_CYCLE", 20, who="ada", why="test", app="jedi")
    cycle(12)
    assert PulledElement.objects.count() == 20
    assert "could be no tasks here" in why() and "noSuchParameter" in why()
    PulledElement.objects.update(ended_at=F("ended_at") - timedelta(hours=1))
    parent.offers.insert(0, parent.offers.pop())
    parent.works[64]["parameters"] = named(4)
    cycle(4)
    assert Task.objects.get().pulled_element.element_id == 64


@pytest.mark.parametrize(
    ("body", "told"),
    [(b'{"detail": "a\\ud800b\\u0000c"}', "refused (500): a?b?c"), (b"[" * 50_000, "refused (500): it gives no reason")],
)
def test_refusals_that_nobody_can_read(
    settings: Settings, parent: SmallParent, queue: ComputingQueue, body: bytes, told: str
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    settings.PARENT = f"http://127.0.0.1:{server.server_address[1]}"
    cycle()
    server.shutdown()
    server.server_close()
    assert why() == told


@pytest.mark.parametrize("status", [503, 404, 0])
def test_work_that_is_never_given_holds_up_nothing_for_long(parent: SmallParent, queue: ComputingQueue, status: int) -> None:
    """Of many elements the first ones get no work, whatever is asked: the others get theirs, and the first go back."""
    dead = range(1, 13)
    offered(parent, *range(1, 21))
    parent.dead = dict.fromkeys(dead, status)
    cycle(30)
    there = PulledElement.objects.exclude(status="Negotiating").values_list("element_id", flat=True)
    assert sorted(there) == list(range(13, 21))
    pulls = len(parent.asked("pull"))
    PulledElement.objects.filter(element_id__in=dead).update(pulled_at=F("pulled_at") - timedelta(minutes=11))
    Installation.objects.update(works_since=F("works_since") - timedelta(hours=5))
    cycle(2)
    last = parent.told(1)[-1]
    assert (last["state"], last["sentence"]) == ("Canceled", "its work could not be fetched for over 10min")
    assert not PulledElement.objects.filter(status="Negotiating").exists()
    assert len(parent.asked("pull")) > pulls, "it pulls on"


def test_what_a_parent_that_was_away_has_not_given_stays(parent: SmallParent, queue: ComputingQueue) -> None:
    offered(parent, 1)
    parent.loses = {"fetch": 1}
    cycle(2)
    ParentBroker.objects.update(last_contact=F("last_contact") - timedelta(hours=1))
    PulledElement.objects.update(pulled_at=F("pulled_at") - timedelta(minutes=11))
    Installation.objects.update(works_since=F("works_since") - timedelta(hours=5))
    cycle(2)
    assert PulledElement.objects.get().given_back == ""
    assert PulledElement.objects.get().status in ("Acquired", "Running")
