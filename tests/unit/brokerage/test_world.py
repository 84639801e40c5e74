"""What a grid document says of a task: jobs of its share, the way to its nucleus, its input, its user."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import Any

import pytest

from brokerage.rules.facts.ask import Ask, Chunk, ChunkDataset, Usage
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.grid.document import BadGrid, read_grid
from brokerage.rules.grid.measurements import read_facts
from brokerage.rules.world.grid_snapshot import GridSnapshot

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def storage(site: str, **more: Any) -> dict[str, Any]:
    return {"site": site, "free_gb": 1000, "expired_gb": 50, **more}


def queue(site: str, *disks: str, **more: Any) -> dict[str, Any]:
    return {"atlas_site": site, "astorages": {"read_lan": list(disks), "write_lan": list(disks)}, **more}


def document(**parts: Any) -> dict[str, Any]:
    """Three sites: A is a nucleus, B has a queue for each of two storages, C shares the storage of A."""
    return {
        "format": "gridbroker-grid/1",
        "sites": {"A": {"nucleus": True}, "B": {}, "C": {}},
        "storages": {
            "A_DISK": storage("A"),
            "A_TAPE": storage("A", is_tape=True, type="DATATAPE"),
            "B_DISK": storage("B"),
            "B_OLD": storage("B", state="DISABLED"),
        },
        "queues": {
            "A1": queue("A", "A_DISK", "A_TAPE"),
            "B1": queue("B", "B_DISK"),
            "B2": queue("B", "B_OLD", "B_DISK", capability="ucore", corecount=8),
            "C1": queue("C", "A_DISK"),
        },
        **parts,
    }


def world(scope: str = "", **parts: Any) -> GridSnapshot:
    whole = document(**parts)
    grid = read_grid(whole)
    return GridSnapshot(grid, read_facts(whole, grid), NOW, scope)


def jobs(queue: str, status: str, n: int, **more: Any) -> dict[str, Any]:
    return {"queue": queue, "status": status, "n": n, **more}


def column(table: Any, name: str) -> dict[str, Any]:
    return dict(zip(table.name.tolist(), getattr(table, name).tolist(), strict=True))


def test_jobs_of_the_share_count_and_those_of_others_apart() -> None:
    counted = [
        jobs("B2", "running", 5, share="MC"),
        jobs("B2", "sent", 2, share="MC"),
        jobs("B2", "starting", 1, share="MC"),
        jobs("B2", "running", 7, share="Group"),
        jobs("B2", "activated", 3, share="Group"),
        jobs("B2", "defined", 9, share="Group"),
        jobs("B2", "transferring", 4, share="Group"),
        jobs("B2", "finished", 99, share="MC"),
    ]
    table = world(jobs=counted).queues(Ask(share="MC"))
    row = table.row(table.index["B2/MCORE"])
    assert (row["running"], row["starting"], row["activated"], row["defined"]) == (5, 3, 0, 0)
    assert (row["others_running"], row["others_waiting"], row["transferring"]) == (7, 3, 4)
    assert table.row(table.index["B2/SCORE"])["running"] == 5
    everyone = world(jobs=counted).queues(Ask(share="MC"), per_share=False)
    assert (column(everyone, "running")["B2/MCORE"], column(everyone, "others_running")["B2/MCORE"]) == (12, 0)


def test_what_waits_for_a_nucleus_that_cannot_take_it_does_not_count_as_transferring() -> None:
    parts = document()
    parts["storages"]["A_DISK"]["status"] = {"write_wan": "OFF"}
    found = world(storages=parts["storages"], jobs=[jobs("B1", "transferring", 4, nucleus="A"), jobs("B1", "transferring", 2)])
    table = found.queues(Ask(nucleus="A"))
    assert column(table, "transferring")["B1"] == 2
    assert not table.nucleus_ok.any()


@pytest.mark.parametrize(
    ("slot", "declared"),
    [
        ({"share": "MC", "resource_type": "MCORE"}, 30),
        ({"share": "ANY", "resource_type": ""}, 30),
        ({"share": "Group"}, -1),
        ({"share": "MC", "resource_type": "SCORE"}, -1),
        ({"share": "MC", "expires": "2026-03-01T12:00:01Z"}, 30),
        ({"share": "MC", "expires": "2026-03-01T12:00:00Z"}, -1),
    ],
)
def test_slots_count_for_their_share_and_class_until_they_expire(slot: dict[str, Any], declared: int) -> None:
    table = world(slots=[{"queue": "B1", "n": 30, **slot}]).queues(Ask(share="MC", resource_type="MCORE"))
    assert column(table, "num_slots") == {"A1": -1, "B1": declared, "C1": -1} | {
        name: -1 for name in table.name.tolist() if name.startswith("B2")
    }


def test_all_slots_declared_for_a_queue_add_up() -> None:
    slots = [
        {"queue": "B1", "n": 30, "share": "MC"},
        {"queue": "B1", "n": 12, "resource_type": "MCORE"},
        {"queue": "B1", "n": 5, "share": "Group"},
        {"queue": "A1", "n": 0},
    ]
    found = world(slots=slots)
    assert column(found.queues(Ask(share="MC", resource_type="MCORE")), "num_slots")["B1"] == 42
    assert column(found.queues(Ask(share="MC", resource_type="SCORE")), "num_slots")["B1"] == 30
    assert column(found.queues(Ask(share="MC")), "num_slots")["A1"] == 0
    assert column(found.queues(Ask(), per_share=False), "num_slots")["B1"] == 47


def test_the_way_to_the_nucleus() -> None:
    links = [
        {"from": "B", "to": "A", "files_queued": 12, "mbps": {"1h": None, "1d": 40}, "closeness": 3},
        {"from": "B", "to": "A", "activity": "Express", "files_queued": 2},
        {"from": "B", "to": "A", "activity": "Production Input", "files_queued": 99},
        {"from": "A", "to": "B", "files_queued": 50},
    ]
    found = world(links=links)
    table = found.queues(Ask(nucleus="A"))
    b1 = table.row(table.index["B1"])
    assert (b1["link_files"], b1["mbps"], b1["closeness"], b1["nucleus_files"]) == (12, 40.0, 3.0, 14)
    assert column(table, "at_nucleus") == {name: name in ("A1", "C1") for name in table.name.tolist()}
    urgent = found.queues(Ask(nucleus="A", priority=1000))
    assert column(urgent, "link_files")["B1"] == 2
    unknown = world().queues(Ask(nucleus="A"))
    assert isnan(column(unknown, "mbps")["B1"])
    assert isnan(column(unknown, "closeness")["B1"])
    free = found.queues(Ask())
    assert not free.at_nucleus.any()


@pytest.mark.parametrize(
    ("hours", "files", "mbps"), [(1, 12, 85.0), (2, 0, 40.0), (24, 0, 40.0), (25, 0, 7.0), (168, 0, 7.0), (169, 0, None)]
)
def test_a_link_is_used_by_how_old_its_numbers_are(hours: int, files: int, mbps: float | None) -> None:
    at = (NOW - timedelta(hours=hours)).isoformat()
    links = [{"from": "B", "to": "A", "files_queued": 12, "mbps": {"1h": 85, "1d": 40, "1w": 7}, "at": at}]
    table = world(links=links).queues(Ask(nucleus="A"))
    assert column(table, "link_files")["B1"] == column(table, "nucleus_files")["B1"] == files
    assert column(world(links=links).nuclei(Ask()), "files_queued") == {"A": files}
    assert column(table, "mbps")["B1"] == pytest.approx(mbps, nan_ok=True) if mbps else isnan(column(table, "mbps")["B1"])


def test_the_freshest_throughput_of_a_link_counts_whatever_it_was_measured_for() -> None:
    links = [
        {"from": "B", "to": "A", "activity": "Express", "mbps": {"1h": 85}},
        {"from": "B", "to": "A", "mbps": {"1w": 7}, "at": (NOW - timedelta(hours=30)).isoformat()},
    ]
    assert column(world(links=links).queues(Ask(nucleus="A")), "mbps")["B1"] == 85


def chunk(*datasets: tuple[str, int, float]) -> Chunk:
    made = tuple(ChunkDataset(name, True, files, gb) for name, files, gb in datasets)
    return Chunk(files=sum(d.files for d in made), gb=sum(d.gb for d in made), datasets=made)


def test_what_input_is_where() -> None:
    replicas = [
        {"dataset": "d", "storage": "A_DISK", "files": 100, "gb": 200.0},
        {"dataset": "d", "storage": "B_DISK", "files": 1, "gb": 2.0},
        {"dataset": "e", "storage": "A_TAPE", "files": 9, "gb": 9.0},
        {"dataset": "e", "storage": "B_OLD", "files": 9, "gb": 9.0},
    ]
    table = world(replicas=replicas).queues(Ask(chunk=chunk(("d", 2, 4.0), ("e", 3, 3.0))))
    a1, b1, c1 = (table.row(table.index[name]) for name in ("A1", "B1", "C1"))
    shown = ("available_gb", "missing_files", "tape_gb", "tape_files", "whole_datasets")
    assert [a1[name] for name in shown] == [4.0, 3, 3.0, 3, 1]
    assert [b1[name] for name in shown] == [2.0, 4, 0.0, 0, 0]
    assert [c1[name] for name in shown] == [4.0, 3, 0.0, 0, 1]
    assert table.source_ok.all()


def test_input_that_nobody_can_send_is_only_where_it_is() -> None:
    parts = document()
    parts["storages"]["A_DISK"]["status"] = {"read_wan": "TEST"}
    found = world(storages=parts["storages"], replicas=[{"dataset": "d", "storage": "A_DISK", "files": 2}])
    table = found.queues(Ask(chunk=chunk(("d", 2, 4.0))))
    assert column(table, "source_ok") == {name: name in ("A1", "C1") for name in table.name.tolist()}
    assert found.queues(Ask(chunk=chunk(("other", 2, 4.0)))).source_ok.all()


def test_a_chunk_of_unknown_datasets_is_missing_everywhere_and_no_input_nowhere() -> None:
    assert set(world().queues(Ask(chunk=Chunk(files=3, gb=1.0))).missing_files.tolist()) == {3}
    assert set(world().queues(Ask()).missing_files.tolist()) == {0}


def test_jobs_of_the_task_and_of_its_user() -> None:
    found = world(
        jobs=[
            jobs("B1", "failed", 4, task_id=7),
            jobs("B1", "closed", 1, task_id=7),
            jobs("B1", "finished", 2, task_id=7),
            jobs("B1", "failed", 9, task_id=8),
            jobs("B1", "running", 3, share="Analysis", user="ann"),
            jobs("B1", "activated", 5, share="Analysis", user="ann"),
            jobs("B1", "activated", 6, share="Analysis", user="bob"),
            jobs("B1", "activated", 60, share="Group", user="ann"),
        ],
        measured=[{"queue": "B1", "starts_per_hour": 12, "disk_io_per_core": 80}],
    )
    table = found.queues(Ask(task_id=7, user="ann", share="Analysis"))
    row = table.row(table.index["B1"])
    assert (row["task_failed"], row["task_closed"], row["task_finished"]) == (4, 1, 2)
    assert (row["user_running"], row["user_queued"], row["n_users"], row["starts_per_hour"]) == (3, 5, 2, 12.0)
    assert row["disk_io"] == 80.0


def test_storages_of_a_queue() -> None:
    parts = document()
    parts["storages"]["A_LOCAL"] = storage("A", free_gb=7, expired_gb=None, status={"write_lan": "OFF"})
    parts["queues"]["A1"]["astorages"]["write_lan_analysis"] = ["A_LOCAL"]
    for scope, name, space, up in (("", "A_DISK", 1050.0, True), ("analysis", "A_LOCAL", 7.0, False)):
        table = world(scope, storages=parts["storages"], queues=parts["queues"]).queues(Ask())
        row = table.row(table.index["A1"])
        assert (row["storage"], row["space_gb"], row["write_lan_ok"], row["read_lan_ok"]) == (name, space, up, True)
    b2 = world().queues(Ask())
    assert column(b2, "storage")["B2/SCORE"] == "B_DISK"


def test_attributes_and_switches_of_a_queue() -> None:
    parts = document()
    parts["queues"]["B1"] |= {
        "catchall": "gpu,allow_no_pilot, allowed_processing=simul|reco,use_only_local_data=False,per_core_attr,"
        "maxDiskPerCore=5000",
        "params": {"max_io_intensity": 300},
        "corecount": "4",
        "maxrss": 2000,
        "releases": ["Athena-25.0.1"],
        "cloud": "DE,FR",
        "type": "unified",
    }
    table = world(
        queues=parts["queues"], pilots=[{"queue": "B1", "requests_3h": 4, "last_start": "2026-03-01T11:59:00Z"}]
    ).queues(Ask())
    row = table.row(table.index["B1"])
    assert (row["gpu"], row["allow_no_pilot"], row["use_only_local_data"]) == (True, True, False)
    assert (row["allowed_processing"], row["max_io_intensity"], row["maxwdir"], row["maxrss"]) == (
        "simul|reco",
        300.0,
        20000.0,
        8000.0,
    )
    assert (json.loads(row["software"]), row["any_release"]) == ({"releases": ["Athena-25.0.1"]}, False)
    assert (row["cloud"], row["requests_3h"], row["idle_s"]) == ("DE", 4, 60.0)


@pytest.mark.parametrize(
    ("disk", "at_queue", "at_site"),
    [
        ({}, 4, 4),
        ({"state": "INACTIVE"}, 0, 0),
        ({"status": {"read_lan": "OFF"}}, 0, 4),
        ({"status": {"read_wan": "OFF"}}, 4, 4),
        ({"status": {"read_lan": "OFF", "read_wan": "OFF"}}, 0, 0),
    ],
)
def test_only_a_storage_that_is_in_use_and_can_be_read_holds_input(disk: dict[str, Any], at_queue: int, at_site: int) -> None:
    parts = document()
    parts["storages"]["A_DISK"] |= disk
    parts["storages"]["C_DISK"] = storage("C")
    parts["queues"]["C1"] = queue("C", "C_DISK")
    found = world(
        storages=parts["storages"],
        queues=parts["queues"],
        replicas=[{"dataset": "d", "storage": "A_DISK", "files": 4, "gb": 4.0}],
    )
    asked = Ask(chunk=chunk(("d", 4, 4.0)))
    table, sites = found.queues(asked), found.nuclei(asked)
    assert column(table, "missing_files")["A1"] == 4 - at_queue
    assert column(table, "available_gb")["A1"] == float(at_queue)
    assert column(sites, "available_files")["A"] == at_site
    sends = "state" not in disk and disk.get("status", {}).get("read_wan", "ON") == "ON"
    assert column(table, "source_ok")["C1"] == sends


def test_a_queue_is_of_the_nucleus_where_it_writes() -> None:
    parts = document()
    parts["storages"]["A_SPARE"] = storage("A")
    parts["queues"]["B3"] = queue("B", "A_SPARE")
    parts["queues"]["A2"] = queue("A", "B_DISK")
    parts["queues"]["A3"] = {"atlas_site": "A"}
    found = world(storages=parts["storages"], queues=parts["queues"], links=[{"from": "B", "to": "A", "closeness": -1}])
    table = found.queues(Ask(nucleus="A"))
    assert {name for name, there in column(table, "at_nucleus").items() if there} == {"A1", "A3", "B3", "C1"}
    assert [name for name, is_open in column(table, "link_open").items() if not is_open] == [
        name for name in table.name.tolist() if name == "A2" or (name.startswith("B") and name != "B3")
    ]


@pytest.mark.parametrize(
    ("pilots", "idle_s"),
    [
        ({"requests_3h": 1}, None),
        ({"waiting_since": "2026-03-01T09:00:00Z"}, 3 * 3600.0),
        ({"waiting_since": "2026-03-01T09:00:00Z", "last_start": "2026-03-01T11:59:00Z"}, 60.0),
        ({"waiting_since": "2026-03-01T11:59:00Z", "last_start": "2026-03-01T09:00:00Z"}, 3 * 3600.0),
    ],
)
def test_a_queue_without_any_start_is_idle_for_as_long_as_jobs_wait_there(pilots: dict[str, Any], idle_s: float | None) -> None:
    idle = column(world(pilots=[{"queue": "B1", **pilots}]).queues(Ask()), "idle_s")["B1"]
    assert idle == idle_s if idle_s is not None else isnan(idle)


def test_queues_of_a_site_that_is_not_in_use_are_closed() -> None:
    table = world(sites={"A": {"nucleus": True}, "B": {"state": "DISABLED"}, "C": {}}).queues(Ask())
    assert {name for name, online in column(table, "online").items() if not online} == {
        name for name in table.name.tolist() if name.startswith("B")
    }


def test_nuclei() -> None:
    found = world(
        sites={"A": {"nucleus": True, "total_rw": 5.0}, "B": {"nucleus": True}, "C": {}},
        links=[{"from": "C", "to": "A", "files_queued": 8}],
        replicas=[
            {"dataset": "d", "storage": "A_TAPE", "files": 3, "gb": 30.0},
            {"dataset": "d", "storage": "B_DISK", "files": 2, "gb": 20.0},
        ],
    )
    table = found.nuclei(Ask(chunk=chunk(("d", 4, 40.0))), {"A": 2})
    a, b = (table.row(table.index[name]) for name in "AB")
    assert len(table) == 2
    assert (a["free_gb"], a["files_queued"], a["total_rw"], a["able_queues"]) == (1050.0, 8, 5.0, 2)
    assert (a["available_gb"], a["available_files"], a["tape_only"]) == (30.0, 3, True)
    assert (b["available_gb"], b["available_files"], b["tape_only"], b["able_queues"]) == (20.0, 2, False, 0)
    assert [entry[0] for entry in json.loads(b["storages"])] == ["B_DISK"]


def test_remaining_work_may_come_as_text() -> None:
    assert world(sites={"A": {"total_rw": "5e3"}, "B": {}, "C": {"total_rw": ""}}).facts.total_rw == {"A": 5000.0, "B": 0, "C": 0}


@pytest.mark.parametrize("at", [20261122, 1.5e9, True])
def test_a_number_is_no_time(at: object) -> None:
    with pytest.raises(BadGrid, match="now: expected a time like"):
        world(now=at)


def test_what_only_the_grid_knows_of_an_ask() -> None:
    tags = [{"container_name": "fat:1", "sources": ["docker://hub/fat:1"]}, {"container_name": "other", "sources": ["x"]}]
    found = world(
        software={"ALL": {"tags": tags}}, users=[{"name": "ann", "queued_jobs": 4}, {"group": "HIGG", "running_jobs": 9}]
    )
    assert found.completed(Ask(container_name="fat:1")).container_sources == ("docker://hub/fat:1",)
    assert found.completed(Ask(user="ann")).usage == Usage(queued_jobs=4)
    assert found.completed(Ask(user="ann", working_group="HIGG")).usage == Usage(running_jobs=9)
    assert found.completed(Ask(user="bob")).usage == Usage()
    given = Usage(running_cores=1)
    assert found.completed(Ask(user="ann", usage=given)).usage == given


def test_tasks_of_a_share_and_nucleus_share_what_is_made_for_them() -> None:
    found = world(jobs=[jobs("B1", "running", 3, share="MC")])
    first = found.queues(Ask(share="MC", nucleus="A", chunk=Chunk(files=1)))
    second = found.queues(Ask(share="MC", nucleus="A"))
    other = found.queues(Ask(share="Group", nucleus="A"))
    assert first.busy is second.busy
    assert first.network_weight(300, 0.5) is second.network_weight(300, 0.5)
    assert first.local is not second.local
    assert first.busy is not other.busy
    assert first.not_test is other.not_test
    assert isinstance(first, Queues)
