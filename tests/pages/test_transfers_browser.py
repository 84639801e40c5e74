"""Files on their way in a real browser: why one is not there yet, one that is tried again, a link that is blocked and opened."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.ends import end_unmet
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import Transfer
from brokerage.rules.transfers.wishes import PRODUCTION_INPUT, FileWish
from tests.builders import catalogue_dataset, grid, parameters, submitted
from tests.pages.scene import visitor
from tests.pages.test_browser import sign_in
from workqueues.models import CatalogueFile, Task

pytestmark = [pytest.mark.pages, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def moving() -> Task:
    """A task with a file that was given up and one that waits for its turn, both for BETA."""
    grid("ALPHA", "BETA")
    catalogue_dataset("d", 2)
    task = submitted(parameters("t"))
    files = CatalogueFile.objects.order_by("id")
    plain = FileWish(0, "BETA_DISK", "input", PRODUCTION_INPUT, "demo", "ada", task_id=task.id, dataset_id=1)
    first, _ = ask([plain._replace(file_id=file.id) for file in files], "test")
    assert first is not None
    end_unmet([TransferMove(first, "the copy was silent", reason="timeout")], "failed", "test")
    visitor()
    return task


def test_find_why_a_file_is_not_here_try_it_again_and_block_its_link(live_server: LiveServer, page: Page, moving: Task) -> None:
    sign_in(page, live_server, f"/tasks/{moving.id}/")
    page.locator("section", has=page.get_by_role("heading", name="Files on their way")).get_by_role("link", name="All").click()
    rows = page.get_by_role("table", name="Transfers, newest first").locator("tbody tr")
    expect(rows).to_have_count(1)  # what the task still waits for
    page.goto(f"{live_server.url}/transfers/?status=failed")
    expect(rows).to_have_count(1)

    failed, waiting = Transfer.objects.order_by("id").values_list("id", flat=True)
    page.get_by_role("rowheader", name=str(failed), exact=True).get_by_role("link").click()
    expect(page.get_by_text("d.000000 is not at BETA_DISK: bringing it was given up")).to_be_visible()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("d.000000 is not at BETA_DISK yet: it waits for its turn")).to_be_visible()
    assert Transfer.objects.filter(file__lfn="d.000000", status="queued").count() == 1

    page.goto(f"{live_server.url}/transfers/{waiting}/")
    page.get_by_role("link", name="SITE_ALPHA to SITE_BETA").click()
    page.get_by_label("Why").fill("new fibre")
    page.get_by_role("button", name="Block the link").click()
    expect(page.get_by_text("new fibre").first).to_be_visible()
    page.goto(f"{live_server.url}/transfers/{waiting}/")
    expect(page.get_by_text("it cannot be brought now: ALPHA_DISK: new fibre")).to_be_visible()

    page.goto(f"{live_server.url}/links/SITE_ALPHA/SITE_BETA/")
    page.get_by_role("button", name="Open the link").click()
    page.goto(f"{live_server.url}/transfers/{waiting}/")
    expect(page.get_by_text("it waits for its turn on the link")).to_be_visible()
