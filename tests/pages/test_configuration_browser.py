"""The configuration in a real browser, with JavaScript and without: find a key, try a value, apply it, take it back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from broker_site.foundation.access.models import User
from broker_site.foundation.gdpconfig.models import ChangeSet, Override
from tests.pages.scene import visitor
from tests.pages.test_browser import sign_in

pytestmark = [pytest.mark.pages, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("scripts", [True, False])
def test_find_a_key_try_a_value_apply_it_and_take_it_back(
    live_server: LiveServer, browser: Browser, scripts: bool, request: pytest.FixtureRequest
) -> None:
    User.objects.filter(pk=visitor().pk).update(is_superuser=True)
    context = browser.new_context(java_script_enabled=scripts, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    sign_in(page, live_server, "/config/")
    page.get_by_label("Words in key or meaning").fill("link nucleus sat")
    page.get_by_role("button", name="Filter").click()
    _picture(page, request, f"config-{scripts}")
    page.get_by_role("link", name="NQUEUED_SAT_CAP").click()
    page.get_by_label("Value").fill("150")
    page.get_by_label("VO", exact=True).fill("atlas")
    _picture(page, request, f"key-{scripts}")
    page.get_by_role("button", name="Try it").click()
    expect(
        page.get_by_role("row", name="jobbroker.NQUEUED_SAT_CAP atlas none 150 files it stays 300 files 150 files")
    ).to_be_visible()
    expect(page.get_by_text("No kept decision could be taken again")).to_be_visible()
    assert not ChangeSet.objects.exists()
    _picture(page, request, f"draft-{scripts}")
    page.get_by_label("Reason").fill("links are slow")
    page.get_by_role("button", name="Apply 1 line").click()
    expect(page.get_by_text("Applied as revision 1")).to_be_visible()
    assert Override.objects.get().value == "150"
    page.get_by_text("Take it back", exact=True).click()
    page.get_by_label("Reason").fill("they are not")
    page.get_by_role("button", name="Take 1 back").click()
    expect(page.get_by_text("Applied as revision 2")).to_be_visible()
    assert not Override.objects.exists()
    page.goto(f"{live_server.url}/changes/")
    expect(page.get_by_text("takes back 1: they are not")).to_be_visible()
    _picture(page, request, f"changes-{scripts}")
    context.close()
    assert problems == []


def _picture(page: Page, request: pytest.FixtureRequest, name: str) -> None:
    if folder := request.config.getoption("--pictures"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
