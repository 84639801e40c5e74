"""The page of what jobs did over time, and the plot of the home page: numbers, picture, table, and bad parameters."""

from __future__ import annotations

import random
import re
from xml.etree import ElementTree as ET

import pytest
from django.test import Client

from brokerage.ledger.tally import count_changes
from brokerage.models import JobChange, JobSpec
from tests.api.test_series import lived
from tests.builders import grid
from tests.monitoring.answers import text
from tests.pages.scene import visitor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client() -> Client:
    made = Client()
    made.force_login(visitor())
    return made


def pictures(page: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r'<svg class="plot".*?</svg>', page, re.DOTALL)]  # noqa: S314 - our own picture


def test_numbers_of_the_page_are_those_of_the_histories_by_queue_and_share(client: Client) -> None:
    lived(grid("ALPHA", "BETA"), random.Random(2))
    for window in ("24h", "7d"):
        for by in ("queue", "share"):
            page = text(client.get(f"/throughput/?window={window}&by={by}"))
            whole = pictures(page)[0]
            words = whole.findtext("desc") or ""
            demo = JobChange.objects.filter(job_id__in=_jobs_of("demo"))
            failed = demo.filter(new="failed").count()
            assert f"finished {demo.filter(new='finished').count()}, failed {failed}." in words
            assert whole.get("role") == "img"
            assert whole.get("tabindex") == "0"
            ids = re.findall(r'\bid="([^"]+)"', page)
            assert len(ids) == len(set(ids))
            assert page.count("<table") == page.count('<figure class="plot"')
            assert 'aria-current="true">' + window in page
    by_queue = text(client.get("/throughput/"))
    assert "<h3>ALPHA " in by_queue
    assert "<h3>BETA " in by_queue


def test_an_hour_is_shown_by_the_minute(client: Client) -> None:
    grid("ALPHA")
    count_changes(1)
    for address in ("/throughput/", "/queues/ALPHA/plots/"):
        page = text(client.get(f"{address}?window=1h"))
        assert 'aria-current="true">1h' in page
        assert "jobs per min" in page
        assert ">From, 5 min each<" in page
    assert client.get("/queues/ALPHA/plots.json?window=1h").json()["step_s"] == 60
    assert 'aria-current="true">24h' in text(client.get("/throughput/"))
    assert 'aria-current="true">1h' in text(client.get("/errors/?window=1h"))
    home = text(client.get("/?window=1h"))
    assert 'aria-current="true">1h' in home
    assert ">From, 5 min each<" in home


def _jobs_of(vo: str) -> list[int]:
    return list(JobSpec.objects.filter(vo=vo).values_list("job_id", flat=True))


def test_the_table_says_the_same_as_the_picture(client: Client) -> None:
    lived(grid("ALPHA"), random.Random(4))
    page = text(client.get("/throughput/"))
    figure = re.findall(r'<figure class="plot">.*?</figure>', page, re.DOTALL)[0]
    numbers = [int(n.replace(",", "")) for n in re.findall(r'<td class="num">([\d,]+)</td>', figure)]
    told = [int(n.replace(",", "")) for n in re.findall(r"(?:started|finished|failed) ([\d,]+)", figure)]
    assert [sum(numbers[i::3]) for i in range(3)] == told[:3]
    assert len(numbers) == 3 * 24


def test_what_is_said_of_an_empty_plot_holds_while_the_first_jobs_end(client: Client) -> None:
    """Steps are drawn when they are over; what has happened since is in none of them, and is not denied."""
    grid("ALPHA")
    assert count_changes(1) == 0
    page = text(client.get("/throughput/"))
    assert "None in the steps of 1 h that are over." in page
    assert "None in this time." not in page


def test_the_home_page_has_the_jobs_by_state_once_they_are_counted(client: Client) -> None:
    grid("ALPHA")
    assert "The last 24h" not in text(client.get("/"))
    assert "Nothing is counted yet" in text(client.get("/throughput/"))
    assert count_changes(1) == 0
    page = text(client.get("/"))
    assert "The last 24h" in page
    assert "None in this time." in page
    lived_at = grid("BETA")
    lived(lived_at, random.Random(1))
    (picture,) = pictures(text(client.get("/")))
    assert re.search(r"Jobs now: running \d+, starting 0, ending 0, waiting \d+", picture.findtext("desc") or "")


def test_bad_parameters_are_told_and_the_page_is_there(client: Client) -> None:
    grid("ALPHA")
    count_changes(1)
    page = text(client.get("/throughput/?window=<b>&by=colour&x=1"))
    assert "“&lt;b&gt;” is no window, and was ignored; there is: 1h, 24h, 7d." in page
    assert "“colour” is no by, and was ignored; there is: queue, share." in page
    assert "The parameter “x” is not known and was ignored." in page


def test_whoever_has_no_role_sees_no_jobs() -> None:
    lived(grid("ALPHA"), random.Random(0))
    stranger = Client()
    stranger.force_login(visitor("eve", "auditor"))
    assert stranger.get("/throughput/").status_code == 200
    assert Client().get("/throughput/").status_code in (302, 401)
