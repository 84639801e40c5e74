"""Operators set attributes of the grid by hand: the rules hold, imports and feeds do not undo it, everybody sees it."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from broker_site.foundation.access.models import Audit
from broker_site.foundation.kernel import clock
from brokerage.ledger.grid_overrides import end_expired
from brokerage.models import ComputingQueue, LocalOverride, Site, StorageEndpoint
from tests.grid.conftest import GOOD

ADD = "/admin/brokerage/localoverride/add/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """The grid of the document, imported."""
    found: dict[str, Any] = json.loads(json.dumps(GOOD))
    found["queues"]["NORTH"]["maxdiskio"] = 900
    again(found, tmp_path)
    return found


def again(document: dict[str, Any], folder: Path) -> str:
    """Import the document as it is now: the summary."""
    file = folder / "grid.json"
    file.write_text(json.dumps(document))
    out = io.StringIO()
    call_command("import_grid", str(file), stdout=out)
    return out.getvalue().splitlines()[-1]


def override(
    root: Client, attribute: str, value: str, kind: str = "queue", name: str = "NORTH", **more: Any
) -> dict[str, list[str]]:
    """Set one; the faults that are told, by field."""
    form = {"kind": kind, "name": name, "attribute": attribute, "value": value, "reason": "water leak", **more}
    answer = root.post(ADD, form)
    return {} if answer.status_code == 302 else dict(answer.context["adminform"].form.errors)


def remove_all(root: Client) -> None:
    for row in LocalOverride.objects.all():
        root.post(f"/admin/brokerage/localoverride/{row.pk}/delete/", {"post": "yes"})


def north() -> ComputingQueue:
    return ComputingQueue.objects.get(name="NORTH")


def test_an_override_wins_at_once_and_over_every_import_until_it_is_removed(
    root: Client, document: dict[str, Any], tmp_path: Path
) -> None:
    assert override(root, "maxrss", "9000") == {}
    assert override(root, "maxdiskio", "100") == {}
    assert override(root, "status", "brokeroff") == {}
    assert (north().maxrss, north().attributes["maxdiskio"], north().status) == (9000, 100, "brokeroff")
    assert "2 queues (unchanged)" in again(document, tmp_path)
    document["queues"]["NORTH"] |= {"maxrss": 20000, "maxdiskio": 950, "maxtime": 77}
    assert "2 queues (1 changed)" in again(document, tmp_path)
    assert (north().maxrss, north().attributes["maxdiskio"], north().maxtime) == (9000, 100, 77)
    beneath = dict(LocalOverride.objects.values_list("attribute", "beneath"))
    assert beneath == {"maxrss": 20000, "maxdiskio": 950, "status": "online"}
    remove_all(root)
    assert (north().maxrss, north().attributes["maxdiskio"], north().status) == (20000, 950, "online")
    assert "unchanged" in again(document, tmp_path)


def test_every_way_to_switch_a_queue_notes_since_when_it_is_so(root: Client, document: dict[str, Any], tmp_path: Path) -> None:
    times = [north().status_since]

    def switched() -> bool:
        times.append(north().status_since)
        return times[-1] > times[-2]

    assert override(root, "maxrss", "9000") == {}
    assert not switched()
    assert override(root, "status", "offline") == {}
    assert switched()
    document["queues"]["NORTH"]["maxtime"] = 77
    again(document, tmp_path)
    assert not switched()
    remove_all(root)
    assert switched()
    document["queues"]["NORTH"]["status"] = "brokeroff"
    again(document, tmp_path)
    assert switched()
    del document["queues"]["NORTH"]
    again(document, tmp_path)
    assert (north().status, switched()) == ("offline", True)


def test_an_override_of_what_the_document_does_not_say_leaves_nothing_behind(root: Client, document: dict[str, Any]) -> None:
    assert override(root, "direct_access_lan", "yes") == {}
    assert override(root, "releases", "Athena-1.0, AUTO") == {}
    assert north().attributes["direct_access_lan"] is True
    assert north().attributes["releases"] == ["Athena-1.0", "AUTO"]
    remove_all(root)
    assert "direct_access_lan" not in north().attributes
    assert north().attributes["releases"] == ["ANY"]


def test_sites_and_storages_have_overrides_too_and_a_gone_row_keeps_them(
    root: Client, document: dict[str, Any], tmp_path: Path
) -> None:
    assert override(root, "nucleus", "false", "site") == {}
    assert override(root, "status", '{"write_lan": "OFF"}', "storage", "SOUTH_DISK") == {}
    again(document, tmp_path)
    assert Site.objects.get(name="NORTH").nucleus is False
    assert StorageEndpoint.objects.get(name="SOUTH_DISK").status == {"write_lan": "OFF"}
    del document["queues"]["SOUTH"], document["storages"]["SOUTH_DISK"]
    document["queues"]["NORTH"]["astorages"]["read_lan"] = ["NORTH_DISK"]
    again(document, tmp_path)
    gone = StorageEndpoint.objects.get(name="SOUTH_DISK")
    assert (gone.state, gone.status) == ("INACTIVE", {"write_lan": "OFF"})


@pytest.mark.parametrize(
    ("attribute", "value", "field", "rule"),
    [
        ("maxrs", "1", "attribute", "unknown: a queue has no attribute the text 'maxrs'; the nearest is maxrss"),
        ("params", '{"a": "\\u0000"}', "value", "characters: "),
        ("params", '{"a": NaN}', "value", "range: expected a finite number"),
        ("params", '{"a": "\\ud800"}', "value", "characters: "),
        ("releases", '["\\u0000"]', "value", "characters: "),
        ("maxrss", "plenty", "value", "type: expected a number"),
        ("maxrss", "-1", "value", "range: expected 0 to"),
        ("maxrss", "1.5", "value", "type: expected a whole number"),
        ("status", "onlnie", "value", "choice: expected one of online"),
        ("direct_access_lan", "maybe", "value", "type: expected true or false"),
        ("params", "[1]", "value", "type: expected an object"),
        ("params", "{", "value", "json: expected a JSON object"),
        ("catchall", "x" * 1025, "value", "length: 1025 characters"),
        ("jobseed", "none", "value", "choice: "),
    ],
)
def test_a_wrong_attribute_or_value_is_refused_with_the_rule(
    root: Client, document: dict[str, Any], attribute: str, value: str, field: str, rule: str
) -> None:
    assert override(root, attribute, value)[field][0].startswith(rule)
    assert not LocalOverride.objects.exists()


def test_what_is_not_there_or_over_or_twice_is_refused(root: Client, document: dict[str, Any]) -> None:
    assert override(root, "maxrss", "1", name="MARS") == {"name": ["there is no queue MARS"]}
    assert "reason" in override(root, "maxrss", "1", reason="")
    assert "until" in override(root, "maxrss", "1", until_0="2020-01-01", until_1="00:00")
    assert override(root, "status", '{"read": "OFF"}', "storage", "NORTH_DISK")["value"][0].startswith("unknown: read: ")
    assert override(root, "path", "here", "storage", "NORTH_DISK")["value"][0].startswith("format: ")
    assert override(root, "maxrss", "1") == {}
    assert override(root, "maxrss", "2")
    assert north().maxrss == 1


def test_an_override_is_changed_and_every_step_is_audited(root: Client, document: dict[str, Any]) -> None:
    override(root, "maxrss", "9000")
    row = LocalOverride.objects.get()
    page = f"/admin/brokerage/localoverride/{row.pk}/change/"
    refused = root.post(page, {"value": "-1", "reason": "less"})
    assert "value" in refused.context["adminform"].form.errors
    assert root.post(page, {"value": "8000", "reason": "less"}).status_code == 302
    row.refresh_from_db()
    assert (north().maxrss, row.who, row.beneath) == (8000, "root", 16000)
    remove_all(root)
    acts = Audit.objects.filter(act__startswith="localoverride.").order_by("id")
    assert [(a.act, a.who) for a in acts] == [(f"localoverride.{verb}", "root") for verb in ("add", "change", "delete")]
    assert acts[1].before == {"value": "9000", "reason": "water leak"}


def test_an_override_ends_when_its_time_is_over(root: Client, document: dict[str, Any]) -> None:
    until = clock.now() + timedelta(hours=1)
    assert override(root, "maxrss", "9000", until_0=f"{until:%Y-%m-%d}", until_1=f"{until:%H:%M:%S}") == {}
    assert end_expired(until - timedelta(minutes=1)) == 0
    assert north().maxrss == 9000
    assert end_expired(until + timedelta(seconds=1)) == 1
    assert north().maxrss == 16000
    assert Audit.objects.filter(act="localoverride.expire").exists()


def test_overridden_attributes_are_marked_on_the_form_of_the_queue_and_not_changed_there(
    root: Client, document: dict[str, Any]
) -> None:
    override(root, "maxrss", "9000")
    override(root, "maxdiskio", "100")
    page = f"/admin/brokerage/computingqueue/{north().pk}/change/"
    shown = root.get(page)
    assert "maxrss = 9000" in shown.text
    assert "the document says 16000; root" in shown.text
    assert "water leak" in shown.text
    assert "maxrss" not in shown.context["adminform"].form.fields
    form = {name: value for name, value in shown.context["adminform"].form.initial.items() if value is not None}
    links = {"storages-TOTAL_FORMS": 0, "storages-INITIAL_FORMS": 0}
    refused = root.post(page, form | links | {"attributes": json.dumps(north().attributes | {"maxdiskio": 500})})
    assert refused.context["adminform"].form.errors["attributes"] == ["maxdiskio: is overridden; change the override"]
