"""The production broker: each criterion at its limit, and a worked example."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brokerage.policies.production import Production
from brokerage.rules.decision.pipeline import decide, skips
from brokerage.rules.decision.record import config_of, decode, encode, replay
from brokerage.rules.facts.snapshot import Queues
from tests.unit.brokerage.grids import CONFIG, ask

IN, NEAR = "", "NEAR"
"""Not skipped; the name of a second queue in a case."""

GOOD = {"requests_3h": 9, "space_gb": 5000}
TASK = {"cpu_time": 1, "events": 1, "nucleus": "N"}

CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, IN),
    ({"nucleus": None}, {"closeness": None}, IN),
    ({}, {"type": "production"}, IN),
    ({}, {"type": "analysis"}, "-type"),
    ({"site": "Q"}, {"type": "analysis"}, IN),
    ({}, {"status": "standby"}, "-status"),
    ({}, {"closeness": -1}, "-link_unusable"),
    ({}, {"closeness": -1, "at_nucleus": True}, IN),
    ({}, {"link_files": 300}, IN),
    ({}, {"link_files": 301}, "-link_unusable"),
    ({}, {"link_files": 301, "at_nucleus": True}, IN),
    ({}, {"nucleus_files": 10_000}, IN),
    ({}, {"nucleus_files": 10_001}, "-links_full"),
    ({}, {"nucleus_files": 10_001, "at_nucleus": True}, "-links_full"),
    ({"priority": 799}, {}, IN),
    ({"priority": 800}, {}, "-not_nucleus"),
    ({"priority": 800}, {"at_nucleus": True}, IN),
    ({"scout": True}, {}, "-not_nucleus"),
    ({"priority": 800, "site": "Q"}, {}, "-not_nucleus"),
    ({"priority": 800, "site": "Q"}, {"at_nucleus": True}, IN),
    ({"priority": 800, "nucleus": None}, {}, IN),
    ({"merge": True}, {"idle_s": 7201, "activated": 1, "running": 1}, "-inactive"),
    ({"merge": True}, {"idle_s": 7200, "activated": 1, "running": 1}, IN),
    ({"merge": True}, {"idle_s": 7201}, IN),
    ({"merge": True, "chunk_site": "Q"}, {"idle_s": 7201, "activated": 1, "running": 1}, "-inactive"),
    ({"merge": True, "site": "Q"}, {"idle_s": 7201, "activated": 1, "running": 1}, "-inactive"),
    ({"merge_output": True}, {"idle_s": 7201, "others_waiting": 1}, "-inactive"),
    ({}, {"idle_s": 7201, "activated": 1}, IN),
    ({"processing_type": "reco"}, {"fairsharepolicy": "type=evgensimul:100%"}, "-zeroshare"),
    ({"processing_type": "evgen"}, {"fairsharepolicy": "type=evgensimul:100%"}, IN),
    ({"share": "Test", "processing_type": "reco"}, {"fairsharepolicy": "type=evgensimul:100%"}, IN),
    ({"io_intensity": 201, "gb": 9.9}, {"missing_files": 99}, IN),
    ({"io_intensity": 201, "gb": 10.0}, {"missing_files": 99, NEAR: {"available_gb": 10.0}}, "-io"),
    ({"io_intensity": 201, "gb": 9.9}, {"missing_files": 100, NEAR: {"available_gb": 9.9}}, "-io"),
    ({"io_intensity": 201, "gb": 10.0}, {"missing_files": 99, NEAR: {"available_gb": 10.0, "requests_3h": 0}}, "-io"),
    ({"io_intensity": 201, "gb": 10.0}, {"missing_files": 99, NEAR: {"available_gb": 10.0, "status": "offline"}}, IN),
    ({"io_intensity": 201, "gb": 10.0}, {"missing_files": 99}, IN),
    ({"io_intensity": 201, "gb": 10.0}, {"missing_files": 99, NEAR: {"tape_gb": 9.0, "missing_files": 9}}, "-io"),
    ({"io_intensity": 201, "gb": 20.0}, {"missing_files": 99, "tape_gb": 11.0, NEAR: {"tape_gb": 9.0}}, IN),
    ({"io_intensity": 200, "gb": 99.0}, {"missing_files": 999}, IN),
    ({"io_intensity": 201, "gb": 20.0}, {"missing_files": 99, "available_gb": 11.0}, IN),
    ({"included_sites": ("R", "Q*")}, {}, IN),
    ({"included_sites": ("R", "S*")}, {}, "-notincluded"),
    ({"included_sites": ("R", "AUTO")}, {}, IN),
    ({"included_sites": ("R", "AUTO"), "excluded_sites": ("Q",)}, {}, "-excluded"),
    ({"included_sites": ("S",)}, {"site": "S"}, IN),
    ({"included_sites": ("R",), "site": "Q"}, {}, IN),
    ({"excluded_sites": ("Q",)}, {}, "-excluded"),
    ({"excluded_sites": ("R",)}, {}, IN),
    ({"disk_io": 101}, {"maxdiskio": 100, "disk_io": 101}, "-diskIO"),
    ({"disk_io": 100}, {"maxdiskio": 100, "disk_io": 101}, IN),
    ({"disk_io": 101}, {"maxdiskio": 100, "disk_io": 100}, IN),
    ({"disk_io": 808, "core_count": 8}, {"maxdiskio": 100, "disk_io": 101, "corecount": 8}, "-diskIO"),
    ({"core_count": 8}, {"corecount": 1}, "-cpucore"),
    ({"core_count": 2}, {"corecount": 64}, IN),
    ({"core_count": 0}, {"corecount": 1}, IN),
    ({"core_count": 0, "priority": 900}, {"corecount": 1, "at_nucleus": True}, "-cpucore"),
    ({"core_count": 8, "max_core_count": 16}, {"corecount": 16}, IN),
    ({"core_count": 8, "max_core_count": 15}, {"corecount": 16}, "-max_cpucore"),
    ({"ram_count": 1000, "ram_unit": "MB"}, {"maxrss": 900}, IN),
    ({"ram_count": 1000, "ram_unit": "MB"}, {"maxrss": 899}, "-lowmemory"),
    ({"ram_count": 1000, "ram_unit": "MB"}, {"minrss": 901}, "-highmemory"),
    ({"direct_access_only": True}, {}, "-remoteio"),
    ({"direct_access_only": True}, {"direct_access_lan": True}, IN),
    ({"gb": 1.0, "core_count": 8}, {"maxwdir": 12_001, "corecount": 8}, IN),
    ({"gb": 1.0, "core_count": 8}, {"maxwdir": 12_000, "corecount": 8}, "-disk"),
    ({"gb": 10.0, "out_disk_count": 100, "out_disk_unit": "kB"}, {"maxwdir": 11_000}, "-disk"),
    ({"gb": 10.0, "out_disk_count": 100, "out_disk_unit": "kB"}, {"maxwdir": 1_001, "direct_access_lan": True}, IN),
    ({}, {"space_gb": 200}, "-disk"),
    ({}, {"space_gb": 201}, IN),
    ({}, {"space_gb": None}, "-disk"),
    ({}, {"read_lan_ok": False}, "-read_lan_blacklist"),
    ({}, {"write_lan_ok": False}, "-write_lan_blacklist"),
    ({}, {"write_wan_ok": False}, "-write_wan_blacklist"),
    ({}, {"read_wan_ok": False}, "-read_wan_blacklist"),
    ({}, {"read_wan_ok": False, "write_wan_ok": False, "at_nucleus": True}, IN),
    ({}, {"source_ok": False, "missing_files": 1}, "-source_blacklist"),
    ({"scout": True}, {"at_nucleus": True, "maxtime": 86_399}, "-scout_walltime"),
    ({"scout": True}, {"at_nucleus": True, "maxtime": 86_400}, IN),
    ({"merge": True}, {"maxtime": 86_399}, "-min_walltime"),
    ({"cpu_time": None}, {"maxtime": 86_399}, "-min_walltime"),
    ({"cpu_time": 9, "events": 1000, "base_walltime": 600}, {"maxtime": 1601}, IN),
    ({"cpu_time": 9, "events": 1000, "base_walltime": 600}, {"maxtime": 1600}, "-shortwalltime"),
    ({"walltime_s": 1800}, {"mintime": 1800}, IN),
    ({"walltime_s": 1799}, {"mintime": 1800}, "-longwalltime"),
    ({"cpu_time": None}, {"mintime": 1}, "-longwalltime"),
    ({"ip_connectivity": "http"}, {"wnconnectivity": "none"}, "-network"),
    ({"ip_stack": "IPv6"}, {"wnconnectivity": "full#IPv4"}, "-network"),
    ({"site": "Q", "ip_connectivity": "http"}, {"wnconnectivity": "none"}, "-network"),
    ({"ip_connectivity": "http"}, {}, IN),
    ({"ip_connectivity": "http", "ip_stack": "IPv6"}, {"wnconnectivity": "full#IPv6"}, IN),
    ({}, {"transferring": 2000}, IN),
    ({}, {"transferring": 2001}, "-transferring"),
    ({}, {"transferring": 2001, "at_nucleus": True}, "-transferring"),
    ({}, {"transferring": 11, "transferringlimit": 10}, "-transferring"),
    ({}, {"transferring": 12, "transferringlimit": 10, "running": 6}, IN),
    ({}, {"transferring": 12, "transferringlimit": 10, "others_running": 6}, IN),
    ({"merge": True, "core_count": 8, "merge_core_count": 1}, {"corecount": 1}, IN),
    ({"merge": True, "core_count": 8}, {"corecount": 1}, "-cpucore"),
    ({"merge": True, "merge_ram_count": 500}, {"maxrss": 1799}, "-lowmemory"),
    ({"merge": True, "merge_ram_count": 500}, {"maxrss": 1800}, IN),
    ({"merge": True, "merge_ram_count": 500, "chunk_ram": 3000}, {"maxrss": 2699}, "-lowmemory"),
    ({"ram_count": 1000, "chunk_ram": 2000}, {"maxrss": 1799}, "-lowmemory"),
    ({"merge": True, "chunk_site": "Q"}, {"status": "brokeroff"}, IN),
    ({"merge": True, "chunk_site": "R"}, {}, "-nonpreassigned"),
    ({"merge": True, "chunk_site": "NEAR"}, {"storage": "DISK", NEAR: {"storage": "DISK"}}, IN),
    ({"merge": True, "chunk_site": "R", "skipped_s": 86_399}, {}, "-nonpreassigned"),
    ({"merge": True, "chunk_site": "R", "skipped_s": 86_400}, {}, IN),
    ({"t1_weight": -1}, {}, "-t1weight"),
    ({"t1_weight": -1}, {"at_nucleus": True}, IN),
    ({}, {"requests_3h": 0}, "-nopilot"),
    ({"site": "Q"}, {"requests_3h": 0}, "-nopilot"),
    ({"merge": True, "chunk_site": "Q"}, {"requests_3h": 0}, "-nopilot"),
    ({"merge": True, "chunk_site": "NEAR", "skipped_s": 86_400}, {NEAR: {"requests_3h": 0}}, IN),
    ({}, {"requests_3h": 0, "allow_no_pilot": True}, IN),
    ({"prod_source_label": "test"}, {"requests_3h": 0}, IN),
    ({"processing_type": "urgent"}, {"mbps": 20, "closeness": 0}, "-lowNetworkWeight"),
    ({"processing_type": "urgent"}, {"mbps": 21, "closeness": 11}, IN),
    ({}, {"nucleus_ok": False}, "-dest_blacklisted"),
    ({"io_intensity": 100}, {"max_io_intensity": 100}, IN),
    ({"io_intensity": 101}, {"max_io_intensity": 100}, "-max_io_intensity"),
    ({}, {"use_only_local_data": True, "missing_files": 1}, "-non_local"),
    ({"banned_sites": ("S",)}, {"site": "S"}, "-banned_site"),
    ({"banned_sites": ("S",), "site": "Q"}, {"site": "S"}, "-banned_site"),
    ({"banned_sites": ("R",), "merge": True, "chunk_site": "Q"}, {"site": "S"}, IN),
    ({"banned_sites": ("S",), "merge": True, "chunk_site": "Q"}, {"site": "S"}, "-banned_site"),
    ({"stations": ("st1",), "station_sites": ("S",)}, {"site": "S"}, IN),
    ({"stations": ("st1",), "station_sites": ("R",)}, {"site": "S"}, "-no_station"),
    ({"stations": ("st1",), "merge": True, "chunk_site": "Q"}, {"site": "S"}, "-no_station"),
    ({}, {"activated": 15, "starting": 5}, IN),
    ({}, {"activated": 15, "starting": 6, "running": 10}, "-cap_activated"),
    ({}, {"activated": 20, "assigned": 9}, IN),
    ({}, {"activated": 12, "assigned": 9, "missing_files": 1}, "-cap_queued"),
    ({"processing_type": "urgent"}, {"activated": 21, "at_nucleus": True}, "-cap_activated"),
    ({"priority": 1000}, {"defined": 21, "at_nucleus": True}, "-cap_queued"),
    ({"walltime_s": 10}, {"mintime": 100, "activated": 21}, "-cap_activated"),
    ({"gb": 1.0}, {"use_only_local_data": True, "missing_files": 1, "activated": 21}, "-cap_activated"),
]


@pytest.mark.parametrize(("asked", "columns", "skipped"), CASES, ids=[f"{case[2]} {case[0]} {case[1]}" for case in CASES])
def test_one_criterion_decides_at_its_limit(asked: dict[str, Any], columns: dict[str, Any], skipped: str) -> None:
    task = ask(**{**TASK, **asked})
    beside = [{"name": NEAR, **GOOD, **columns[NEAR]}] if NEAR in columns else []
    own = {column: value for column, value in columns.items() if column != NEAR}
    table = Queues.from_rows([{"name": "Q", **GOOD, **own}, *beside])
    decision = decide(Production, task, table, CONFIG, "1")
    found = skips(decision, Production, task, table, CONFIG)
    assert (found["Q"].criterion if "Q" in found else IN) == skipped


def test_every_criterion_has_a_case_that_it_decides() -> None:
    elsewhere = {"test", "cache", "regexpcmtconfig", "no_weight", "below_min_weight", "low_weight"}
    shown = {case[2].removeprefix("-") for case in CASES} | elsewhere
    options = {"non_pledged", "over_pledged", "opportunistic"}
    assert {criterion.label for criterion in Production.criteria} - options <= shown


@pytest.mark.parametrize(
    ("asked", "columns", "keys", "skipped"),
    [
        ({}, {"pledgedcpu": -1}, {"WORK_SHORTAGE": True}, "-non_pledged"),
        ({}, {"pledgedcpu": 8, "running_cores": 9}, {"WORK_SHORTAGE": True}, "-over_pledged"),
        ({}, {"pledgedcpu": 8, "running_cores": 8}, {"WORK_SHORTAGE": True}, IN),
        ({"priority": 800}, {"pledgedcpu": -1, "at_nucleus": True}, {"REJECT_OPPORTUNISTIC": True}, "-opportunistic"),
        ({"processing_type": "urgent"}, {"mbps": 1}, {"NW_ACTIVE": False}, IN),
        ({"share": "MC"}, {"activated": 21}, {"NQUEUELIMITSITE_MC": 25}, IN),
        ({"share": "MC"}, {"activated": 1}, {"NQUEUELIMITSITE_MC": 0}, "-cap_activated"),
        ({"prod_source_label": "managed"}, {"running": 9}, {"MIN_WEIGHT_managed": 1.64}, IN),
        ({"prod_source_label": "managed"}, {"running": 9}, {"MIN_WEIGHT_managed": 1.66}, "-below_min_weight"),
        (
            {"prod_source_label": "managed", "share": "MC"},
            {"running": 9},
            {"MIN_WEIGHT_managed": 1.66, "MIN_WEIGHT_managed_MC": 1.64},
            IN,
        ),
        (
            {"processing_type": "ganga"},
            {"fairsharepolicy": "type=reco:0%,type=any:100%"},
            {"PROCESSING_GROUPS": {"reco": ["ganga"]}},
            "-zeroshare",
        ),
    ],
)
def test_what_the_configuration_changes(
    asked: dict[str, Any], columns: dict[str, Any], keys: dict[str, Any], skipped: str
) -> None:
    task, config = ask(**{**TASK, **asked}), {**CONFIG, **keys}
    table = Queues.from_rows([{"name": "Q", **GOOD, **columns}])
    decision = decide(Production, task, table, config, "1")
    found = skips(decision, Production, task, table, config)
    assert (found["Q"].criterion if found else IN) == skipped
    used = json.loads(json.dumps(config_of(Production, config)))
    assert replay(decode(encode(decision, Production)), Production, task, table, used) == encode(decision, Production)


PUBLISHED = json.dumps(
    {
        "cvmfs": ["atlas"],
        "releases": ["Mine-1.0"],
        "cmtconfigs": ["x86_64-el9-gcc13-opt"],
        "containers": ["docker://hub/"],
        "architectures": [{"type": "cpu", "arch": ["x86_64"]}],
    }
)


@pytest.mark.parametrize(
    ("asked", "any_release", "skipped"),
    [
        ({"architecture": "x86_64-el9-gcc13-opt", "release": "Athena-25.0"}, False, IN),
        ({"architecture": "x86_64-slc6-gcc49-opt", "release": "Athena-25.0"}, False, "-cache"),
        ({"architecture": "x86_64-slc6-gcc49-opt", "release": "Athena-25.0"}, True, IN),
        ({"architecture": "x86_64-el9-gcc13-opt", "release": "Athena-25.0", "nightly": True}, False, "-cache"),
        ({"architecture": "x86_64-el9-gcc1[0-9]-.*", "release": "Athena-25.0"}, False, IN),
        ({"architecture": "x86_64-el9-gcc9.*", "release": "Athena-25.0"}, False, "-regexpcmtconfig"),
        ({"architecture": "x86_64-el9-gcc9.*", "release": "Athena-25.0"}, True, IN),
        ({"architecture": "(x86_64-el9-gcc13-opt)*", "release": "Athena-25.0"}, False, "-regexpcmtconfig"),
        ({"architecture": "x86_64-slc6-gcc49-opt", "release": "Mine-1.0"}, False, IN),
        ({"architecture": "x86_64-(centos7|el9)-gcc13-.*"}, False, IN),
        ({"architecture": "x86_64-(centos7|slc6)-gcc13-.*"}, False, "-regexpcmtconfig"),
        ({"architecture": "x86_64-el9-gcc13-opt"}, False, IN),
        ({}, False, IN),
        ({"container_name": "docker://hub/a:1"}, False, IN),
        ({"container_name": "docker://other/a:1"}, False, "-cache"),
        ({"container_name": "docker://other/a:1"}, True, IN),
        ({"container_name": "docker://other/a:1", "only_tags_for_fc": True}, True, IN),
        ({"architecture": "x86_64-el9-gcc13-opt#x86_64"}, True, IN),
        ({"architecture": "x86_64-el9-gcc13-opt#arm64"}, True, "-cache"),
        ({"architecture": "x86_64-el9-gcc13-opt&nvidia"}, True, "-cache"),
    ],
)
def test_software_by_what_the_queue_publishes(asked: dict[str, Any], any_release: bool, skipped: str) -> None:
    task = ask(**{**TASK, **asked})
    table = Queues.from_rows([{"name": "Q", **GOOD, "any_release": any_release, "software": PUBLISHED}])
    decision = decide(Production, task, table, CONFIG, "1")
    found = skips(decision, Production, task, table, CONFIG)
    assert (found["Q"].criterion if found else IN) == skipped


def test_a_worked_example() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "NUCLEUS", "at_nucleus": True, "running": 50, "activated": 30, "assigned": 99, "available_gb": 10.0},
        {"name": "FAR", "running": 50, "activated": 10, "assigned": 15, "missing_files": 50, "link_files": 150, "mbps": 60.0},
        {"name": "FULL", "running": 9, "activated": 21},
        {"name": "SPARE_TEST"},
    ]
    table = Queues.from_rows([{**GOOD, **row} for row in rows])
    task = ask(**TASK, gb=10.0)
    decision = decide(Production, task, table, CONFIG, "1")
    nucleus, far = decision.chosen
    assert (nucleus.name, far.name) == ("NUCLEUS", "FAR")
    assert nucleus.factors == pytest.approx((51 / 40, 2.0, 1.0, 2.5))
    assert far.factors == pytest.approx((51 / (35 * 1.5), 10 / 15, 1.0, 0.5 * (1.5 + 1.7)))
    assert nucleus.weight == pytest.approx(51 / 40 * 5)
    reasons = skips(decision, Production, task, table, CONFIG)
    assert reasons["SPARE_TEST"].criterion == "-test"
    assert reasons["FULL"].numbers["activated_starting"] == 21
    assert reasons["FULL"].numbers["limit"] == 20


@pytest.mark.parametrize("pattern", ["(a|b)*", "(?=a)", "a{9}", "((a))", "(a", "a" * 129 + ".*", "(a|b)(a|b)(a|b).*.*"])
def test_a_platform_that_cannot_be_read_says_so(pattern: str) -> None:
    task = ask(**TASK, architecture=pattern)
    table = Queues.from_rows([{"name": "Q", **GOOD, "any_release": False, "software": PUBLISHED}])
    decision = decide(Production, task, table, CONFIG, "1")
    reason = skips(decision, Production, task, table, CONFIG)["Q"].reason
    assert reason.startswith(f"nothing there is of a platform like {pattern}, a pattern that is not read: ")
    assert "( )" in reason


@pytest.mark.parametrize(
    ("wish", "offered"),
    [("&amd", True), ("&nvidia", True), ("&intel", False), ("&nvidia-k80", True), ("&amd-k80", False), ("", True)],
)
def test_several_entries_for_one_kind_of_hardware_add_up(wish: str, offered: bool) -> None:
    gpus = [{"type": "gpu", "vendor": ["nvidia"], "model": ["k80"]}, {"type": "gpu", "vendor": ["amd"], "model": ["mi200"]}]
    published = json.dumps({"architectures": gpus})
    task, table = ask(**TASK, architecture=wish), Queues.from_rows([{"name": "Q", **GOOD, "software": published}])
    assert bool(decide(Production, task, table, CONFIG, "1").chosen) == offered


@pytest.mark.parametrize(("wish", "offered"), [("#x86", False), ("#x86_64", True)])
def test_a_text_of_an_old_document_is_one_name(wish: str, offered: bool) -> None:
    published = json.dumps({"architectures": [{"type": "cpu", "arch": "x86_64"}]})
    task, table = ask(**TASK, architecture=wish), Queues.from_rows([{"name": "Q", **GOOD, "software": published}])
    assert bool(decide(Production, task, table, CONFIG, "1").chosen) == offered


@pytest.mark.parametrize(
    ("policy", "group", "accepted"),
    [
        ("group=(AP_Higgs|AP_Susy):0%", "AP_Higgs", False),
        ("group=(AP_Higgs|AP_Susy):0%", "AP_Susy", False),
        ("group=(AP_Higgs|AP_Susy):0%", "AP_HiggsX", True),
        ("group=(AP_Higgs|AP_Susy):0%", None, True),
        ("group=(AP_Higgs|AP_Susy):100%", "AP_Susy", True),
        ("group=(AP_Higgs|AP_Susy):100%", "AP_Exot", False),
        ("group=AP_(Higgs|Susy)*:0%", "AP_Susy7", False),
        ("group=AP_Higgs|AP_Susy:0%", "AP_Susy", False),
        ("group=A.:0%", "AB", True),
        ("type=(evgensimul|reco):100%", None, True),
    ],
)
def test_a_policy_names_several_groups_in_brackets(policy: str, group: str | None, accepted: bool) -> None:
    work = {"working_group": group, "processing_type": "evgen"}
    table = Queues.from_rows([{"name": "Q", **GOOD, "fairsharepolicy": policy}])
    assert bool(decide(Production, ask(**TASK, **work), table, CONFIG, "1").chosen) == accepted
