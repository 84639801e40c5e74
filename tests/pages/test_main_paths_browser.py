"""Main paths in a browser, with scripts and without: filter and export, kill many, submit and watch, read a failed job's log."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from broker_site.foundation.access.models import Role
from broker_site.foundation.agency.run import run_agent
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import BAD, end, run_agents, take
from tests.pages.scene import visitor
from tests.pages.test_browser import NOTE_VIOLATIONS, sign_in
from workqueues.models import Task

pytestmark = [pytest.mark.pages, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def pages(browser: Browser, live_server: LiveServer) -> Iterator[list[Page]]:
    """The list of tasks, seen by somebody who may do all of it: once by a browser with scripts, once by one without."""
    Role.objects.create(user=visitor(), vo="demo", role="submitter")
    opened = []
    for scripts in (True, False):
        page = browser.new_context(java_script_enabled=scripts, viewport={"width": 1280, "height": 900}).new_page()
        page.add_init_script(NOTE_VIOLATIONS)
        sign_in(page, live_server, "/tasks/")
        opened.append(page)
    yield opened
    assert opened[0].evaluate("window.violations") == []
    for page in opened:
        page.context.close()


def test_filter_and_export_have_the_same_rows(pages: list[Page], live_server: LiveServer, tmp_path: Path) -> None:
    for name in ("mc23.a", "mc23.b", "data.c"):
        submitted(parameters(name))
    for page in pages:
        page.goto(f"{live_server.url}/tasks/")
        page.get_by_label("Name").fill("mc23.*")
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        with page.expect_download() as coming:
            page.get_by_role("link", name="CSV", exact=True).click()
        coming.value.save_as(tmp_path / "tasks.csv")
        with (tmp_path / "tasks.csv").open(newline="") as file:
            exported = [row["task_name"] for row in csv.DictReader(file)]
        shown = page.locator("tbody tr").all_inner_texts()
        assert exported == ["mc23.b", "mc23.a"]
        assert [next(name for name in exported if name in row) for row in shown] == exported


def test_marked_tasks_and_all_that_match_are_killed_and_what_was_skipped_says_why(
    pages: list[Page], live_server: LiveServer
) -> None:
    for page, prefix in zip(pages, ("first", "second"), strict=True):
        tasks = [submitted(parameters(f"{prefix}.{n}")) for n in range(4)]
        page.goto(f"{live_server.url}/tasks/?task_name={prefix}.*")
        for task in tasks[:2]:
            page.get_by_label(f"Mark task {task.id}").check()
        page.get_by_role("button", name="Go on").click()
        page.get_by_role("button", name="Kill 2 tasks").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Kill of 2 tasks")
        run_agent("command", looked=True)
        page.reload()
        expect(page.get_by_text("2 done, 0 skipped")).to_be_visible()

        page.goto(f"{live_server.url}/tasks/?task_name={prefix}.*")
        page.get_by_label("with all that match the filter").check()
        page.get_by_role("button", name="Go on").click()
        page.get_by_role("button", name="Kill 4 tasks").click()
        run_agent("command", looked=True)
        page.reload()
        expect(page.get_by_text("2 done, 2 skipped")).to_be_visible()
        expect(page.get_by_role("table", name="Targets of the act").locator("tbody tr").first).to_contain_text("skipped")
        assert {Task.objects.get(id=task.id).status for task in tasks} <= {"aborting", "aborted"}


def test_an_example_is_mended_where_the_page_says_submitted_and_watched(pages: list[Page], live_server: LiveServer) -> None:
    grid("ALPHA")
    for n, page in enumerate(pages):
        page.goto(f"{live_server.url}/tasks/")
        page.get_by_role("link", name="Submit").first.click()
        page.get_by_role("navigation", name="Examples").get_by_role("link").first.click()
        document = page.get_by_label("Parameters, as JSON")
        good = document.input_value().replace('"my.', f'"my.{n}.')  # the name of the task and those of what it writes
        named = json.loads(good)["taskName"]
        line = good[: good.index('"taskName"')].count("\n") + 1
        document.fill(good.replace('"taskName"', '"tskName"'))
        page.get_by_role("button", name="Submit").click()
        refused = page.get_by_role("alert")
        expect(refused).to_contain_text(f"Line {line}, tskName")
        document.fill(good)
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(named)
        badge = page.locator(".head .badge")
        expect(badge).to_have_text(re.compile("registered"))
        run_agents(1)
        _again(page, page.locator("#panel"))
        expect(badge).not_to_have_text(re.compile("registered"))


def _again(page: Page, panel: Locator) -> None:
    """What the page does by itself where there are scripts, and its reader where there are none."""
    if panel.get_attribute("data-htmx-powered") is not None:
        page.evaluate("htmx.trigger('#panel', 'every')")
    else:
        page.reload()


def test_from_a_failed_job_to_its_log(pages: list[Page], live_server: LiveServer) -> None:
    (queue,) = grid("ALPHA")
    submitted(parameters("mc23.bad"))
    run_agents(1)
    leased = take(queue)
    end(leased, replace(BAD, log_end="reading geometry\nSegmentation fault in <TileCal>\n"))
    assert Job.objects.get(id=leased.job_id).status == "failed"
    for page in pages:
        page.goto(f"{live_server.url}/jobs/?status=failed")
        page.get_by_role("rowheader", name=str(leased.job_id)).get_by_role("link").click()
        expect(page.get_by_text("PAYLOAD_EXIT").first).to_be_visible()
        page.get_by_role("link", name="Its log").or_(page.get_by_role("link", name="Log", exact=True)).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Log of job {leased.job_id}")
        expect(page.locator("pre")).to_contain_text("Segmentation fault in <TileCal>")
