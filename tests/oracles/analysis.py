"""The analysis broker a second time, queue by queue in plain Python, written from the document and not from our columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from brokerage.rules.facts.ask import Ask, Usage
from tests.oracles.generic import means, megabytes, merged, unmatched, walltime
from tests.oracles.production import DAY, running

Row = Mapping[str, Any]

MANY: dict[str, list[Any]] = {
    "site": ["A", "B"],
    "type": ["unified"] * 5 + ["production"],
    "status": ["online"] * 8 + ["test"],
    "storage": ["", "D1", "D2"],
    "cloud": ["", "DE", "FR"],
    "corecount": [0, 1, 1, 8],
    "corepower": [0.0, 10.0],
    "maxrss": [0.0, 0.0, 2000.0, 16000.0],
    "minrss": [0.0, 0.0, 0.0, 2001.0],
    "maxtime": [0, 0, 43200, 86400],
    "mintime": [0, 0, 0, 1800],
    "maxwdir": [0, 0, 8000, 80000],
    "maxdiskio": [0, 0, 100],
    "max_io_intensity": [0, 0, 0, 300],
    "fairsharepolicy": ["", "", "", "type=evgensimul:100%"],
    "use_only_local_data": [False, False, False, True],
    "direct_access_lan": [False, True, True],
    "gpu": [False] * 9 + [True],
    "virtual": [False, False, True],
    "space_gb": [5000, 5000, 5000, 200, None],
    "input_space_gb": [None, None, 200, 300],
    "read_lan_ok": [True] * 19 + [False],
    "write_lan_ok": [True] * 19 + [False],
    "read_wan_ok": [True] * 19 + [False],
    "write_wan_ok": [True] * 19 + [False],
    "source_ok": [True] * 19 + [False],
    "allow_no_pilot": [False, False, True],
    "requests_3h": [0, 5, 5, 5],
    "disk_io": [0, 0, 150],
    "n_batch": [0, 0, 15],
    "num_slots": [None, None, 0, 25],
    "missing_files": [0, 3, 5],
    "tape_files": [0, 0, 5],
    "whole_datasets": [0, 0, 1],
    "task_finished": [0, 3],
    "task_failed": [0, 0, 6],
    "task_closed": [0, 0, 0, 1],
    "user_queued": [0, 10, 300],
    "user_running": [0, 10],
    "n_users": [0, 1, 7],
    "starts_per_hour": [0.0, 1.0, 30.0],
    "defined": [0, 0, 5],
    "assigned": [0, 0, 30],
    "activated": [0, 5, 40, 200],
    "starting": [0, 0, 15],
    "running": [0, 10, 50, 200],
}
TASKS: dict[str, list[Any]] = {
    "processing_type": ["simul", "reco"],
    "working_group": [None, "HIGG"],
    "priority": [500, 900],
    "task_priority": [1000, 1000, 2000],
    "cloud": [None, None, "DE"],
    "included_sites": [(), (), ("Q*",), ("*1", "*2", "AUTO"), ("AUTO",)],
    "banned_sites": [(), (), (), ("A",), ("C", "B")],
    "stations": [(), (), (), ("st1",)],
    "station_sites": [(), ("A",), ("B", "C")],
    "core_count": [None, 0, 1, 8],
    "merge_core_count": [None, None, 8],
    "merge_ram_count": [None, None, 3000],
    "chunk_ram": [None, None, 1800],
    "max_core_count": [None, None, None, 4],
    "ram_count": [None, 1500, 2100],
    "ram_unit": ["MB", "MBPerCore"],
    "cpu_time": [None, 10, 100],
    "base_walltime": [None, 1800],
    "out_disk_count": [None, 500],
    "out_disk_unit": ["kB", "kBPerEvent"],
    "work_disk_count": [None, 1000],
    "n_gb_per_job": [None, None, 10.0],
    "io_intensity": [None, 100, 500],
    "disk_io": [None, 120],
    "direct_access_only": [False, False, False, True],
    "avoid_vp": [False, False, True],
    "use_local_io": [False, False, True],
    "scout": [False, False, False, True],
    "merge": [False, False, False, True],
    "usage": [
        Usage(),
        Usage(),
        Usage(running_jobs=11, full_storages=("D1",)),
        Usage(queued_cores=21),
        Usage(quota_exceeded=True),
    ],
    "events": [0, 1000, 100_000],
    "gb": [0.0, 4.0, 20.0],
}
CAPS: dict[str, int | None] = {
    "CAP_RUNNING_USER_JOBS": 10,
    "CAP_RUNNING_USER_CORES": 10,
    "CAP_RUNNING_GROUP_JOBS": None,
    "CAP_RUNNING_GROUP_CORES": 30,
}
"""The values that random queues and tasks are made of, and the caps of users."""


def throttled(ask: Ask, caps: Mapping[str, int | None]) -> list[str]:
    """What keeps the task from having any job."""
    kind = "GROUP" if ask.working_group else "USER"
    jobs, cores = caps.get(f"CAP_RUNNING_{kind}_JOBS"), caps.get(f"CAP_RUNNING_{kind}_CORES")
    used, found = ask.usage, []
    if not ask.merge:
        for label, has, most in (
            ("cap_running_jobs", used.running_jobs, jobs),
            ("cap_queued_jobs", used.queued_jobs, jobs and 2 * jobs),
            ("cap_running_cores", used.running_cores, cores),
            ("cap_queued_cores", used.queued_cores, cores and 2 * cores),
        ):
            if most and has > most:
                found.append(label)
    return found + (["disk_quota"] if used.quota_exceeded else [])


def waiting(row: Row) -> int:
    """Jobs that do not run yet."""
    return int(row["defined"] + row["activated"] + row["assigned"] + row["starting"])


def many_of_user(row: Row) -> bool:
    """Whether the user has too many waiting there."""
    queued, rate = waiting(row), row["starts_per_hour"]
    return bool(queued >= 100 and queued >= 8 * rate and row["user_queued"] > limit_of_user(row))


def limit_of_user(row: Row) -> float:
    """How many the user may have waiting there, where much waits."""
    runs, rate = row["running"], row["starts_per_hour"]
    part = max(Fraction(1, max(row["n_users"], 1)), Fraction(row["user_running"], max(runs, 1)))
    return float(max(5, 0.05 * runs, max(100, 2 * runs, Fraction(12 * rate)) * part))


def included(ask: Ask, row: Row) -> bool:
    """Whether the task names the queue among those that it allows."""
    return means([name for name in ask.included_sites if name != "AUTO"], row)


def not_included(ask: Ask, rows: Sequence[Row], failed: Mapping[str, list[str]]) -> set[str]:
    """The queues that are skipped as others are named; with AUTO only where a named one with the input can take the task."""
    if not set(ask.included_sites) - {"AUTO"}:
        return set()
    others = {row["name"] for row in rows if not included(ask, row)}
    far = {row["name"] for row in rows if not steps(ask)[0](row)}
    able = {row["name"] for row in rows if not set(failed[row["name"]]) - PASSING_WITH_TIME} - far
    return set() if "AUTO" in ask.included_sites and able and able <= others else others


def lasting(ask: Ask, row: Row) -> list[tuple[str, bool]]:
    """The checks for persistent issues of the document but that of the input."""
    cores = row["corecount"] if row["corecount"] > 0 else max(1 if ask.core_count is None else ask.core_count, 1)
    wanted = 1 if ask.core_count is None else ask.core_count
    many = wanted > 1 or (wanted == 0 and (ask.priority >= 900 or ask.scout))
    judges_memory = bool(ask.ram_count or ask.base_ram_count)
    memory = 0.9 * ((ask.base_ram_count or 0) + (ask.ram_count or 0) * (cores if ask.ram_unit == "MBPerCore" else 1))
    size = ask.chunk.gb * 1000
    unit = ask.out_disk_unit or ""
    output = megabytes(ask.out_disk_count, unit) * (ask.chunk.n_events if unit.endswith("PerEvent") else size)
    need = (0 if row["direct_access_lan"] else size) + output + megabytes(ask.work_disk_count, ask.work_disk_unit)
    need = max(2 * size if ask.merge else need, 1000 * (ask.n_gb_per_job or 0))
    time = walltime(ask, row)
    disk_io = (ask.disk_io or 0) / (1 if wanted == 1 else max(row["corecount"], 1))
    disk_limit = row["maxdiskio"] or 1e10
    up = all(row[f"{access}_ok"] for access in ("read_lan", "write_lan", "read_wan", "write_wan", "source"))
    inner = row["input_space_gb"]
    heavy = waiting(row) > 2 * max(20, running(row))
    return [
        ("type", row["type"] == "production"),
        ("status", row["status"] != "online" and not included(ask, row)),
        ("diskIO", row["disk_io"] > disk_limit and disk_io > disk_limit),
        ("cpucore", row["corecount"] <= 1 if many else wanted == 1 and row["corecount"] > 1),
        ("max_cpucore", ask.max_core_count is not None and row["corecount"] > ask.max_core_count),
        ("vp", row["virtual"] and ask.avoid_vp),
        ("overloaded_vp", row["virtual"] and heavy),
        ("gpu", row["gpu"]),
        ("lowmemory", judges_memory and row["maxrss"] != 0 and memory > row["maxrss"]),
        ("highmemory", judges_memory and memory < row["minrss"]),
        ("disk", row["maxwdir"] != 0 and row["maxwdir"] / max(row["corecount"], 1) <= need),
        ("disk", (row["space_gb"] or 0) <= 200),
        ("disk", row["missing_files"] > 0 and inner is not None and inner <= 200),
        ("blacklist", not up),
        ("shortwalltime", not ask.merge and time is not None and row["maxtime"] != 0 and time >= row["maxtime"]),
        ("longwalltime", not ask.merge and (time or 0) < row["mintime"]),
        ("nopilot", row["requests_3h"] == 0 and not row["allow_no_pilot"]),
    ]


def failing(ask: Ask, row: Row) -> list[str]:
    """The labels of every criterion that the queue fails but for the input, persistent ones of practice last."""
    bad = row["task_failed"] + row["task_closed"]
    short = 0 < row["maxtime"] < DAY
    heavy = waiting(row) > 2 * max(20, running(row))
    verdicts = [
        *lasting(ask, row),
        ("closed", row["task_closed"] > 0 and not ask.merge),
        ("badsite", bad >= max(2 * row["task_finished"], 5)),
        ("overloaded", heavy and not ask.merge),
        ("user_limit", many_of_user(row) and not ask.merge),
        ("zeroshare", row["fairsharepolicy"] == "type=evgensimul:100%" and ask.processing_type not in ("evgen", "simul")),
        ("max_io_intensity", not ask.merge and 0 < row["max_io_intensity"] < (ask.io_intensity or 0)),
        ("remoteio", ask.direct_access_only and not row["direct_access_lan"] and not ask.merge),
        ("local_quota", row["storage"] in ask.usage.full_storages),
        ("scout_walltime", ask.scout and short and not ask.merge),
        ("min_walltime", not ask.cpu_time and short and not ask.merge),
        ("cloudmismatch", ask.cloud is not None and row["cloud"] not in ("", ask.cloud)),
        ("fileunavailable", row["use_only_local_data"] and row["missing_files"] > 0),
        *unmatched(ask, row),
    ]
    return [label for label, fails in verdicts if fails]


PASSING_WITH_TIME = {"badsite", "overloaded", "user_limit"}
"""What does not lead to queues without the input; closed jobs do."""


def without_input(ask: Ask, rows: Sequence[Row], failed: Mapping[str, list[str]]) -> set[str]:
    """The queues that are skipped as the input is not there: by the strictest test that leaves a queue; the last takes all."""
    tests = steps(ask)
    able = [row for row in rows if not set(failed[row["name"]]) - PASSING_WITH_TIME]
    first = next((test for test in tests if any(test(row) for row in able)), tests[0])
    return {row["name"] for row in rows if not first(row)}


def steps(ask: Ask) -> list[Callable[[Row], bool]]:
    """Whether the input is near enough, from the strictest test on."""
    anywhere: Callable[[Row], bool] = lambda row: not row["missing_files"] or not row["virtual"]  # noqa: E731
    if (ask.task_priority or 0) >= 2000:
        return [anywhere]
    through = not (ask.avoid_vp or ask.merge or ask.scout or ask.use_local_io)
    return [
        lambda row: not row["missing_files"] or (row["virtual"] and through),
        lambda row: row["missing_files"] <= row["tape_files"] or (row["virtual"] and through),
        lambda row: row["whole_datasets"] > 0,
        anywhere,
    ]


def decide(ask: Ask, rows: Sequence[Row], caps: Mapping[str, int | None]) -> tuple[list[tuple[str, float]], dict[str, list[str]]]:
    """The ten best with their weights, and the failing labels of every other queue."""
    ask = merged(ask)
    own = {row["name"]: failing(ask, row) for row in rows}
    outside = not_included(ask, rows, own)
    own = {name: [*labels, *(["notincluded"] if name in outside else [])] for name, labels in own.items()}
    far = without_input(ask, rows, own)
    common = throttled(ask, caps)
    failed = {}
    for row in rows:
        labels = own[row["name"]]
        before = [label for label in ("type", "notincluded", "status") if label in labels]
        rest = [label for label in labels if label not in before]
        failed[row["name"]] = [*common, *before, *(["locality"] if row["name"] in far else []), *rest]
    weights = {row["name"]: (running(row) + 1) / (waiting(row) + 1) for row in rows}
    passing = sorted((name for name, labels in failed.items() if not labels), key=lambda name: (-weights[name], name))
    for name in passing[10:]:
        failed[name] = ["low_weight"]
    return [(name, weights[name]) for name in passing[:10]], {name: labels for name, labels in failed.items() if labels}
