"""The page of what jobs did over time, and the plot of the home page: numbers, picture, table, and bad parameters."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from datetime import timedelta
from xml.etree import ElementTree as ET

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.kernel import clock
from brokerage.ledger.tally import count_changes
from brokerage.models import JobChange, JobSpec
from tests.api.test_series import lived
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import end, run_agents, take
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
            assert page.count("<table") == page.count('<figure class="plot"') + page.count('id="waits"')
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


def test_files_events_and_waits_are_those_of_the_jobs(client: Client) -> None:
    (queue,) = grid("ALPHA")
    assert count_changes(1) == 0
    catalogue_dataset("work.in", 6)
    submitted(reading("work", "work.in", nFilesPerJob=2))
    run_agents(1)
    for minutes in (1.5, 1.5, 90):
        leased = take(queue)
        JobSpec.objects.filter(job_id=leased.job_id).update(created_at=clock.now() - timedelta(minutes=minutes))
        end(leased)
    specs = JobSpec.objects.all()
    assert count_changes(10_000)
    for window in ("1h", "24h", "7d"):
        told = json.loads(client.get(f"/throughput.json?window={window}").content)
        totals = [sum(row[what] for row in told["rows"]) for what in ("started", "finished", "files", "events")]
        assert totals == [3, 3, sum(s.n_input_files for s in specs), sum(s.n_events for s in specs)]
        assert totals[2] == 6
        for by, name in (("queue", "ALPHA"), ("share", ""), ("vo", "demo")):
            (row,) = json.loads(client.get(f"/throughput/waits.json?window={window}&by={by}").content)["rows"]
            assert (row["of"], row["started"]) == (name, 3)
            assert 60 <= row["wait_50_s"] <= 120
            assert 3_600 <= row["wait_90_s"] <= row["wait_99_s"] <= 7_200
    page = text(client.get("/throughput/"))
    assert '<a href="/queues/ALPHA/">ALPHA</a></th><td class="num">3</td>' in page
    (line,) = csv.DictReader(io.StringIO(text(client.get("/throughput/waits.csv?by=vo"))))
    assert (line["of"], line["started"]) == ("demo", "3")
    steps = list(csv.DictReader(io.StringIO(text(client.get("/throughput.csv")))))
    assert sum(int(step["files"]) for step in steps) == 6
    series = client.get("/api/v1/series/?what=files&by=queue").json()["lines"]
    assert [(x["of"], sum(x["points"])) for x in series] == [("ALPHA", 6)]
    for address in ("/throughput.json?window=1y", "/throughput/waits.json?by=colour", "/throughput.csv?x=1"):
        assert client.get(address).status_code == 400
    client.force_login(ensure_user("eve", roles=[("other", "operator")]))
    assert json.loads(client.get("/throughput/waits.json?by=vo").content)["rows"] == []
    errors = json.loads(client.get("/throughput.json?window=1y&by=colour").content)["errors"]
    assert [(error["field"], error["rule"]) for error in errors] == [("window", "one_of"), ("by", "one_of")]
    assert {row["files"] for row in json.loads(client.get("/throughput.json").content)["rows"]} == {0}


def test_what_is_merged_and_random_seeds_are_no_files_that_were_worked_through(client: Client) -> None:
    (queue,) = grid("ALPHA", path="/data")
    assert count_changes(1) == 0
    submitted(parameters(mergeOutput=True, nEvents=30))
    run_agents()
    for _ in range(3):
        end(take(queue))
    run_agents(1, ("merge",))
    end(take(queue))
    assert count_changes(10_000)
    steps = json.loads(client.get("/throughput.json?window=1h").content)["rows"]
    assert [sum(step[what] for step in steps) for what in ("finished", "files", "events")] == [4, 3, 30]


def test_bad_parameters_are_told_and_the_page_is_there(client: Client) -> None:
    grid("ALPHA")
    count_changes(1)
    page = text(client.get("/throughput/?window=<b>&by=colour&x=1"))
    assert "“&lt;b&gt;” is no window, and was ignored; there is: 1h, 24h, 7d." in page
    assert "“colour” is no by, and was ignored; there is: queue, share, vo." in page
    assert "The parameter “x” is not known and was ignored." in page


def test_whoever_has_no_role_sees_no_jobs() -> None:
    lived(grid("ALPHA"), random.Random(0))
    stranger = Client()
    stranger.force_login(visitor("eve", "auditor"))
    assert stranger.get("/throughput/").status_code == 200
    assert Client().get("/throughput/").status_code in (302, 401)
