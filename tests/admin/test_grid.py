"""The grid is edited in the admin: what a grid document may not say is refused beside its field, each edit is audited."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.models import Audit
from brokerage.models import ComputingQueue, GridRevision, QueueStorage, Site, StorageEndpoint
from brokerage.rules.grid.attributes import QUEUE as ATTRIBUTES
from tests.builders import grid

QUEUE = "/admin/brokerage/computingqueue/"
STORAGE = "/admin/brokerage/storageendpoint/"

pytestmark = pytest.mark.django_db


def queue_form(queue: ComputingQueue, **changes: Any) -> dict[str, Any]:
    """The form as the page of the queue has it, with changes."""
    form = {name: "" if (value := getattr(queue, name)) is None else value for name in ATTRIBUTES} | {
        "site": queue.site_id,
        "attributes": "{}",
        "initial-attributes": "{}",
    }
    links = list(queue.storages.all())
    form |= {"storages-TOTAL_FORMS": len(links), "storages-INITIAL_FORMS": len(links)}
    for i, link in enumerate(links):
        form |= {
            f"storages-{i}-id": link.id,
            f"storages-{i}-queue": queue.id,
            f"storages-{i}-storage": link.storage_id,
            f"storages-{i}-access": link.access,
            f"storages-{i}-position": link.position,
        }
    return form | changes


def errors(answer: Any) -> dict[str, list[str]]:
    """Field to its faults; empty when the form was taken."""
    if answer.status_code == 302:
        return {}
    found = dict(answer.context["adminform"].form.errors)
    for inline in answer.context["inline_admin_formsets"]:
        for fault in inline.formset.errors:
            found |= fault
    return found


def test_a_queue_is_changed_and_the_change_is_audited(root: Client) -> None:
    (queue,) = grid("ALPHA")
    before, since = queue.modified_at, queue.status_since
    answer = root.post(f"{QUEUE}{queue.id}/change/", queue_form(queue, status="brokeroff", maxrss=16000))
    assert errors(answer) == {}
    queue.refresh_from_db()
    assert (queue.status, queue.maxrss) == ("brokeroff", 16000)
    assert queue.modified_at > before
    assert queue.status_since > since
    row = Audit.objects.get(act="computingqueue.change")
    assert (row.before, row.after) == ({"status": "online", "maxrss": 8000}, {"status": "brokeroff", "maxrss": 16000})


def test_an_edit_is_another_grid_for_tasks_that_wait(root: Client) -> None:
    (queue,) = grid("ALPHA")
    form = queue_form(queue, **{"storages-0-DELETE": "on"})
    for path, data in (
        (f"{QUEUE}{queue.id}/change/", queue_form(queue, maxrss=16000)),
        ("/admin/brokerage/declaredslots/add/", {"queue": queue.id, "share": "", "resource_type": "", "n": 8}),
        (f"{QUEUE}{queue.id}/change/", form),
    ):
        before = GridRevision.objects.values_list("number", flat=True).first() or 0
        assert errors(root.post(path, data)) == {}
        assert GridRevision.objects.get().number > before, path


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"maxrss": -1}, "maxrss"),
        ({"maxrss": 10**10}, "maxrss"),
        ({"corecount": -2}, "corecount"),
        ({"local_pilots": 51}, "local_pilots"),
        ({"status": "onlnie"}, "status"),
        ({"type": "both"}, "type"),
        ({"site": "NOWHERE"}, "site"),
        ({"attributes": "[1]"}, "attributes"),
        ({"attributes": "{"}, "attributes"),
        ({"attributes": '{"transtimehi": "soon"}'}, "attributes"),
        ({"storages-0-access": "read_tape"}, "access"),
        ({"storages-0-position": 0}, "position"),
        ({"storages-0-storage": "NOWHERE"}, "storage"),
    ],
)
def test_what_breaks_a_rule_is_refused_beside_its_field(root: Client, changes: dict[str, Any], field: str) -> None:
    (queue,) = grid("ALPHA")
    assert field in errors(root.post(f"{QUEUE}{queue.id}/change/", queue_form(queue, **changes)))
    assert not Audit.objects.filter(object__contains="ALPHA").exists()


def test_a_queue_is_added_with_a_good_name_and_keeps_it(root: Client) -> None:
    (queue,) = grid("ALPHA")
    empty = {"storages-TOTAL_FORMS": 0, "storages-INITIAL_FORMS": 0}
    assert "name" in errors(root.post(f"{QUEUE}add/", queue_form(queue, name="NEW/MCORE") | empty))
    assert errors(root.post(f"{QUEUE}add/", queue_form(queue, name="NEW") | empty)) == {}
    new = ComputingQueue.objects.get(name="NEW")
    root.post(f"{QUEUE}{new.id}/change/", queue_form(new, name="OTHER"))
    assert ComputingQueue.objects.filter(name="NEW").exists()


def test_a_storage_endpoint_is_held_to_the_rules_too(root: Client) -> None:
    grid("ALPHA")
    form = {
        "site": "SITE_ALPHA",
        "type": "DATADISK",
        "state": "ACTIVE",
        "free_gb": 10,
        "status": '{"read_lan": "ON"}',
        "path": "",
    }
    address = f"{STORAGE}ALPHA_DISK/change/"
    for changes, field in (
        ({"free_gb": -1}, "free_gb"),
        ({"status": '{"read_lan": "YES"}'}, "status"),
        ({"status": '{"raed": "ON"}'}, "status"),
        ({"path": "here"}, "path"),
        ({"path": "/srv/../etc"}, "path"),
    ):
        assert field in errors(root.post(address, form | changes)), changes
    assert errors(root.post(address, form)) == {}
    assert StorageEndpoint.objects.get(name="ALPHA_DISK").free_gb == 10


def test_a_queue_with_jobs_behind_it_is_not_deleted(root: Client, worked: Any) -> None:
    queue = ComputingQueue.objects.get(name="ALPHA")
    answer = root.post(f"{QUEUE}{queue.id}/delete/", {"post": "yes"})
    assert answer.status_code in (200, 403)
    assert ComputingQueue.objects.filter(name="ALPHA").exists()


def test_a_site_is_added_and_removed_with_an_audit_of_each(root: Client) -> None:
    assert root.post("/admin/brokerage/site/add/", {"name": "NEW", "state": "ACTIVE"}).status_code == 302
    assert root.post("/admin/brokerage/site/NEW/delete/", {"post": "yes"}).status_code == 302
    assert not Site.objects.filter(name="NEW").exists()
    acts = Audit.objects.filter(object="site NEW NEW").order_by("id").values_list("act", flat=True)
    assert list(acts) == ["site.add", "site.delete"]


def test_the_links_of_a_queue_are_edited_on_its_page(root: Client) -> None:
    alpha, _ = grid("ALPHA", "BETA")
    changes = {"storages-0-storage": "BETA_DISK"}
    assert errors(root.post(f"{QUEUE}{alpha.id}/change/", queue_form(alpha, **changes))) == {}
    assert QueueStorage.objects.filter(queue=alpha, storage_id="BETA_DISK").count() == 1
    assert Audit.objects.filter(act="queuestorage.change").exists()


def test_links_software_slots_and_measurements_are_held_to_the_rules_too(root: Client) -> None:
    (queue,) = grid("ALPHA")
    site = queue.site_id
    for model, form, field, good in (
        ("link", {"source": site, "destination": site, "activity": "a", "files_queued": -1}, "files_queued", 0),
        ("link", {"source": site, "destination": site, "activity": "b", "files_queued": 0, "closeness": 12}, "closeness", 11),
        ("link", {"source": site, "destination": site, "activity": "c", "files_queued": 0, "mbps_1d": -0.1}, "mbps_1d", 0),
        ("software", {"queue": "MARS", "document": '{"cvmfs": []}'}, "queue", "ALPHA"),
        ("software", {"queue": "ALL", "document": '{"cvmfs": "atlas"}'}, "document", '{"cvmfs": ["atlas"]}'),
        ("declaredslots", {"queue": queue.id, "n": 10**10}, "n", 7),
        ("measured", {"queue": queue.id, "disk_io_per_core": -1}, "disk_io_per_core", 1),
    ):
        address = f"/admin/brokerage/{model}/add/"
        assert field in errors(root.post(address, form)), (model, field)
        assert errors(root.post(address, form | {field: good})) == {}, (model, field)
    assert Audit.objects.filter(act__in=("link.add", "software.add", "declaredslots.add", "measured.add")).count() == 7
