"""The share tree in a real browser, with JavaScript and without: edit, check, apply with a reason, take back."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from broker_site.foundation.gdpconfig.changesets import Draft, named_line
from broker_site.foundation.gdpconfig.store import apply
from tests.pages.scene import visitor
from tests.pages.test_accessibility import GRAVE
from tests.pages.test_browser import sign_in
from workqueues.models import GlobalShare

pytestmark = [pytest.mark.pages, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("scripts", [True, False])
def test_edit_a_share_with_its_dry_run_and_take_it_back(
    live_server: LiveServer, browser: Browser, scripts: bool, request: pytest.FixtureRequest
) -> None:
    visitor(role="share-editor")
    tree = {
        "Top": {"value": 80},
        "MC": {"value": 60, "parent": "Top"},
        "Data": {"value": 40, "parent": "Top", "campaign": "mc26.*"},
    }
    apply(Draft([named_line("share", name, "demo", columns) for name, columns in tree.items()], "ann", "x", "rest"))
    width = 390 if scripts else 1280
    context = browser.new_context(
        java_script_enabled=scripts, color_scheme="dark" if scripts else "light", viewport={"width": width, "height": 900}
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    sign_in(page, live_server, "/shares/edit/")
    value = page.get_by_label("Value of MC")
    value.fill("")
    value.press_sequentially("120")
    row = page.get_by_role("row", name="MC")
    if scripts:
        expect(row).to_contain_text("75.0 %")  # 120 of 160, while it is typed
        expect(value).to_be_focused()
        expect(value).to_have_value("120")
    page.get_by_label("Name of a new share").first.fill("Tests")
    page.get_by_role("row", name="new share").get_by_label("Value of").first.fill("-1")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Tests: a share of -1 is negative")).to_be_visible()
    _picture(page, request, f"shares-faults-{scripts}")
    page.get_by_label("Value of Tests").fill("20")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="What it would have meant")).to_be_visible()
    expect(row).to_contain_text("75.0 %")
    _picture(page, request, f"shares-checked-{scripts}")
    if scripts:
        assert [one["id"] for one in Axe().run(page).response["violations"] if one["impact"] in GRAVE] == []
    page.get_by_label("Reason").fill("more MC")
    page.get_by_role("button", name="Apply 2 lines").click()
    expect(page.get_by_text("Applied as revision 2")).to_be_visible()
    _picture(page, request, f"shares-applied-{scripts}")
    assert dict(GlobalShare.objects.values_list("name", "value")) == {"Top": 80, "MC": 120, "Data": 40, "Tests": 20}
    page.get_by_text("Take it back", exact=True).click()
    page.get_by_label("Reason").fill("less again")
    page.get_by_role("button", name="Take 2 back").click()
    expect(page.get_by_text("Applied as revision 3")).to_be_visible()
    assert not GlobalShare.objects.filter(name="Tests").exists()
    context.close()
    assert [problem for problem in problems if "400" not in problem] == []


def _picture(page: Page, request: pytest.FixtureRequest, name: str) -> None:
    if folder := request.config.getoption("--pictures"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
