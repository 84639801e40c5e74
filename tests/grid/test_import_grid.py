"""`import_grid`: the tables follow the document, a second run changes nothing, a bad document changes nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from broker_site.foundation.access.models import Audit
from broker_site.roof.embedded.instance import ROOT
from brokerage.models import (
    ComputingQueue,
    DeclaredSlots,
    Link,
    Measured,
    QueueStorage,
    Site,
    Software,
    StorageEndpoint,
)
from tests.grid.faults import FAULTS

pytestmark = pytest.mark.django_db

Write = Callable[[Any], str]


def run(file: str, *options: str) -> str:
    out = io.StringIO()
    call_command("import_grid", file, *options, stdout=out)
    return out.getvalue()


def warned(file: str) -> str:
    """What an import says beside what it changed, after all else."""
    err = io.StringIO()
    call_command("import_grid", file, stdout=io.StringIO(), stderr=err)
    return err.getvalue()


def grid() -> list[Any]:
    """Everything that an import writes."""
    return [
        list(Site.objects.order_by("name").values()),
        list(StorageEndpoint.objects.order_by("name").values()),
        list(ComputingQueue.objects.order_by("name").values()),
        list(QueueStorage.objects.order_by("id").values()),
        *(list(model.objects.order_by("pk").values()) for model in (Link, Software, DeclaredSlots, Measured)),
    ]


def test_a_document_becomes_sites_storages_and_queues(good: dict[str, Any], written: Write) -> None:
    out = run(written(good), "--storage-root", "/srv/grid")
    assert out.splitlines()[-1] == "2 sites (2 added); 2 storage endpoints (2 added); 2 queues (2 added)"
    north = ComputingQueue.objects.get(name="NORTH")
    assert (north.site_id, north.corecount, north.corepower, north.maxrss, north.local_pilots) == ("NORTH", 8, 11.5, 16000, 2)
    assert north.attributes["tier"] == "T1"
    assert list(north.storages.order_by("access", "position").values_list("access", "storage_id", "position")) == [
        ("read_lan", "NORTH_DISK", 1),
        ("read_lan", "SOUTH_DISK", 2),
        ("write_lan", "NORTH_DISK", 1),
    ]
    assert dict(StorageEndpoint.objects.values_list("name", "path")) == {
        "NORTH_DISK": "/srv/grid/storage/north",
        "SOUTH_DISK": "/data/south",
    }


def test_a_second_run_changes_nothing(good: dict[str, Any], written: Write) -> None:
    file = written(good)
    run(file)
    before = grid()
    assert run(file).splitlines()[-1] == "2 sites (unchanged); 2 storage endpoints (unchanged); 2 queues (unchanged)"
    assert grid() == before
    assert Audit.objects.filter(act="grid.import").count() == 1


def test_what_changed_is_told_and_a_dry_run_only_tells_it(good: dict[str, Any], written: Write) -> None:
    run(written(good))
    before = grid()
    good["queues"]["NORTH"]["maxrss"] = 8000
    good["queues"]["NORTH"]["astorages"]["read_lan"] = ["NORTH_DISK"]
    good["queues"]["WEST"] = {"atlas_site": "SOUTH"}
    del good["queues"]["SOUTH"]
    file = written(good)
    lines = run(file, "--dry-run").splitlines()
    assert lines[:7] == [
        "+ queue WEST",
        "~ queue NORTH",
        "    maxrss: 16000 -> 8000",
        "    read_lan: ['NORTH_DISK', 'SOUTH_DISK'] -> ['NORTH_DISK']",
        "- queue SOUTH (no longer in the document)",
        "    status: 'online' -> 'offline'",
        "note: queues.NORTH.astorages.es_events: a role that is not used; kept among the attributes",
    ]
    assert lines[-1] == (
        "would change: 2 sites (unchanged); 2 storage endpoints (unchanged); 2 queues (1 added, 1 changed, 1 gone)"
    )
    assert grid() == before
    run(file)
    assert dict(ComputingQueue.objects.values_list("name", "status")) == {"NORTH": "online", "SOUTH": "offline", "WEST": "online"}
    assert "unchanged" in run(file)


def test_a_queue_that_comes_back_is_used_again(good: dict[str, Any], written: Write) -> None:
    run(written(good))
    number = ComputingQueue.objects.get(name="SOUTH").id
    run(written({**good, "queues": {"NORTH": good["queues"]["NORTH"]}}))
    run(written(good))
    assert ComputingQueue.objects.filter(name="SOUTH", status="online").values_list("id", flat=True).get() == number


def test_sites_and_storages_that_are_gone_are_no_longer_active(good: dict[str, Any], written: Write) -> None:
    run(written(good))
    for part, name in (("sites", "SOUTH"), ("storages", "SOUTH_DISK"), ("queues", "SOUTH")):
        del good[part][name]
    good["queues"]["NORTH"]["astorages"]["read_lan"] = ["NORTH_DISK"]
    run(written(good))
    assert (Site.objects.get(name="SOUTH").state, StorageEndpoint.objects.get(name="SOUTH_DISK").state) == ("INACTIVE",) * 2


@pytest.mark.parametrize(("change", "path", "rule"), FAULTS, ids=[f"{path[:40]}-{rule}" for _, path, rule in FAULTS])
def test_a_bad_document_changes_nothing_and_names_path_and_rule(
    good: dict[str, Any], written: Write, change: Any, path: str, rule: str
) -> None:
    run(written(good))
    before = grid()
    good["queues"]["NORTH"]["maxwdir"] = 77
    change(good)
    with pytest.raises(CommandError) as refused:
        run(written(good))
    assert f"\n{path}: {rule}: " in str(refused.value)
    assert grid() == before


def test_a_name_that_stands_twice_is_refused(written: Write) -> None:
    text = '{"format": "gridbroker-grid/1", "sites": {"A": {}, "A": {"nucleus": true}}, "queues": {}}'
    with pytest.raises(CommandError, match=r"sites\.A: duplicate: "):
        run(written(text))
    assert not Site.objects.exists()


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        run(str(tmp_path / "none.json"))


def test_relative_storage_paths_lie_below_the_folder_of_the_instance(good: dict[str, Any], written: Write) -> None:
    run(written(good))
    path = StorageEndpoint.objects.get(name="NORTH_DISK").path
    assert path.startswith(str(ROOT / ".gridbroker"))
    assert path.endswith("/storage/north")


def test_the_grid_of_the_demo_can_be_imported_again_and_again() -> None:
    file = str(ROOT / "examples" / "grids" / "demo.json")
    run(file)
    assert ComputingQueue.objects.filter(status="online", local_pilots__gt=0).count() >= 3
    assert "unchanged" in run(file)


@pytest.fixture
def full(good: dict[str, Any]) -> dict[str, Any]:
    """The good document with everything that is measured, declared and published."""
    return good | {
        "links": [
            {"from": "NORTH", "to": "SOUTH", "files_queued": "7", "mbps": {"1h": 80, "1w": 60.5}, "at": "2026-05-04T08:00:00Z"},
            {"from": "SOUTH", "to": "NORTH", "activity": "closeness", "closeness": 3},
        ],
        "slots": [{"queue": "NORTH", "share": "Production", "n": 40, "expires": "2026-06-01"}],
        "measured": [{"queue": "NORTH", "disk_io_per_core": 120.5}],
        "software": {"NORTH": {"cvmfs": ["atlas"]}, "ALL": {"tags": [{"container_name": "img", "sources": ["/cvmfs/img"]}]}},
    }


def test_links_slots_measurements_and_software_are_stored(full: dict[str, Any], written: Write) -> None:
    file = written(full)
    out = run(file).splitlines()[-1]
    assert out.endswith(
        "2 links (2 added); 1 declared slot (1 added); 1 measured queue (1 added); 2 software documents (2 added)"
    )
    link = Link.objects.get(source="NORTH")
    assert (link.destination_id, link.activity, link.files_queued, link.mbps_1h, link.mbps_1d, link.mbps_1w) == (
        *("SOUTH", "Production Output", 7, 80, None, 60.5),
    )
    assert str(link.measured_at) == "2026-05-04 08:00:00+00:00"
    slots = DeclaredSlots.objects.get()
    assert (slots.queue.name, slots.share, slots.resource_type, slots.n) == ("NORTH", "Production", "", 40)
    assert Measured.objects.get().disk_io_per_core == 120.5
    assert dict(Software.objects.values_list("queue", "document")) == full["software"]
    before = grid()
    assert run(file).count("unchanged") == 7
    assert grid() == before


def test_what_a_part_no_longer_says_is_removed_and_a_missing_part_is_left_alone(full: dict[str, Any], written: Write) -> None:
    run(written(full))
    full["links"][0]["files_queued"] = 9
    del full["links"][1], full["slots"], full["measured"]
    full["software"] = {}
    lines = run(written(full), "--dry-run").splitlines()
    assert [line for line in lines if not line.startswith("note")][:5] == [
        "~ link NORTH to SOUTH: Production Output",
        "    files_queued: 7 -> 9",
        "- link SOUTH to NORTH: closeness (no longer in the document)",
        "- software ALL (no longer in the document)",
        "- software NORTH (no longer in the document)",
    ]
    run(written(full))
    assert (Link.objects.count(), Software.objects.count(), DeclaredSlots.objects.count(), Measured.objects.count()) == (
        1,
        0,
        1,
        1,
    )


def test_attributes_that_nobody_knows_are_kept(good: dict[str, Any], written: Write) -> None:
    good["sites"]["NORTH"]["tier_level"] = 1
    good["storages"]["NORTH_DISK"]["token"] = "DATADISK"
    assert "note: sites.NORTH.tier_level: not known; kept among the attributes" in run(written(good)).splitlines()
    assert Site.objects.get(name="NORTH").attributes == {"tier_level": 1}
    assert StorageEndpoint.objects.get(name="NORTH_DISK").attributes == {"token": "DATADISK"}


def test_an_attribute_of_a_queue_that_looks_misspelt_is_noted(good: dict[str, Any], written: Write) -> None:
    good["queues"]["SOUTH"] |= {"staus": "offline", "tier_level": 1}
    notes = [line for line in run(written(good)).splitlines() if "not known" in line]
    assert notes == ["note: queues.SOUTH.staus: not known; kept among the attributes; the nearest known one is status"]
    assert ComputingQueue.objects.get(name="SOUTH").attributes["staus"] == "offline"


def test_the_last_line_counts_and_names_what_is_not_known(good: dict[str, Any], written: Write) -> None:
    good["queues"]["SOUTH"] |= {"cpu_core_count": 8, "tier": "T2"}
    good["sites"]["NORTH"]["nucleous"] = True
    assert warned(written(good)) == (
        "3 attributes are not known; kept as they came, nothing goes by them: cpu_core_count of 1 queue (the nearest known one "
        "is corecount), nucleous of 1 site (the nearest known one is nucleus), tier of 2 queues\n"
    )
    assert ComputingQueue.objects.get(name="SOUTH").corecount == 0
    for queue in good["queues"].values():
        queue |= {f"of_ours_{n}": n for n in range(30)}
    assert warned(written(good)).endswith(", 13 more\n")


def test_a_document_of_known_attributes_warns_of_nothing(good: dict[str, Any], written: Write) -> None:
    del good["queues"]["NORTH"]["tier"]
    assert warned(written(good)) == ""


def test_what_a_document_does_not_have_stays_where_a_feed_has_it(good: dict[str, Any], written: Write) -> None:
    run(written(good))
    ComputingQueue.objects.filter(name="SOUTH").update(source="cric")
    del good["queues"]["SOUTH"]
    run(written(good))
    assert ComputingQueue.objects.get(name="SOUTH").status == "online"
