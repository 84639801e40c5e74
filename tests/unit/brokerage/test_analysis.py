"""The analysis broker: each criterion at its limit, the second pass, caps, and whole decisions against a plain oracle."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brokerage.policies.analysis import Analysis
from brokerage.rules.decision.pipeline import decide, skips
from brokerage.rules.decision.record import config_of, decode, encode, replay
from brokerage.rules.explain.explanation import explain
from brokerage.rules.facts.ask import Usage
from brokerage.rules.facts.snapshot import Queues
from tests.unit.brokerage.grids import CONFIG, ask

IN, NEAR = "", "NEAR"
"""Not skipped; the name of a second queue in a case."""

GOOD = {"requests_3h": 9, "space_gb": 5000}
TASK = {"cpu_time": 1, "events": 1, "user": "ann"}
HEAVY = {"activated": 500, "running": 300, "n_users": 10, "starts_per_hour": 20.0}

CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, IN),
    ({}, {"type": "production"}, "-type"),
    ({}, {"type": "analysis"}, IN),
    ({"banned_sites": ("S",)}, {"site": "S"}, "-banned_site"),
    ({"banned_sites": ("S",), "site": "Q"}, {"site": "S"}, "-banned_site"),
    ({"banned_sites": ("R",), "merge": True, "chunk_site": "Q"}, {"site": "S"}, IN),
    ({"banned_sites": ("S",), "merge": True, "chunk_site": "Q"}, {"site": "S"}, "-banned_site"),
    ({"stations": ("st1",), "station_sites": ("S",)}, {"site": "S"}, IN),
    ({"stations": ("st1",), "station_sites": ("R",)}, {"site": "S"}, "-no_station"),
    ({"stations": ("st1",), "merge": True, "chunk_site": "Q"}, {"site": "S"}, "-no_station"),
    ({"excluded_sites": ("Q",)}, {}, "-excluded"),
    ({"excluded_sites": ("Q",), "site": "Q"}, {}, "-excluded"),
    ({"included_sites": ("R", "S*")}, {}, "-notincluded"),
    ({"included_sites": ("R", "Q*")}, {}, IN),
    ({"included_sites": ("NEAR", "AUTO")}, {NEAR: {}}, "-notincluded"),
    ({"included_sites": ("NEAR", "AUTO")}, {NEAR: {"gpu": True}}, IN),
    ({"site": "NEAR"}, {NEAR: {}}, "-nonpreassigned"),
    ({"site": "DISK"}, {"storage": "DISK"}, IN),
    ({"merge": True, "chunk_site": "R"}, {}, "-nonpreassigned"),
    ({"merge": True, "chunk_site": "NEAR"}, {"storage": "DISK", NEAR: {"storage": "DISK"}}, IN),
    ({}, {"status": "test"}, "-status"),
    ({"site": "Q"}, {"status": "test"}, IN),
    ({"included_sites": ("Q",)}, {"status": "brokeroff"}, IN),
    ({"included_sites": ("NEAR", "AUTO")}, {"status": "offline", NEAR: {"gpu": True}}, "-notincluded"),
    ({"included_sites": ("NEAR", "AUTO")}, {"status": "brokeroff", NEAR: {"gpu": True}}, "-notincluded"),
    ({"included_sites": ("Q", "AUTO")}, {"status": "brokeroff"}, IN),
    ({"included_sites": ("AUTO",)}, {"status": "test"}, "-status"),
    ({}, {"missing_files": 1, NEAR: {}}, "-locality"),
    ({"task_priority": 1999}, {"missing_files": 1, NEAR: {}}, "-locality"),
    ({"task_priority": 2000}, {"missing_files": 1, NEAR: {}}, IN),
    ({"priority": 2000}, {"missing_files": 1, NEAR: {}}, IN),
    ({}, {"missing_files": 1, NEAR: {"task_closed": 1}}, IN),
    ({}, {"missing_files": 1, NEAR: {"task_failed": 9}}, "-locality"),
    ({}, {"missing_files": 1, "task_closed": 1, NEAR: {"task_closed": 1}}, "-locality"),
    ({"merge": True}, {"missing_files": 1, NEAR: {"task_closed": 1}}, "-locality"),
    ({"included_sites": ("NEAR", "AUTO")}, {NEAR: {"task_closed": 1}}, IN),
    ({"use_local_io": True}, {"missing_files": 1, "virtual": True, NEAR: {"missing_files": 1}}, "-locality"),
    ({"use_local_io": True}, {"missing_files": 1, NEAR: {"missing_files": 1, "virtual": True}}, IN),
    ({"use_local_io": True}, {"virtual": True}, IN),
    ({"task_priority": 2000}, {"missing_files": 1, "virtual": True}, "-locality"),
    ({"task_priority": 2000}, {"virtual": True}, IN),
    ({"disk_io": 101}, {"maxdiskio": 100, "disk_io": 101}, "-diskIO"),
    ({"core_count": 8}, {"corecount": 1}, "-cpucore"),
    ({"core_count": 8, "max_core_count": 8}, {"corecount": 9}, "-max_cpucore"),
    ({"avoid_vp": True}, {"virtual": True}, "-vp"),
    ({}, {"virtual": True}, IN),
    ({}, {"virtual": True, "activated": 41}, "-overloaded_vp"),
    ({}, {"virtual": True, "activated": 40}, IN),
    ({"architecture": "x86_64-el9"}, {"gpu": True}, "-gpu"),
    ({"architecture": "x86_64-el9"}, {"gpu": True, "software": json.dumps({"cmtconfigs": ["x86_64-el9"]})}, IN),
    ({"container_name": "docker://a"}, {"any_release": False}, "-cache"),
    ({"architecture": "x86.*"}, {"any_release": False}, "-regexpcmtconfig"),
    ({"ram_count": 1000, "ram_unit": "MB", "base_ram_count": 100}, {"maxrss": 989}, "-lowmemory"),
    ({"ram_count": 1000, "ram_unit": "MB", "base_ram_count": 100}, {"maxrss": 990}, IN),
    ({"ram_count": 1000, "ram_unit": "MB"}, {"minrss": 901}, "-highmemory"),
    ({"base_ram_count": 50_000}, {"maxrss": 44_999}, "-lowmemory"),
    ({"ram_count": 0, "base_ram_count": 50_000}, {"maxrss": 45_000}, IN),
    ({"gb": 2.0}, {"maxwdir": 2000}, "-disk"),
    ({"gb": 2.0}, {"maxwdir": 2001}, IN),
    ({"gb": 2.0}, {"maxwdir": 1, "direct_access_lan": True}, IN),
    ({"gb": 1.0, "n_gb_per_job": 4.0}, {"maxwdir": 4000}, "-disk"),
    ({"gb": 2.0, "merge": True}, {"maxwdir": 4000}, "-disk"),
    ({"gb": 2.0, "merge": True}, {"maxwdir": 4001}, IN),
    ({}, {"space_gb": 200}, "-disk"),
    ({}, {"space_gb": 201}, IN),
    ({"task_priority": 2000}, {"missing_files": 1, "input_space_gb": 200}, "-disk"),
    ({}, {"missing_files": 1, "input_space_gb": 201}, IN),
    ({}, {"input_space_gb": 1}, IN),
    ({}, {"read_wan_ok": False}, "-blacklist"),
    ({}, {"source_ok": False}, "-blacklist"),
    ({"cpu_time": 9, "events": 1000, "base_walltime": 600}, {"maxtime": 1601}, IN),
    ({"cpu_time": 9, "events": 1000, "base_walltime": 600}, {"maxtime": 1600}, "-shortwalltime"),
    ({"walltime_s": 1799}, {"mintime": 1800}, "-longwalltime"),
    ({"walltime_s": 1799, "merge": True}, {"mintime": 1800, "maxtime": 1}, IN),
    ({}, {"requests_3h": 0}, "-nopilot"),
    ({"site": "Q"}, {"requests_3h": 0}, "-nopilot"),
    ({"prod_source_label": "test"}, {"requests_3h": 0}, IN),
    ({}, {"task_closed": 1}, "-closed"),
    ({"merge": True}, {"task_closed": 1}, IN),
    ({"site": "Q"}, {"task_closed": 1}, IN),
    ({}, {"task_failed": 4}, IN),
    ({}, {"task_failed": 5}, "-badsite"),
    ({}, {"task_failed": 5, "task_finished": 3}, IN),
    ({}, {"task_failed": 6, "task_finished": 3}, "-badsite"),
    ({}, {"activated": 20, "assigned": 20}, IN),
    ({}, {"activated": 20, "assigned": 21}, "-overloaded"),
    ({}, {"activated": 20, "assigned": 22, "running": 21}, IN),
    ({"merge": True}, {"activated": 999}, IN),
    ({}, HEAVY | {"user_queued": 60}, IN),
    ({}, HEAVY | {"user_queued": 61}, "-user_limit"),
    ({}, HEAVY | {"user_queued": 200, "user_running": 100}, IN),
    ({}, HEAVY | {"user_queued": 201, "user_running": 100}, "-user_limit"),
    ({}, HEAVY | {"running": 263, "n_users": 99, "user_running": 38, "user_queued": 76}, IN),
    ({}, HEAVY | {"running": 263, "n_users": 99, "user_running": 38, "user_queued": 77}, "-user_limit"),
    ({"merge": True}, HEAVY | {"user_queued": 61}, IN),
    ({}, HEAVY | {"activated": 99, "user_queued": 99}, IN),
    ({}, HEAVY | {"starts_per_hour": 63.0, "user_queued": 400}, IN),
    ({"processing_type": "reco"}, {"fairsharepolicy": "type=evgensimul:100%"}, "-zeroshare"),
    ({"processing_type": "reco", "site": "Q"}, {"fairsharepolicy": "type=evgensimul:100%"}, IN),
    ({"io_intensity": 101}, {"max_io_intensity": 100}, "-max_io_intensity"),
    ({"direct_access_only": True}, {}, "-remoteio"),
    ({"usage": Usage(full_storages=("DISK",))}, {"storage": "DISK"}, "-local_quota"),
    ({"usage": Usage(full_storages=("DISK",))}, {"storage": "DISK2"}, IN),
    ({"scout": True}, {"maxtime": 86_399}, "-scout_walltime"),
    ({"cpu_time": None}, {"maxtime": 86_399}, "-min_walltime"),
    ({"cpu_time": None}, {"maxtime": 86_400}, IN),
    ({"cloud": "DE"}, {"cloud": "FR"}, "-cloudmismatch"),
    ({"cloud": "WORLD"}, {"cloud": "FR"}, IN),
    ({}, {"unified_name": "FR_HOSPITAL", NEAR: {}}, "-hospital"),
    ({}, {"unified_name": "FR_HOSPITAL", NEAR: {"gpu": True}}, IN),
    ({"task_priority": 2000}, {"use_only_local_data": True, "missing_files": 1}, "-fileunavailable"),
    ({"usage": Usage(quota_exceeded=True)}, {}, "-disk_quota"),
]


def one_case(asked: dict[str, Any], columns: dict[str, Any], keys: dict[str, Any]) -> str:
    task, config = ask(**{**TASK, **asked}), {**CONFIG, **keys}
    beside = [{"name": NEAR, **GOOD, **columns[NEAR]}] if NEAR in columns else []
    own = {column: value for column, value in columns.items() if column != NEAR}
    table = Queues.from_rows([{"name": "Q", **GOOD, **own}, *beside])
    decision = decide(Analysis, task, table, config, "1")
    found = skips(decision, Analysis, task, table, config)
    assert all(skip.reason for skip in found.values())
    used = json.loads(json.dumps(config_of(Analysis, config)))
    assert replay(decode(encode(decision, Analysis)), Analysis, task, table, used) == encode(decision, Analysis)
    return found["Q"].criterion if "Q" in found else IN


@pytest.mark.parametrize(("asked", "columns", "skipped"), CASES, ids=[f"{case[2]} {case[0]} {case[1]}" for case in CASES])
def test_one_criterion_decides_at_its_limit(asked: dict[str, Any], columns: dict[str, Any], skipped: str) -> None:
    assert one_case(asked, columns, {}) == skipped


@pytest.mark.parametrize(
    ("asked", "columns", "keys", "skipped"),
    [
        ({"io_intensity": 100}, {"missing_files": 1, NEAR: {}}, {"IO_INTENSITY_CUTOFF_USER": 100}, IN),
        ({"io_intensity": 101}, {"missing_files": 1, NEAR: {}}, {"IO_INTENSITY_CUTOFF_USER": 100}, "-locality"),
        ({}, {"missing_files": 1, NEAR: {}}, {"IO_INTENSITY_CUTOFF_USER": 100}, "-locality"),
        ({"waits_s": 61.0}, {"missing_files": 1, NEAR: {}}, {"DATA_CHECK_TIMEOUT_USER": 60.0}, IN),
        ({"waits_s": 60.0}, {"missing_files": 1, NEAR: {}}, {"DATA_CHECK_TIMEOUT_USER": 60.0}, "-locality"),
        ({}, {"activated": 41}, {"OVERLOAD_BY_RATIO": True}, IN),
        ({}, {"activated": 41, NEAR: {"running": 9}}, {"OVERLOAD_BY_RATIO": True}, "-overloaded"),
        ({}, {"activated": 20, NEAR: {"running": 9}}, {"OVERLOAD_BY_RATIO": True}, IN),
        (
            {},
            {"activated": 50, "running": 10, NEAR: {"activated": 10, "running": 10}},
            {"OVERLOAD_BY_RATIO": True},
            "-overloaded",
        ),
        ({}, {"activated": 22, "running": 10, NEAR: {"activated": 20, "running": 10}}, {"OVERLOAD_BY_RATIO": True}, IN),
        ({"usage": Usage(running_jobs=8)}, {}, {"CAP_RUNNING_USER_JOBS": 8}, IN),
        ({"usage": Usage(running_jobs=9)}, {}, {"CAP_RUNNING_USER_JOBS": 8}, "-cap_running_jobs"),
        ({"usage": Usage(running_jobs=9), "merge": True}, {}, {"CAP_RUNNING_USER_JOBS": 8}, IN),
        ({"usage": Usage(running_jobs=9)}, {}, {"CAP_RUNNING_GROUP_JOBS": 8}, IN),
        ({"usage": Usage(running_jobs=9), "working_group": "HIGG"}, {}, {"CAP_RUNNING_GROUP_JOBS": 8}, "-cap_running_jobs"),
        ({"usage": Usage(queued_jobs=16)}, {}, {"CAP_RUNNING_USER_JOBS": 8}, IN),
        ({"usage": Usage(queued_jobs=17)}, {}, {"CAP_RUNNING_USER_JOBS": 8}, "-cap_queued_jobs"),
        ({"usage": Usage(running_cores=9)}, {}, {"CAP_RUNNING_USER_CORES": 8}, "-cap_running_cores"),
        ({"usage": Usage(queued_cores=17)}, {}, {"CAP_RUNNING_USER_CORES": 8}, "-cap_queued_cores"),
        ({"prod_source_label": "user"}, {"running": 9}, {"MIN_WEIGHT_user": 10.5}, "-below_min_weight"),
    ],
)
def test_what_the_configuration_changes(
    asked: dict[str, Any], columns: dict[str, Any], keys: dict[str, Any], skipped: str
) -> None:
    assert one_case(asked, columns, keys) == skipped


def test_every_criterion_has_a_case_that_it_decides() -> None:
    shown = {case[2].removeprefix("-") for case in CASES} | {"cap_running_jobs", "cap_queued_jobs"}
    shown |= {"cap_running_cores", "cap_queued_cores", "no_weight", "below_min_weight", "low_weight"}
    assert {criterion.label for criterion in Analysis.criteria} <= shown


def test_queues_without_the_input_are_taken_where_lasting_issues_rule_out_those_with_it() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "FAR", **GOOD, "missing_files": 5},
        {"name": "HOME", **GOOD, "maxrss": 10},
        {"name": "FULL", "status": "test"},
    ]
    task = ask(**TASK, ram_count=2000)
    table = Queues.from_rows(rows)
    decision = decide(Analysis, task, table, CONFIG, "1")
    assert [choice.name for choice in decision.chosen] == ["FAR"]
    told = explain(decode(encode(decision, Analysis)), Analysis, task, table, CONFIG)
    assert told.eased == ("-locality",)
    assert {skip.name: skip.criterion for skip in told.skipped} == {"HOME": "-lowmemory", "FULL": "-status"}


def test_a_temporary_issue_where_the_input_is_makes_the_task_wait_for_twenty_minutes() -> None:
    rows: list[dict[str, Any]] = [{"name": "FAR", **GOOD, "missing_files": 5}, {"name": "HOME", **GOOD, "activated": 41}]
    decision = decide(Analysis, ask(**TASK), Queues.from_rows(rows), CONFIG, "1")
    assert (decision.outcome, decision.wait_s, decision.closest, decision.eased) == ("pending", 1200.0, "HOME", ())


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([{"name": "DISK"}, {"name": "TAPE", "missing_files": 9, "tape_files": 9}], ["DISK"]),
        ([{"name": "TAPE", "missing_files": 9, "tape_files": 9}, {"name": "FAR", "missing_files": 9}], ["TAPE"]),
        ([{"name": "HALF", "missing_files": 9, "whole_datasets": 1}, {"name": "FAR", "missing_files": 9}], ["HALF"]),
        ([{"name": "CACHE", "missing_files": 9, "virtual": True}, {"name": "FAR", "missing_files": 9}], ["CACHE"]),
        ([{"name": "A", "missing_files": 9}, {"name": "B", "missing_files": 9}], ["A", "B"]),
    ],
)
def test_the_nearest_kind_of_input_is_taken(rows: list[dict[str, Any]], chosen: list[str]) -> None:
    table = Queues.from_rows([{**GOOD, **row} for row in rows])
    decision = decide(Analysis, ask(**TASK), table, CONFIG, "1")
    assert [choice.name for choice in decision.chosen] == chosen


def test_a_worked_example() -> None:
    rows = [
        {"name": "BUSY", "running": 99, "activated": 30, "assigned": 10, "starting": 5, "defined": 4},
        {"name": "IDLE", "n_batch": 15},
    ]
    decision = decide(Analysis, ask(**TASK), Queues.from_rows([{**GOOD, **row} for row in rows]), CONFIG, "1")
    assert [(choice.name, choice.weight) for choice in decision.chosen] == [("IDLE", 16.0), ("BUSY", 2.0)]
