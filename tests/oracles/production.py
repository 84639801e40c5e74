"""The production broker a second time, queue by queue in plain Python, written from the document and not from our columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brokerage.rules.facts.ask import Ask
from tests.oracles.generic import means, megabytes, merged, unmatched, walltime

Row = Mapping[str, Any]
DAY, HOUR = 86400, 3600

MANY: dict[str, list[Any]] = {
    "site": ["A", "B"],
    "type": ["unified"] * 5 + ["analysis"],
    "status": ["online"] * 8 + ["test"],
    "corecount": [0, 1, 1, 8, 8],
    "corepower": [0.0, 10.0],
    "maxrss": [0.0, 0.0, 2000.0, 16000.0],
    "minrss": [0.0, 0.0, 0.0, 2001.0],
    "maxtime": [0, 0, 43200, 86400],
    "mintime": [0, 0, 0, 1800],
    "maxwdir": [0, 0, 8000, 80000],
    "maxdiskio": [0, 0, 100],
    "max_io_intensity": [0, 0, 0, 300],
    "transferringlimit": [0, 10],
    "fairsharepolicy": ["", "", "", "type=evgensimul:100%"],
    "wnconnectivity": ["full", "full", "none", ""],
    "use_only_local_data": [False, False, False, True],
    "direct_access_lan": [False, True, True],
    "space_gb": [5000, 5000, 5000, 200, 201, None],
    "read_lan_ok": [True] * 9 + [False],
    "write_lan_ok": [True] * 9 + [False],
    "read_wan_ok": [True] * 9 + [False],
    "write_wan_ok": [True] * 9 + [False],
    "allow_no_pilot": [False, False, True],
    "requests_3h": [0, 5, 5, 5],
    "idle_s": [None, 60.0, 7200.0, 7201.0],
    "disk_io": [0, 0, 150],
    "n_batch": [0, 0, 15, 90],
    "num_slots": [None, None, 0, 25],
    "at_nucleus": [False, True],
    "nucleus_ok": [True] * 9 + [False],
    "nucleus_files": [0, 0, 0, 10000, 10001],
    "link_files": [0, 0, 150, 300, 301],
    "closeness": [None, 0, 4, 4, -1],
    "mbps": [None, 15.0, 200.0, 250.0],
    "source_ok": [True] * 9 + [False],
    "available_gb": [0.0, 4.0],
    "missing_files": [0, 0, 5, 100],
    "tape_gb": [0.0, 0.0, 12.0],
    "tape_files": [0, 0, 5],
    "others_waiting": [0, 0, 1],
    "others_running": [0, 0, 60],
    "defined": [0, 0, 5],
    "assigned": [0, 0, 30],
    "activated": [0, 5, 40],
    "starting": [0, 0, 15],
    "running": [0, 10, 50],
    "transferring": [0, 0, 10, 101],
}
TASKS: dict[str, list[Any]] = {
    "processing_type": ["simul", "reco", "reco", "urgent"],
    "priority": [500, 500, 500, 800, 900, 1000],
    "site": [None] * 6 + ["Q1", "A, Q2*"],
    "nucleus": ["N"],
    "included_sites": [(), (), (), (), ("A", "B", "Q*1")],
    "excluded_sites": [(), (), (), ("Q2*",)],
    "banned_sites": [(), (), (), ("A",), ("C", "B")],
    "stations": [(), (), (), ("st1",)],
    "station_sites": [(), ("A",), ("B", "C")],
    "merge_core_count": [None, None, 8],
    "merge_ram_count": [None, None, 1800, 3000],
    "chunk_ram": [None, None, 1800],
    "core_count": [None, 0, 1, 8],
    "max_core_count": [None, None, None, 4],
    "ram_count": [None, 1500, 2100],
    "ram_unit": ["MB", "MBPerCore"],
    "base_ram_count": [None, 500],
    "cpu_time": [None, 10, 100],
    "cpu_efficiency": [None, 0, 90],
    "base_walltime": [None, 1800],
    "out_disk_count": [None, 500],
    "out_disk_unit": ["kB", "kBPerEvent"],
    "work_disk_count": [None, 1000],
    "io_intensity": [None, 100, 250, 500],
    "disk_io": [None, 120, 1200],
    "ip_connectivity": [None, None, "http"],
    "direct_access_only": [False, False, False, True],
    "t1_weight": [0, 0, 2.5, -1],
    "scout": [False, False, False, True],
    "merge": [False, False, False, True],
    "events": [0, 1000, 100_000],
    "gb": [0.0, 4.0, 20.0],
}
"""The values that random queues and tasks are made of."""


def running(row: Row) -> int:
    """Jobs that count as running."""
    found = [row["running"]]
    if row["running"] < 20 and row["n_batch"] > row["running"]:
        found.append(min(row["n_batch"], 20))
    if row["num_slots"] is not None and row["num_slots"] > 0:
        found.append(row["num_slots"])
    if row["num_slots"] == 0:
        found.append(row["starting"])
    return int(max(found))


def network(row: Row, cap: float = 300) -> float:
    """The network weight of the link."""
    if row["at_nucleus"]:
        return 2.5
    queued = 2 - min(row["link_files"], cap) / cap
    if row["mbps"] is None:
        closeness = 7.7 if row["closeness"] is None or row["closeness"] < 0 else row["closeness"]
        return float(0.5 * (queued + 1 + (11 - closeness) / 11))
    steps = [(200, 2.0), (100, 1.9), (75, 1.8), (50, 1.7), (20, 1.5), (10, 1.3), (2, 1.2), (1, 1.1)]
    speed = next((weight for least, weight in steps if row["mbps"] > least), 1.0)
    return float(0.5 * (queued + speed))


def need_mb(ask: Ask, row: Row) -> float:
    """Scratch disk of a job."""
    size = ask.chunk.gb * 1000
    unit = ask.out_disk_unit or ""
    scale = ask.chunk.n_events if unit.endswith("PerEvent") else size
    output = max(500.0, megabytes(ask.out_disk_count, unit) * scale)
    return (0 if row["direct_access_lan"] else size) + output + megabytes(ask.work_disk_count, ask.work_disk_unit)


def one_place(ask: Ask) -> bool:
    """Whether the task names exactly one place."""
    return ask.site is not None and "," not in ask.site


def far(ask: Ask, row: Row, *, tape: bool) -> bool:
    """Whether too much input of a task with much I/O is missing; tape counts as there or not."""
    gb, files = (row["tape_gb"], row["tape_files"]) if tape else (0, 0)
    judged = (ask.io_intensity or 0) > 200 and not ask.merge and not one_place(ask)
    return judged and (ask.chunk.gb - row["available_gb"] - gb >= 10 or row["missing_files"] - files >= 100)


TEMPORARY = {
    *("link_full", "links_full", "inactive", "diskIO", "space", "transferring", "nopilot", "lowNetworkWeight"),
    *("read_lan_blacklist", "write_lan_blacklist", "write_wan_blacklist", "read_wan_blacklist", "source_blacklist"),
    *("dest_blacklisted", "cap_activated", "cap_queued"),
}
SHOWN = {"link_full": "link_unusable", "space": "disk"}
"""Labels that are told apart here, as one of their two criteria is temporary."""


def failing_all(ask: Ask, rows: Sequence[Row]) -> dict[str, list[str]]:
    """The labels of every queue; -io gives way, to tape or at all, where it is what keeps every queue away."""
    ask = merged(ask)
    found = {row["name"]: failing(ask, row) for row in rows}
    able = [row for row in rows if not set(found[row["name"]]) - TEMPORARY - {"io"}]
    still_far = [far(ask, row, tape=False) for row in able]
    if able and all(still_far):
        on_tape = not all(far(ask, row, tape=True) for row in able)
        for row in rows:
            labels = found[row["name"]]
            if "io" in labels and not (on_tape and far(ask, row, tape=True)):
                labels.remove("io")
    return {name: [SHOWN.get(label, label) for label in labels] for name, labels in found.items()}


def last(ask: Ask, row: Row) -> list[tuple[str, bool]]:
    """The late cuts, and the checks that only practice has."""
    limit = max(20, 2 * running(row))
    waiting = row["activated"] + row["starting"]
    queued = waiting + row["defined"] + (row["assigned"] if row["missing_files"] else 0)
    return [
        ("cap_activated", waiting > limit),
        ("cap_queued", queued > limit),
        ("dest_blacklisted", not row["nucleus_ok"] and not row["at_nucleus"]),
        ("longwalltime", (walltime(ask, row) or 0) < row["mintime"]),
        ("max_io_intensity", not ask.merge and 0 < row["max_io_intensity"] < (ask.io_intensity or 0)),
        ("non_local", row["use_only_local_data"] and row["missing_files"] > 0),
        ("excluded", ask.site is None and means(ask.excluded_sites, row)),
        ("notincluded", ask.site is None and bool(ask.included_sites) and not means(ask.included_sites, row)),
        *unmatched(ask, row),
    ]


def failing(ask: Ask, row: Row) -> list[str]:
    """The labels of every criterion that the queue fails, in the order of the policy; software is not among them."""
    named, single = ask.site is not None, one_place(ask)
    nucleus = row["at_nucleus"]
    high = ask.priority >= 800 or ask.scout
    urgent = ask.priority >= 1000 or ask.processing_type == "urgent"
    slots = max(row["corecount"], 1)
    wanted = 1 if ask.core_count is None else ask.core_count
    many = wanted > 1 or (wanted == 0 and (ask.priority >= 900 or ask.scout))
    cores = row["corecount"] if row["corecount"] > 0 else max(wanted, 1)
    judges_memory = bool(ask.ram_count or ask.base_ram_count)
    memory = 0.9 * ((ask.base_ram_count or 0) + (ask.ram_count or 0) * (cores if ask.ram_unit == "MBPerCore" else 1))
    time = walltime(ask, row)
    short = 0 < row["maxtime"] < DAY
    all_running = row["running"] + row["others_running"]
    all_waiting = row["activated"] + row["starting"] + row["others_waiting"]
    disk_limit = row["maxdiskio"] or 1e10
    disk_io = (ask.disk_io or 0) / (1 if wanted == 1 else slots)
    verdicts = [
        ("nonpreassigned", named and not means((ask.site or "").split(","), row)),
        ("test", not named and "test" in row["name"].lower()),
        ("type", not named and row["type"] == "analysis"),
        ("status", not named and row["status"] != "online"),
        ("link_unusable", row["closeness"] == -1 and not nucleus),
        ("link_full", row["link_files"] > 300 and not nucleus),
        ("links_full", row["nucleus_files"] > 10000),
        ("not_nucleus", high and not nucleus),
        ("inactive", (high or ask.merge) and row["idle_s"] is not None and row["idle_s"] > 2 * HOUR and all_waiting > 0),
        ("zeroshare", row["fairsharepolicy"] == "type=evgensimul:100%" and ask.processing_type not in ("evgen", "simul")),
        ("io", far(ask, row, tape=False)),
        ("diskIO", row["disk_io"] > disk_limit and disk_io > disk_limit),
        ("cpucore", not single and (row["corecount"] <= 1 if many else wanted == 1 and row["corecount"] > 1)),
        ("max_cpucore", not single and ask.max_core_count is not None and row["corecount"] > ask.max_core_count),
        ("lowmemory", judges_memory and row["maxrss"] != 0 and memory > row["maxrss"]),
        ("highmemory", judges_memory and memory < row["minrss"]),
        ("remoteio", ask.direct_access_only and not row["direct_access_lan"] and not ask.merge),
        ("disk", row["maxwdir"] != 0 and row["maxwdir"] / slots <= need_mb(ask, row)),
        ("space", (row["space_gb"] or 0) <= 200),
        ("read_lan_blacklist", not row["read_lan_ok"]),
        ("write_lan_blacklist", not row["write_lan_ok"]),
        ("write_wan_blacklist", not row["write_wan_ok"] and not (nucleus and not row["missing_files"])),
        ("read_wan_blacklist", not row["read_wan_ok"] and not (nucleus and not row["missing_files"])),
        ("source_blacklist", not row["source_ok"]),
        ("scout_walltime", ask.scout and short and not single),
        ("min_walltime", (ask.merge or not ask.cpu_time) and short),
        ("shortwalltime", time is not None and row["maxtime"] != 0 and time >= row["maxtime"]),
        ("network", row["wnconnectivity"] == "none" and ask.ip_connectivity == "http"),
        ("transferring", row["transferring"] > max(row["transferringlimit"] or 2000, 2 * all_running)),
        ("t1weight", ask.t1_weight == -1 and not ask.merge and not nucleus),
        ("nopilot", row["requests_3h"] == 0 and not row["allow_no_pilot"]),
        ("lowNetworkWeight", urgent and network(row) < 1.7),
        *last(ask, row),
    ]
    return [label for label, fails in verdicts if fails]


def factors(ask: Ask, row: Row) -> list[float]:
    """The factors of the weight."""
    local = row["missing_files"] == 0
    if local:
        crowd, assigned = 1.0, 0
    else:
        assigned = row["assigned"]
        ratio = assigned / row["activated"] if row["activated"] else assigned + 1
        crowd = max(1.0, min(2.0, ratio))
    load = (running(row) + 1) / ((row["activated"] + assigned + row["starting"] + row["defined"] + 10) * crowd)
    total = ask.chunk.gb
    data = (row["available_gb"] + total) / (total * (row["missing_files"] / 100 + 1)) if total else 1.0
    t1 = max(ask.t1_weight, 0) or (4 if ask.t1_weight == 0 and (ask.io_intensity or 0) >= 500 else 1)
    if (ask.priority >= 900 or ask.scout) and ask.site is None:
        t1 = max(t1, 100)
    return [load, data, t1 if row["at_nucleus"] else 1.0, network(row)]


def decide(ask: Ask, rows: Sequence[Row]) -> tuple[list[tuple[str, list[float]]], dict[str, list[str]]]:
    """The ten best with their factors, and the failing labels of every other queue."""
    failed = failing_all(ask, rows)
    weights: dict[str, float] = {}
    for row in rows:
        load, data, t1, link = factors(ask, row)
        weights[row["name"]] = load * data * t1 * link
    passing = sorted((row for row in rows if not failed[row["name"]]), key=lambda row: (-weights[row["name"]], row["name"]))
    for row in passing[10:]:
        failed[row["name"]] = ["low_weight"]
    return [(row["name"], factors(ask, row)) for row in passing[:10]], {name: found for name, found in failed.items() if found}
