"""Each criterion of the generic broker at its limit: just inside, just outside."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.policies.generic import Generic
from brokerage.rules.decision.declare import FILTERS, Criterion
from brokerage.rules.decision.pipeline import decide, skips
from tests.unit.brokerage.grids import CONFIG, ask, queues

IN = ""

CASES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("online", {}, {"status": "online"}, IN),
    ("test is not online", {}, {"status": "test"}, "-status"),
    ("named by the task, brokeroff", {"site": "Q"}, {"status": "brokeroff"}, IN),
    ("named by its site", {"site": " S , T"}, {"site": "T"}, IN),
    ("another is named", {"site": "R"}, {}, "-nonpreassigned"),
    ("named with a star", {"site": "Q*"}, {}, IN),
    ("a dot is a dot", {"site": "."}, {}, "-nonpreassigned"),
    ("pseudo-queue of the named one", {"site": "P"}, {"unified_name": "P"}, IN),
    ("included by star", {"included_sites": ("*",)}, {}, IN),
    ("not included", {"included_sites": ("R",)}, {}, "-notincluded"),
    ("excluded", {"excluded_sites": ("Q",)}, {}, "-excluded"),
    ("excluded and included", {"excluded_sites": ("Q",), "included_sites": ("Q",)}, {}, "-excluded"),
    ("banned", {"banned_sites": ("S",)}, {"site": "S"}, "-banned_site"),
    ("banned and named", {"banned_sites": ("S",), "site": "Q"}, {"site": "S"}, "-banned_site"),
    ("a star bans no other name", {"banned_sites": ("*",)}, {"site": "S"}, IN),
    ("a queue is no site", {"banned_sites": ("Q",)}, {"site": "S"}, IN),
    ("a station at its site", {"stations": ("a",), "station_sites": ("R", "S")}, {"site": "S"}, IN),
    ("a station elsewhere", {"stations": ("a",), "station_sites": ("R",)}, {"site": "S"}, "-no_station"),
    ("a station nowhere, and named", {"stations": ("a",), "site": "Q"}, {"site": "S"}, "-no_station"),
    ("one core in one", {"core_count": 1}, {"corecount": 1}, IN),
    ("one core in two", {"core_count": 1}, {"corecount": 2}, "-cpucore"),
    ("one core in any", {"core_count": 1}, {"corecount": 0}, IN),
    ("one core in minus one", {"core_count": 1}, {"corecount": -1}, IN),
    ("eight cores in eight", {"core_count": 8}, {"corecount": 8}, IN),
    ("eight cores in seven", {"core_count": 8}, {"corecount": 7}, "-cpucore"),
    ("any number of cores", {"core_count": 0}, {"corecount": 7}, IN),
    ("no cores given is one", {}, {"corecount": 2}, "-cpucore"),
    ("memory just fits", {"ram_count": 2000, "ram_unit": "MB"}, {"maxrss": 2000}, IN),
    ("memory does not", {"ram_count": 2001, "ram_unit": "MB"}, {"maxrss": 2000}, "-lowmemory"),
    ("memory without limit", {"ram_count": 99999, "ram_unit": "MB"}, {"maxrss": 0}, IN),
    (
        "per core times slot",
        {"ram_count": 1000, "ram_unit": "MBPerCore", "core_count": 4},
        {"maxrss": 7999, "corecount": 8},
        "-lowmemory",
    ),
    ("per core fits", {"ram_count": 1000, "ram_unit": "MBPerCore", "core_count": 4}, {"maxrss": 8000, "corecount": 8}, IN),
    ("base is added", {"ram_count": 1000, "ram_unit": "MB", "base_ram_count": 1}, {"maxrss": 1000}, "-lowmemory"),
    ("at the least memory", {"ram_count": 3000, "ram_unit": "MB"}, {"minrss": 3000}, IN),
    ("below the least memory", {"ram_count": 2999, "ram_unit": "MB"}, {"minrss": 3000}, "-highmemory"),
    ("memory not known", {}, {"minrss": 3000, "maxrss": 1}, IN),
    ("walltime just fits", {"walltime_s": 3600}, {"maxtime": 3600}, IN),
    ("walltime too long", {"walltime_s": 3601}, {"maxtime": 3600}, "-shortwalltime"),
    ("walltime at the least", {"walltime_s": 1800}, {"mintime": 1800}, IN),
    ("walltime too short", {"walltime_s": 1799}, {"mintime": 1800}, "-longwalltime"),
    ("walltime not known", {}, {"maxtime": 1, "mintime": 1}, IN),
    ("walltime from cpuTime", {"cpu_time": 9, "events": 1000, "base_walltime": 600}, {"maxtime": 1600, "corepower": 10}, IN),
    ("the same, faster limit", {"cpu_time": 9, "events": 1000, "base_walltime": 600}, {"maxtime": 1599}, "-shortwalltime"),
    ("cpuTime that does not scale", {"cpu_time": 9e9, "events": 9, "cpu_efficiency": 0}, {"maxtime": 600}, IN),
    ("scratch just fits", {"out_disk_count": 500, "out_disk_unit": "MB", "gb": 1.5}, {"maxwdir": 2000}, IN),
    ("scratch does not", {"out_disk_count": 501, "out_disk_unit": "MB", "gb": 1.5}, {"maxwdir": 2000}, "-disk"),
    (
        "input read in place",
        {"gb": 99.0, "work_disk_count": 2, "work_disk_unit": "GB"},
        {"maxwdir": 2000, "direct_access_lan": True},
        IN,
    ),
    ("one job takes part of the chunk", {"gb": 60.0, "job_gb": 2.0}, {"maxwdir": 2000}, IN),
    ("output of kB is small", {"out_disk_count": 2000, "out_disk_unit": "kBPerEvent"}, {"maxwdir": 2}, IN),
    ("storage at its limit", {}, {"space_gb": 200}, IN),
    ("storage below it", {}, {"space_gb": 199.9}, "-disk"),
    ("space not published", {}, {"space_gb": None}, IN),
    ("files wait elsewhere to be merged", {"chunk_site": "R"}, {}, "-nonpreassigned"),
    ("files wait here to be merged", {"chunk_site": "Q"}, {}, IN),
    ("type allowed", {"processing_type": "reco"}, {"allowed_processing": "simul|reco"}, IN),
    ("type not allowed", {"processing_type": "eco"}, {"allowed_processing": "simul|reco"}, "-processing"),
    ("type excluded", {"processing_type": "reco"}, {"excluded_processing": "simul|reco"}, "-processing"),
    ("another excluded", {"processing_type": "reco"}, {"excluded_processing": "simul"}, IN),
]


@pytest.mark.parametrize(("asked", "columns", "skipped"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_queue_passes_or_is_skipped_by_this_criterion(asked: dict[str, Any], columns: dict[str, Any], skipped: str) -> None:
    table = queues(**columns)
    decision = decide(Generic, ask(**asked), table, CONFIG, "1")
    found = skips(decision, Generic, ask(**asked), table, CONFIG)
    assert (found["Q"].criterion if found else IN) == skipped
    assert int(decision.failed().sum()) == bool(skipped)


def test_every_declared_filter_documents_itself_and_every_reason_can_be_written() -> None:
    for rule in FILTERS.values():
        assert "Source:" in rule.doc, rule.name
        assert "The same" not in rule.doc, f"{rule.name}: people read its sentence alone"
        for criterion in rule.criteria:
            assert isinstance(criterion, Criterion)
            assert criterion.reason
