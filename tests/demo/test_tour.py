"""The tour of a demo system: its tasks are taken by a real server, once, and its payloads end as the cases need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from broker_site.roof import tour
from broker_site.roof.demo import Client
from examples.demo.campaign import SOFTWARE
from manage import OWN_INSTANCE
from tests.api.people import person
from workqueues.models import GlobalShare, Task


@pytest.mark.django_db(transaction=True)
def test_the_tour_is_submitted_once_and_whoever_comes_again_finds_it(live_server: LiveServer) -> None:
    tour.prepare()
    tour.prepare()
    assert set(GlobalShare.objects.values_list("name", flat=True)) == {"Simulation", "Reconstruction", "Analysis"}
    client = Client(live_server.url, person("demo", ("demo", "submitter"), ("demo", "production")).token)
    first = tour.submit_missing(client)
    assert list(first) == [document["taskName"] for document in tour.documents()], "told in their order"
    assert tour.submit_missing(client) == first
    assert set(tour.SIGHTS) <= set(first)
    assert Task.objects.count() == len(first) == len(tour.documents())


def test_payloads_of_the_tour_fail_where_they_are_told_to(tmp_path: Path) -> None:
    def run(serial: int) -> subprocess.CompletedProcess[str]:
        burn = [sys.executable, str(SOFTWARE / "burn.py"), "--serial", str(serial), "--fail", "bad event", "--fail-every", "6"]
        return subprocess.run([*burn, f"--out=o{serial}"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (run(5).returncode, (tmp_path / "o5").exists()) == (0, True)
    failed = run(12)
    assert (failed.returncode, failed.stderr, (tmp_path / "o12").exists()) == (1, "ERROR bad event\n", False)


def test_the_tour_has_an_instance_of_its_own() -> None:
    assert OWN_INSTANCE["up --demo"] not in (OWN_INSTANCE["demo"], "up")
