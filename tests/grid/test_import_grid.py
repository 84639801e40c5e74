"""`import_grid`: the tables follow the document, a second run changes nothing, a bad document changes nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from broker_site.access.models import Audit
from broker_site.embedded.instance import ROOT
from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint
from tests.grid.faults import FAULTS

pytestmark = pytest.mark.django_db

Write = Callable[[Any], str]


def run(file: str, *options: str) -> str:
    out = io.StringIO()
    call_command("import_grid", file, *options, stdout=out)
    return out.getvalue()


def grid() -> list[Any]:
    """Everything that an import writes."""
    return [
        list(Site.objects.order_by("name").values()),
        list(StorageEndpoint.objects.order_by("name").values()),
        list(ComputingQueue.objects.order_by("name").values()),
        list(QueueStorage.objects.order_by("id").values()),
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
