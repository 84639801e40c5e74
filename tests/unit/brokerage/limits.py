"""For each criterion of each policy the case in which it alone decides: at its limit, just inside and just outside.

A criterion is named by policy, label and how many of that label stand before it in the policy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

from brokerage.rules.facts.ask import Usage
from brokerage.rules.grid.output_storages import OutputStorage, written

Values = dict[str, Any]

DISK = written([OutputStorage("DISK", "DATADISK", 9000.0, True, True)])
RELEASE = json.dumps({"cvmfs": ["atlas"], "containers": ["any"], "cmtconfigs": ["x86_64-el9"]})
CPU = json.dumps({"architectures": [{"type": "cpu", "arch": ["x86_64"]}], "containers": ["any"], "cvmfs": ["any"]})


@dataclass(frozen=True)
class Limit:
    """What the candidate, the task or the configuration says where the criterion passes and where it does not.

    `vary` names a column of the candidate, a value of the task or a key of the configuration; `values` are just inside, at and
    just outside the limit. `at` says whether the limit itself passes. The rest holds in all three; `near` is a second candidate.
    """

    vary: str
    values: tuple[Any, Any, Any]
    at: bool
    same: Values = field(default_factory=dict)
    near: Values | None = None

    def cases(self) -> list[tuple[Values, bool]]:
        """What is said, and whether the criterion passes."""
        inside, at, outside = self.values
        return [(self.same | {self.vary: value}, passes) for value, passes in ((inside, True), (at, self.at), (outside, False))]


@dataclass(frozen=True)
class Switch:
    """The same for a criterion that knows no distance: one side and the other."""

    inside: Values
    outside: Values
    near: Values | None = None

    def cases(self) -> list[tuple[Values, bool]]:
        """What is said, and whether the criterion passes."""
        return [(self.inside, True), (self.outside, False)]


Case = Limit | Switch
Named = tuple[str, int]

NINE_HUNDRED = {"ram_count": 1000, "ram_unit": "MB"}
LONG = {"cpu_time": 9, "events": 1000, "base_walltime": 600}
TWO_TASKS = {"prod_source_label": "managed", "running": 9}
ZERO_SHARE = {"fairsharepolicy": "type=evgensimul:100%"}
MUCH = {"gb": 100.0, "files": 101, "io_intensity": 201}

AT_S = {"queue_site": "S"}
OFFERED: Values = {"queue_site": "S", "stations": ("st1",)}

ALL_BROKERS: dict[Named, Case] = {
    ("banned_site", 0): Switch(AT_S | {"banned_sites": ("R", "S*")}, AT_S | {"banned_sites": ("R", "S")}),
    ("no_station", 0): Switch(OFFERED | {"station_sites": ("R", "S")}, OFFERED | {"station_sites": ("R",)}),
}

BOTH_BROKERS: dict[Named, Case] = ALL_BROKERS | {
    ("diskIO", 0): Limit("disk_io_task", (99, 100, 101), True, {"maxdiskio": 100, "disk_io": 101}),
    ("cpucore", 0): Limit("corecount", (3, 2, 1), True, {"core_count": 8}),
    ("max_cpucore", 0): Limit("corecount", (15, 16, 17), True, {"core_count": 8, "max_core_count": 16}),
    ("regexpcmtconfig", 0): Switch(
        {"any_release": False, "software": RELEASE, "architecture": "x86_64-el[89]"},
        {"any_release": False, "software": RELEASE, "architecture": "x86_64-el[67]"},
    ),
    ("cache", 0): Switch(
        {"any_release": False, "software": RELEASE, "architecture": "x86_64-el9", "release": "A-1"},
        {"any_release": False, "software": "", "architecture": "x86_64-el9", "release": "A-1"},
    ),
    ("cache", 1): Switch(
        {"any_release": False, "software": RELEASE, "container_name": "img"},
        {"any_release": False, "software": "", "container_name": "img"},
    ),
    ("cache", 2): Switch({"software": CPU, "architecture": "#x86_64"}, {"software": CPU, "architecture": "#arm64"}),
    ("lowmemory", 0): Limit("maxrss", (900.1, 900, 899.9), True, NINE_HUNDRED),
    ("highmemory", 0): Limit("minrss", (899.9, 900, 900.1), True, NINE_HUNDRED),
    ("remoteio", 0): Switch(
        {"direct_access_only": True, "direct_access_lan": True}, {"direct_access_only": True, "direct_access_lan": False}
    ),
    ("shortwalltime", 0): Limit("maxtime", (1600.1, 1600, 1599.9), False, LONG),
    ("longwalltime", 0): Limit("walltime_s", (1800.1, 1800, 1799.9), True, {"mintime": 1800}),
    ("min_walltime", 0): Limit("maxtime", (86_401, 86_400, 86_399), True, {"cpu_time": None}),
    ("zeroshare", 0): Switch(ZERO_SHARE | {"processing_type": "simul"}, ZERO_SHARE | {"processing_type": "reco"}),
    ("max_io_intensity", 0): Limit("io_intensity", (99.9, 100, 100.1), True, {"max_io_intensity": 100}),
    ("nopilot", 0): Limit("requests_3h", (2, 1, 0), True),
}

PRODUCTION: dict[Named, Case] = BOTH_BROKERS | {
    ("nonpreassigned", 0): Switch({"site": "Q"}, {"site": "R"}),
    ("test", 0): Switch({"name": "Q_TST"}, {"name": "Q_tEsT"}),
    ("type", 0): Switch({"type": "production"}, {"type": "analysis"}),
    ("status", 0): Switch({"status": "online"}, {"status": "standby"}),
    ("link_unusable", 0): Limit("closeness", (1, 0, -1), True),
    ("link_unusable", 1): Limit("link_files", (299, 300, 301), True),
    ("links_full", 0): Limit("nucleus_files", (9_999, 10_000, 10_001), True),
    ("not_nucleus", 0): Limit("priority", (798, 799, 800), True),
    ("inactive", 0): Limit("idle_s", (7199, 7200, 7201), True, {"merge": True, "activated": 1, "running": 1}),
    ("io", 0): Limit("gb", (9.9, 10.0, 10.1), False, {"io_intensity": 201, "missing_files": 99}, near={"available_gb": 99.0}),
    ("disk", 0): Limit("maxwdir", (12_001, 12_000, 11_999), False, {"gb": 1.0, "core_count": 8, "corecount": 8}),
    ("disk", 1): Limit("space_gb", (200.1, 200, 199.9), False),
    ("read_lan_blacklist", 0): Switch({"read_lan_ok": True}, {"read_lan_ok": False}),
    ("write_lan_blacklist", 0): Switch({"write_lan_ok": True}, {"write_lan_ok": False}),
    ("write_wan_blacklist", 0): Switch({"write_wan_ok": True}, {"write_wan_ok": False}),
    ("read_wan_blacklist", 0): Switch({"read_wan_ok": True}, {"read_wan_ok": False}),
    ("source_blacklist", 0): Switch({"source_ok": True, "missing_files": 1}, {"source_ok": False, "missing_files": 1}),
    ("scout_walltime", 0): Limit("maxtime", (86_401, 86_400, 86_399), True, {"scout": True, "at_nucleus": True}),
    ("network", 0): Switch({"ip_stack": "IPv6", "wnconnectivity": "full#IPv6"}, {"ip_stack": "IPv6", "wnconnectivity": "full"}),
    ("transferring", 0): Limit("transferring", (1_999, 2_000, 2_001), True, {"running": 1_000}),
    ("t1weight", 0): Switch({"t1_weight": -1, "at_nucleus": True}, {"t1_weight": -1, "at_nucleus": False}),
    ("lowNetworkWeight", 0): Limit(
        # 0.5 x (2 - 90 / 300 + throughput): 1.75 above 75, 1.7 above 50, 1.6 below.
        "mbps",
        (75.1, 50.1, 50.0),
        True,
        {"processing_type": "urgent", "link_files": 90},
    ),
    ("dest_blacklisted", 0): Switch({"nucleus_ok": True}, {"nucleus_ok": False}),
    ("opportunistic", 0): Limit(
        "pledgedcpu", (1, 0, -1), True, {"priority": 800, "at_nucleus": True, "REJECT_OPPORTUNISTIC": True}
    ),
    ("non_pledged", 0): Limit("pledgedcpu", (1, 0, -1), True, {"WORK_SHORTAGE": True}),
    ("over_pledged", 0): Limit("running_cores", (7, 8, 9), True, {"pledgedcpu": 8, "WORK_SHORTAGE": True}),
    ("non_local", 0): Limit("missing_files", (0, 0, 1), True, {"use_only_local_data": True}),
    ("excluded", 0): Switch({"excluded_sites": ("R",)}, {"excluded_sites": ("Q",)}),
    ("notincluded", 0): Switch({"included_sites": ("Q",)}, {"included_sites": ("R",)}),
    ("cap_activated", 0): Limit(
        "activated", (19, 20, 21), True, {"running": 10, "NQUEUELIMITSITE": 0, "skips_too": "cap_queued"}
    ),
    ("cap_queued", 0): Limit("defined", (3, 4, 5), True, {"running": 10, "activated": 16}),
    ("no_weight", 0): Switch({"gb": 1.0, "available_gb": 1.0}, {"gb": 1.0, "available_gb": nan}),
    ("below_min_weight", 0): Limit("MIN_WEIGHT_managed", (1.64, 1.65, 1.66), True, TWO_TASKS),
    ("low_weight", 0): Limit("running", (10, 9, 8), False, {"BEST_PRODUCTION": 1}, near={"running": 9}),
}

CAPPED = {"CAP_RUNNING_USER_JOBS": 8, "CAP_RUNNING_USER_CORES": 8}
USER_LIMIT = {"activated": 500, "running": 300, "n_users": 10, "starts_per_hour": 20.0}


def _used(what: str, numbers: tuple[int, int, int]) -> Limit:
    said: list[Values] = [{what: number} for number in numbers]
    inside, at, outside = (replace(Usage(), **one) for one in said)
    return Limit("usage", (inside, at, outside), True, CAPPED)


ANALYSIS: dict[Named, Case] = BOTH_BROKERS | {
    ("cap_running_jobs", 0): _used("running_jobs", (7, 8, 9)),
    ("cap_queued_jobs", 0): _used("queued_jobs", (15, 16, 17)),
    ("cap_running_cores", 0): _used("running_cores", (7, 8, 9)),
    ("cap_queued_cores", 0): _used("queued_cores", (15, 16, 17)),
    ("disk_quota", 0): Switch({"usage": Usage()}, {"usage": Usage(quota_exceeded=True)}),
    ("type", 0): Switch({"type": "analysis"}, {"type": "production"}),
    ("excluded", 0): Switch({"excluded_sites": ("R",)}, {"excluded_sites": ("Q",)}),
    ("notincluded", 0): Switch({"included_sites": ("Q",)}, {"included_sites": ("R",)}),
    ("nonpreassigned", 0): Switch({"site": "Q"}, {"site": "R"}),
    ("status", 0): Switch({"status": "online"}, {"status": "brokeroff"}),
    ("locality", 0): Limit("task_priority", (2001, 2000, 1999), True, {"missing_files": 1}, near={}),
    ("vp", 0): Switch({"avoid_vp": True, "virtual": False}, {"avoid_vp": True, "virtual": True}),
    ("overloaded_vp", 0): Limit("activated", (39, 40, 41), True, {"virtual": True, "merge": True}),
    ("gpu", 0): Switch(
        {"gpu": True, "architecture": "x86_64-el9", "software": RELEASE}, {"gpu": True, "architecture": "x86_64-el9"}
    ),
    ("disk", 0): Limit("maxwdir", (2_001, 2_000, 1_999), False, {"gb": 2.0}),
    ("disk", 1): Limit("space_gb", (200.1, 200, 199.9), False),
    ("disk", 2): Limit("input_space_gb", (200.1, 200, 199.9), False, {"missing_files": 1, "task_priority": 2000}),
    ("blacklist", 0): Switch({"read_wan_ok": True}, {"read_wan_ok": False}),
    ("closed", 0): Limit("task_closed", (0, 0, 1), True),
    ("badsite", 0): Limit("task_failed", (4, 5, 6), False),
    ("overloaded", 0): Limit("activated", (39, 40, 41), True, {"running": 20}),
    ("user_limit", 0): Limit("user_queued", (59, 60, 61), True, USER_LIMIT),
    ("local_quota", 0): Switch({"usage": Usage(full_storages=("D",))}, {"usage": Usage(full_storages=("D",)), "storage": "D"}),
    ("scout_walltime", 0): Limit("maxtime", (86_401, 86_400, 86_399), True, {"scout": True}),
    ("cloudmismatch", 0): Switch({"cloud_task": "DE", "cloud": "DE"}, {"cloud_task": "DE", "cloud": "FR"}),
    ("hospital", 0): Switch({"unified_name": "A_HOSPITAL_NO"}, {"unified_name": "A_HOSPITAL"}, near={}),
    ("fileunavailable", 0): Limit("missing_files", (0, 0, 1), True, {"use_only_local_data": True, "task_priority": 2000}),
    ("below_min_weight", 0): Limit("MIN_WEIGHT_user", (9.9, 10, 10.1), True, {"prod_source_label": "user", "running": 9}),
    ("low_weight", 0): Limit("running", (10, 9, 8), False, {"BEST_ANALYSIS": 1}, near={"running": 9}),
}

GENERIC: dict[Named, Case] = ALL_BROKERS | {
    ("nonpreassigned", 0): Switch({"site": "Q"}, {"site": "R"}),
    ("excluded", 0): Switch({"excluded_sites": ("R",)}, {"excluded_sites": ("Q",)}),
    ("notincluded", 0): Switch({"included_sites": ("Q",)}, {"included_sites": ("R",)}),
    ("status", 0): Switch({"status": "online"}, {"status": "test"}),
    ("disk", 0): Limit("maxwdir", (2_001, 2_000, 1_999), True, {"out_disk_count": 500, "out_disk_unit": "MB", "gb": 1.5}),
    ("disk", 1): Limit("space_gb", (200.1, 200, 199.9), True),
    ("shortwalltime", 0): Limit("maxtime", (1600.1, 1600, 1599.9), True, LONG),
    ("longwalltime", 0): Limit("walltime_s", (1800.1, 1800, 1799.9), True, {"mintime": 1800}),
    ("cpucore", 0): Limit("corecount", (9, 8, 7), True, {"core_count": 8}),
    ("lowmemory", 0): Limit("maxrss", (1000.1, 1000, 999.9), True, NINE_HUNDRED),
    ("highmemory", 0): Limit("minrss", (999.9, 1000, 1000.1), True, NINE_HUNDRED),
    ("processing", 0): Switch(
        {"processing_type": "reco", "allowed_processing": "simul|reco"}, {"processing_type": "eco", "allowed_processing": "reco"}
    ),
    ("nopilot", 0): Limit("requests_3h", (2, 1, 0), True),
    ("low_weight", 0): Limit("running", (10, 9, 8), False, {"BEST_GENERIC": 1}, near={"running": 9}),
}

NUCLEUS: dict[Named, Case] = {
    ("nonpreassigned", 0): Switch({"nucleus": "Q"}, {"nucleus": "R"}),
    ("status", 0): Switch({"state": "ACTIVE"}, {"state": "TEST"}),
    ("space", 0): Limit("free_gb", (5000.1, 5000, 4999.9), False),
    ("insize", 0): Limit("available_gb", (10.1, 10.0, 9.9), True, MUCH | {"available_files": 11}),
    ("innum", 0): Limit("available_files", (12, 11, 10), True, MUCH | {"available_gb": 10.0}),
    ("job", 0): Limit("able_queues", (2, 1, 0), True),
    ("transfer_backlog", 0): Limit("files_queued", (1_998, 1_999, 2_000), True),
    ("match", 0): Switch({"output_tokens": ("DISK",), "storages": DISK}, {"output_tokens": ("TAPE",), "storages": DISK}),
    ("source_blacklist", 0): Switch({"can_send": True}, {"can_send": False}),
    ("destination_blacklist", 0): Switch({"can_receive": True}, {"can_receive": False}),
    ("no_weight", 0): Switch({"gb": 1.0, "available_gb": 1.0}, {"gb": 1.0, "available_gb": nan}),
    # One is drawn: with these weights always the same.
    ("low_weight", 0): Switch({"ahead_rw": 0.0}, {"ahead_rw": 1e300}, near={"ahead_rw": 1e100}),
}
