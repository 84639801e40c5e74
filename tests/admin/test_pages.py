"""Every model has its pages: a list that searches and filters, a page of each row; what the system writes is to read."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.adminpages import MOST_COUNTED, CappedPaginator, ReadOnlyAdmin
from workqueues.models import Task

OURS = ("workqueues", "brokerage", "agency")
ADMINS = {model: page for model, page in admin.site._registry.items() if model._meta.app_label in OURS}
EDITED = {
    *("Site", "StorageEndpoint", "ComputingQueue", "QueueStorage", "LocalOverride", "Feed"),
    *("WorkQueue", "GlobalShare", "ReadGrant", "RetryRule"),
    *("Link", "Software", "DeclaredSlots", "Measured", "TransferLink"),
}
"""Models that people edit; all others are written by the system alone."""

NAMED = ("File", "Dataset", "CatalogueFile", "CatalogueDataset", "Replica")
"""Models of many rows that people look for by name."""
MODELS = [pytest.param(model, id=model.__name__) for model in ADMINS]
Model = type[models.Model]


def address(model: Model, page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def test_every_model_is_there() -> None:
    from django.apps import apps

    assert set(ADMINS) == {m for label in OURS for m in apps.get_app_config(label).get_models()}
    assert {m.__name__ for m, page in ADMINS.items() if not isinstance(page, ReadOnlyAdmin)} == EDITED


@pytest.fixture
def root(worked_once: Task) -> Client:
    """A superuser in the admin, within the module's transaction."""
    client = Client()
    client.force_login(ensure_user("root", superuser=True))
    return client


@pytest.mark.parametrize("model", MODELS)
def test_list_search_filters_and_row(root: Client, worked_once: Task, model: Model) -> None:
    listed = address(model, "changelist")
    answer = root.get(listed)
    assert answer.status_code == 200
    assert answer.context["cl"].result_count == model._default_manager.count() > 0
    for query in (
        {"q": "1"},
        {"q": "nothing like it"},
        {"q": "9" * 30},
        {"q": "9" * 5000},
        {"q": "%_\\"},
        {"o": "-1"},
        {"p": "99"},
    ):
        assert root.get(listed, query, follow=True).status_code == 200, query
    for spec in answer.context["cl"].filter_specs:
        for choice in list(spec.choices(answer.context["cl"]))[:3]:
            assert root.get(f"{listed}{choice.get('query_string', '')}").status_code == 200, choice
    row = model._default_manager.first()
    assert row is not None
    page = root.get(address(model, "change", row.pk))
    assert page.status_code == 200
    assert root.get(address(model, "history", row.pk), follow=True).status_code == 200


@pytest.mark.parametrize("model", [p for p in MODELS if p.id not in EDITED])
def test_what_the_system_writes_nobody_else_does(root: Client, worked_once: Task, model: Model) -> None:
    row = model._default_manager.order_by("pk").first()
    assert row is not None
    before = list(model._default_manager.order_by("pk").values())
    assert root.get(address(model, "add")).status_code == 403
    assert root.post(address(model, "add"), {}).status_code == 403
    assert root.post(address(model, "change", row.pk), {"status": "done"}).status_code == 403
    assert root.post(address(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert list(model._default_manager.order_by("pk").values()) == before


@pytest.mark.parametrize("model", MODELS)
def test_a_list_asks_as_much_of_the_database_for_many_rows_as_for_one(
    root: Client, worked_once: Task, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.get(address(model, "changelist"))

    def queries(size: int) -> int:
        monkeypatch.setattr(ADMINS[model], "list_per_page", size)
        with CaptureQueriesContext(connection) as seen:
            assert root.get(address(model, "changelist")).status_code == 200
        return len(seen)

    assert queries(1) == queries(100)


def test_the_lists_of_a_task_lead_to_its_rows(root: Client, worked_once: Task) -> None:
    page = root.get(address(Task, "change", worked_once.id)).text
    for model in ("workqueues/taskparams", "workqueues/dataset", "workqueues/file", "workqueues/taskchange", "brokerage/job"):
        found = root.get(f"/admin/{model}/?task_id={worked_once.id}")
        assert f"/admin/{model}/?task_id={worked_once.id}" in page
        assert found.context["cl"].result_count > 0, model


def test_a_large_table_is_counted_only_as_far_as_its_pages_reach(worked_once: Task) -> None:
    Task.objects.bulk_create(Task(vo="demo", status="registered") for _ in range(30))
    with CaptureQueriesContext(connection) as seen:
        assert CappedPaginator(Task.objects.order_by("-id"), 10).count >= 30
    assert f"LIMIT {MOST_COUNTED}" in seen[0]["sql"]


def test_the_admin_is_for_staff(worked_once: Task) -> None:
    assert "/login/" in Client().get(address(Task, "changelist"))["Location"]


@pytest.mark.parametrize("model", [p for p in MODELS if p.id in NAMED])
def test_a_whole_name_is_found_by_its_index(root: Client, model: Model) -> None:
    """Millions of rows are not read for one name: what is compared is the column itself."""
    with CaptureQueriesContext(connection) as seen:
        assert root.get(address(model, "changelist"), {"q": "no.such.name"}).status_code == 200
    asked = [query["sql"] for query in seen.captured_queries if "no.such.name" in query["sql"]]
    assert asked
    assert not [sql for sql in asked if "UPPER(" in sql]


def test_every_page_says_in_which_zone_its_times_are(root: Client) -> None:
    for page in (reverse("admin:index"), address(Task, "changelist")):
        assert "All times are UTC." in root.get(page).content.decode(), page


def test_the_list_of_task_queues_says_which_are_open(root: Client) -> None:
    assert '<td class="field-bound_to">open</td>' in root.get("/admin/brokerage/taskqueue/").content.decode()
