"""Every page, light and dark, is without faults that keep people from using it, asks nothing of other hosts, and keeps to its
content security policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.urls import URLPattern, reverse
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from broker_site.foundation.access.models import Role, User
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.changesets import Draft, named_line
from broker_site.foundation.gdpconfig.models import ChangeSet, Proposal
from broker_site.foundation.gdpconfig.proposals import propose
from broker_site.foundation.kernel import clock
from brokerage.ledger.bulk import Wish, start
from brokerage.models import BulkAction, BulkTarget, ComputingQueue, Job, Pilot, Transfer
from monitoring.urls import urlpatterns
from tests.pages.scene import Scene, make_scene, visitor
from tests.pages.test_browser import NOTE_VIOLATIONS, sign_in
from tests.tree_of_brokers import make_tree
from workqueues.models import Dataset, File, GlobalShare

pytestmark = [pytest.mark.pages, pytest.mark.django_db(transaction=True)]

GRAVE = ("serious", "critical")
FAULTS = """options => axe.run({resultTypes: ['violations'], preload: {assets: ['media']}, ...options})
    .then(found => found.violations)"""
"""Style sheets are left to the browser: no rule that is on looks into them, and who loads them again asks for pages in vain, as
what they import is sought beside the page.
"""
NOT_SHOWN = frozenset(
    {
        "login",
        "logout",
        "appearance",
        "page-config-import",
        "page-job-log",
        "page-job-log-file",
        "page-job-log-text",
        "page-job-output",
        "page-transfer",
        "page-link",
    }
)
"""What is no page of its own here, or has a file or a transfer that the scene does not; the last two are seen elsewhere."""


def addresses(scene: Scene) -> Iterator[str]:
    """Each page once, with rows on it where the scene has some."""
    job = Job.objects.filter(task_id=scene.retrying.id, status="failed").latest("id")
    dataset = Dataset.objects.get(task=scene.retrying, type="input")
    GlobalShare.objects.get_or_create(name="Data", vo="demo", value=1)
    tree = make_tree(scene.running)
    names = {"page-share": "Data", "page-user": "grace", "page-child": "east", "page-submission-site": "SITE_GAMMA"}
    ComputingQueue.objects.filter(name="GAMMA").update(submission="local")
    known: dict[str, Any] = {
        "task_id": scene.pending.id,
        "job_id": job.id,
        "dataset_id": dataset.id,
        "file_id": File.objects.filter(dataset=dataset).latest("id").id,
        "name": "GAMMA",
        "key": "jobbroker.NQUEUED_SAT_CAP",
        "proposal_id": Proposal.objects.latest("id").id,
        "action_id": BulkAction.objects.latest("id").id,
        "operation_id": "tasks_create",
        "pilot_id": Pilot.objects.latest("registered_at").id,
        "element_id": tree.waiting.id,
        "revision": ChangeSet.objects.latest("revision").revision,
    }
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        named = {name: known[name] for name in pattern.pattern.converters if name in known}
        if pattern.name in names:
            named["name"] = names[pattern.name]
        is_page = pattern.name and not pattern.name.endswith(("-data", "-asks", "-waiting")) and pattern.name not in NOT_SHOWN
        if is_page:
            yield reverse(str(pattern.name), kwargs=named)
    yield "/config/draft/?key=jobbroker.NQUEUED_SAT_CAP&value=7"
    yield "/config/draft/?key=jobbroker.NQUEUED_SAT_CAP&value=many"
    yield "/submission/SITE_GAMMA/?state=Draining&cpu_slots=20"
    yield "/submission/SITE_GAMMA/?state=Closed&cpu_slots=-3"
    yield f"/bulk/new/?of=tasks&act=priority&id={scene.running.id}"
    yield f"/tasks/{scene.running.id}/"
    yield f"/tasks/{scene.done.id}/"
    yield "/tree/children/north/"
    yield f"/elements/{tree.running.id}/"
    yield "/tasks/?task_name=nothing-like-it"


def test_no_page_has_a_grave_fault_light_or_dark(live_server: LiveServer, browser: Browser) -> None:
    scene = make_scene()
    assert not Transfer.objects.exists(), "the scene has transfers now: visit theirs too"
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="ada", why="slow links")
    propose(Draft([named_line("config", "feeds.FEED_MAX_LOSS", "", "0.5")], "bob", "more may go", "page"))
    asked = Wish("tasks", "pause", [scene.pending.id, scene.done.id], clock.now(), {"vo": "demo"})
    begun = start(Principal("user", "ada", user=visitor(), superuser=True), asked)
    BulkTarget.objects.filter(action=begun, target_id=scene.done.id).update(outcome="skipped", said="it is done")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")  # colours change at once
    page = context.new_page()
    with_axe(page)
    elsewhere: list[str] = []
    page.on("request", lambda request: None if request.url.startswith(live_server.url) else elsewhere.append(request.url))
    ada = visitor()
    Role.objects.create(user=ada, vo="demo", role="submitter")
    sign_in(page, live_server)
    found = ((address, faults_of(page, f"{live_server.url}{address}")) for address in addresses(scene))
    submitting = faults_of(page, f"{live_server.url}/tasks/submit/")  # which a superuser may not
    assert page.locator("#document").is_visible()
    User.objects.filter(pk=ada.pk).update(is_superuser=True)  # who sees every form
    faults = [*submitting, *(f"{address} {fault}" for address, of_page in found for fault in of_page)]
    assert not faults, "\n".join(faults)
    assert elsewhere == []
    page.goto(f"{live_server.url}/me/")
    assert "/login/" not in page.url, "all of this was seen by somebody who is signed in"
    context.close()


def with_axe(page: Page) -> None:
    """Each document that the page opens notes what its policy blocks, and has axe: to send it to each takes longer."""
    page.add_init_script(NOTE_VIOLATIONS)
    page.add_init_script(AXE_SCRIPT)


def faults_of(page: Page, address: str) -> list[str]:
    """Of the page in light, then of its colours in dark: the rest is the same in both."""
    page.emulate_media(color_scheme="light")
    page.goto(address)
    blocked = [f"blocked by the policy: {what}" for what in page.evaluate("window.violations")]
    found = [(one, "light") for one in page.evaluate(FAULTS, {})]
    page.emulate_media(color_scheme="dark")
    found += [(one, "dark") for one in page.evaluate(FAULTS, {"runOnly": ["color-contrast"]})]
    return blocked + [
        f"{scheme} {one['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for one, scheme in found
        if one["impact"] in GRAVE
        for node in one["nodes"][:3]
    ]
