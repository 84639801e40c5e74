"""Every page of the admin, light and dark, is without faults that keep people from using it, and keeps to its content policy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from broker_site.foundation.access.models import Role, User
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel import clock
from tests.pages.scene import make_scene, visitor
from tests.pages.test_accessibility import faults_of, with_axe
from tests.pages.test_browser import sign_in
from workqueues.models import GlobalShare

pytestmark = [pytest.mark.pages, pytest.mark.django_db(transaction=True)]


def admin_addresses(client: Client) -> Iterator[str]:
    """Lists of all models; of those that can be edited the forms too, with a row where there is one."""
    yield reverse("admin:index")
    yield reverse("admin:password_change")
    for app in sorted({model._meta.app_label for model in admin.site._registry}):
        yield reverse("admin:app_list", args=[app])
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        add = reverse(f"{name}_add")
        if client.get(add).status_code != 200:
            continue
        yield add
        if (row := model._default_manager.first()) is not None:
            for page in ("change", "history", "delete"):
                address = reverse(f"{name}_{page}", args=[row.pk])
                if client.get(address).status_code == 200:
                    yield address


def test_no_page_of_the_admin_has_a_grave_fault(live_server: LiveServer, browser: Browser, client: Client) -> None:
    make_scene()
    ada = visitor()
    User.objects.filter(pk=ada.pk).update(is_superuser=True, is_staff=True, last_login=clock.now())
    Role.objects.get_or_create(user=ada, vo="demo", role="submitter")
    GlobalShare.objects.get_or_create(name="Data", vo="demo", value=1)
    set_override("jobbroker", "NQUEUED_SAT_CAP", 150, who="ada", why="slow links")
    client.force_login(ada)
    addresses = list(admin_addresses(client))
    assert len(addresses) > 100
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    with_axe(page)
    sign_in(page, live_server)
    faults = [f"{address} {fault}" for address in addresses for fault in faults_of(page, f"{live_server.url}{address}")]
    assert not faults, f"{len(faults)}\n" + "\n".join(faults[:40])
    context.close()
