"""What a skip says, a second time: the sentence of each criterion with numbers worked out queue by queue, not from our columns.

A criterion is named by its label and how many of that label stand before it in the policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from brokerage.rules.decision.declare import Policy
from brokerage.rules.facts.ask import Ask
from tests.oracles import analysis, production
from tests.oracles.generic import means, megabytes, walltime

Row = Mapping[str, Any]
Sentence = Callable[[Ask, Row], str]
Named = tuple[str, int]

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def names(policy: Policy) -> list[Named]:
    """Every criterion of a policy."""
    seen: dict[str, int] = {}
    found = []
    for criterion in policy.criteria:
        found.append((criterion.label, seen.get(criterion.label, 0)))
        seen[criterion.label] = seen.get(criterion.label, 0) + 1
    return found


def alike(one: str, other: str) -> bool:
    """Whether two sentences say the same; numbers as they are rounded in them."""
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (one, other)]
    return NUMBER.sub("#", one) == NUMBER.sub("#", other) and numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=1.0)


def word_of_an_unknown_site(ask: Ask, rows: Iterable[Row]) -> str:
    """What is added to the place that a task names, where it is the name of nothing."""
    if ask.site is None or any(means(ask.site.split(","), row) for row in rows):
        return ""
    return ", and no queue here is called so"


def cores(ask: Ask, row: Row) -> int:
    """Cores of a job at the queue."""
    return int(row["corecount"] if row["corecount"] > 0 else max(1 if ask.core_count is None else ask.core_count, 1))


def memory(ask: Ask, row: Row, factor: float) -> float:
    """Memory of a job at the queue, MB."""
    return factor * ((ask.base_ram_count or 0) + (ask.ram_count or 0) * (cores(ask, row) if ask.ram_unit == "MBPerCore" else 1))


def unscaled(ask: Ask, row: Row) -> float:
    """Scratch disk of a job by the generic broker, MB."""
    fixed = megabytes(ask.out_disk_count, ask.out_disk_unit) + megabytes(ask.work_disk_count, ask.work_disk_unit)
    return fixed + (0 if row["direct_access_lan"] else ask.chunk.gb * 1000)


def scaled(ask: Ask, row: Row) -> float:
    """Scratch disk of a job by the analysis broker, MB."""
    size, unit = ask.chunk.gb * 1000, ask.out_disk_unit or ""
    output = megabytes(ask.out_disk_count, unit) * (ask.chunk.n_events if unit.endswith("PerEvent") else size)
    need = (0 if row["direct_access_lan"] else size) + output + megabytes(ask.work_disk_count, ask.work_disk_unit)
    return max(2 * size if ask.merge else need, 1000 * (ask.n_gb_per_job or 0))


def disk_io(ask: Ask, row: Row) -> str:
    """The three rates."""
    wanted = (ask.disk_io or 0) / (1 if ask.core_count in (None, 1) else max(row["corecount"], 1))
    measured, most = row["disk_io"], row["maxdiskio"] or 1e10
    return f"its disk I/O is {measured:.0f} kB/s per core, the task's {wanted:.0f} kB/s, {most:.0f} kB/s at most"


def kind_of_cores(ask: Ask, row: Row) -> str:
    """One core or several."""
    wanted = 1 if ask.core_count is None else ask.core_count
    many = wanted > 1 or (wanted == 0 and (ask.priority >= 900 or ask.scout))
    return f"the task is for {'several cores' if many else 'one core'}, the slots have {row['corecount']}"


def a_day(what: str, row: Row) -> str:
    """A day is wanted."""
    return f"{what} need 86400 s, the queue gives {row['maxtime']:.0f} s"


def unknown(ask: Ask) -> str:
    """Whose walltime is not known."""
    return "merge jobs" if ask.merge else "jobs of unknown walltime"


def in_front(row: Row) -> int:
    """Jobs that wait for a pilot."""
    return int(row["activated"] + row["starting"])


def limit(row: Row) -> int:
    """Jobs that may wait."""
    return max(20, 2 * production.running(row))


def where_offered(ask: Ask) -> str:
    """Where the stations are."""
    return f"they are offered at {', '.join(ask.station_sites)}" if ask.station_sites else "no site offers them now"


ALIKE: dict[Named, Sentence] = {
    ("banned_site", 0): lambda a, r: f"its site {r['site']} is among those that the task bans",
    ("no_station", 0): lambda a, r: f"its site offers none of the stations {', '.join(a.stations)}; {where_offered(a)}",
    ("status", 0): lambda a, r: f"its status is {r['status']}, not online",
    ("shortwalltime", 0): lambda a, r: f"a job takes {walltime(a, r) or 0:.0f} s, the queue gives {r['maxtime']:.0f} s",
    ("longwalltime", 0): lambda a, r: f"a job takes {walltime(a, r) or 0:.0f} s, the queue wants {r['mintime']:.0f} s or more",
    ("lowmemory", 0): lambda a, r: f"a job needs {memory(a, r, 0.9):.0f} MB, a slot gives {r['maxrss']:.0f} MB",
    ("highmemory", 0): lambda a, r: f"a job needs {memory(a, r, 0.9):.0f} MB, the slots are for {r['minrss']:.0f} MB or more",
    ("diskIO", 0): disk_io,
    ("cpucore", 0): kind_of_cores,
    ("max_cpucore", 0): lambda a, r: f"the task runs on {a.max_core_count} cores at most, the slots have {r['corecount']}",
    ("scout_walltime", 0): lambda a, r: a_day("scouts", r),
    ("min_walltime", 0): lambda a, r: a_day(unknown(a), r),
    ("nopilot", 0): lambda a, r: "no pilot has asked for work in three hours",
    ("remoteio", 0): lambda a, r: "the task reads its input directly, the queue does not allow it",
    ("zeroshare", 0): lambda a, r: f"work of the group {a.processing_type} has no share: {r['fairsharepolicy']}",
    ("max_io_intensity", 0): lambda a, r: (
        f"the task's I/O is {a.io_intensity:.0f} kB/s, {r['max_io_intensity']:.0f} kB/s at most"
    ),
}
"""Those of production and analysis alike."""

PRODUCTION: dict[Named, Sentence] = ALIKE | {
    ("nonpreassigned", 0): lambda a, r: f"the jobs run only at {a.site}",
    ("test", 0): lambda a, r: "its name says that it is for tests",
    ("type", 0): lambda a, r: f"it is for {r['type']}, not for production",
    ("link_unusable", 0): lambda a, r: "the link to N is blocked",
    ("link_unusable", 1): lambda a, r: f"{r['link_files']} files wait on its link to N, 300 at most",
    ("links_full", 0): lambda a, r: f"{r['nucleus_files']} files wait for transfer to N, 10000 at most",
    ("not_nucleus", 0): lambda a, r: f"{'scouts' if a.scout else f'tasks of priority {a.priority}'} run only at N",
    ("inactive", 0): lambda a, r: f"{in_front(r) + r['others_waiting']} jobs wait and none has begun for {r['idle_s']:.0f} s",
    ("io", 0): lambda a, r: (
        f"{a.chunk.gb - r['available_gb']:.1f} GB in {r['missing_files']} files of its input are missing, "
        "less than 10 GB and 100 files may"
    ),
    ("disk", 0): lambda a, r: (
        f"a job needs {production.need_mb(a, r):.0f} MB of scratch disk, "
        f"a core's part is {r['maxwdir'] / max(r['corecount'], 1):.0f} MB"
    ),
    ("disk", 1): lambda a, r: f"its output storage has {r['space_gb'] or 0:.0f} GB free, more than 200 GB are wanted",
    ("read_lan_blacklist", 0): lambda a, r: "none of its endpoints can be read by jobs",
    ("write_lan_blacklist", 0): lambda a, r: "none of its endpoints can be written by jobs",
    ("write_wan_blacklist", 0): lambda a, r: "its endpoint cannot receive input",
    ("read_wan_blacklist", 0): lambda a, r: "its endpoint cannot send output",
    ("source_blacklist", 0): lambda a, r: "the input is not there, and nothing that has it can send it",
    ("network", 0): lambda a, r: "the task wants http, its nodes have none",
    ("transferring", 0): lambda a, r: (
        f"{r['transferring']} jobs transfer their output, "
        f"{max(r['transferringlimit'] or 2000, 2 * (r['running'] + r['others_running']))} at most"
    ),
    ("t1weight", 0): lambda a, r: "the task runs only at N",
    ("lowNetworkWeight", 0): lambda a, r: f"its network weight is {production.network(r):.3g}, an urgent task wants 1.7",
    ("dest_blacklisted", 0): lambda a, r: "N cannot receive output",
    ("non_local", 0): lambda a, r: f"{r['missing_files']} files of the input are not there, and the queue reads only local data",
    ("cap_activated", 0): lambda a, r: f"{in_front(r)} jobs wait for a pilot, {limit(r)} at most",
    ("cap_queued", 0): lambda a, r: (
        f"{in_front(r) + r['defined'] + (r['assigned'] if r['missing_files'] else 0)} jobs wait, {limit(r)} at most"
    ),
}

CAPPED = {"HIGG": "HIGG", None: "the user"}

ANALYSIS: dict[Named, Sentence] = ALIKE | {
    ("notincluded", 0): lambda a, r: f"the task allows only {', '.join(name for name in a.included_sites if name != 'AUTO')}",
    ("cap_running_jobs", 0): lambda a, r: f"{CAPPED[a.working_group]} has {a.usage.running_jobs} running jobs, 10 at most",
    ("cap_queued_cores", 0): lambda a, r: f"jobs of {CAPPED[a.working_group]} for {a.usage.queued_cores} cores wait, 20 at most",
    ("disk_quota", 0): lambda a, r: f"the disk quota of {CAPPED[a.working_group]} is used up",
    ("type", 0): lambda a, r: f"it is for {r['type']}, not for analysis",
    ("locality", 0): lambda a, r: f"{r['missing_files']} files of the input are not there",
    ("vp", 0): lambda a, r: "it reads through a cache, which the task avoids",
    ("overloaded_vp", 0): lambda a, r: f"it reads through a cache, and {analysis.waiting(r)} jobs wait",
    ("gpu", 0): lambda a, r: "its slots are for tasks that want a GPU, and no platform is not there",
    ("disk", 0): lambda a, r: (
        f"a job needs {scaled(a, r):.0f} MB of scratch disk, a core's part is {r['maxwdir'] / max(r['corecount'], 1):.0f} MB"
    ),
    ("disk", 1): lambda a, r: f"its output storage has {r['space_gb'] or 0:.0f} GB free, more than 200 GB are wanted",
    ("disk", 2): lambda a, r: f"its input storage has {r['input_space_gb']:.0f} GB free, more than 200 GB are wanted",
    ("blacklist", 0): lambda a, r: "a storage endpoint that its jobs need is out of service",
    ("closed", 0): lambda a, r: f"{r['task_closed']} jobs of the task were closed there lately",
    ("badsite", 0): lambda a, r: (
        f"{r['task_failed'] + r['task_closed']} jobs of the task failed or were closed there, "
        f"fewer than {max(2 * r['task_finished'], 5)} may"
    ),
    ("overloaded", 0): lambda a, r: f"{analysis.waiting(r)} jobs wait and {production.running(r)} run",
    ("user_limit", 0): lambda a, r: f"{r['user_queued']} jobs of the user wait there, {analysis.limit_of_user(r):.0f} at most",
    ("local_quota", 0): lambda a, r: f"the user's quota at {r['storage']} is used up",
    ("cloudmismatch", 0): lambda a, r: f"it belongs to {r['cloud']}, the task to {a.cloud}",
    ("fileunavailable", 0): lambda a, r: (
        f"{r['missing_files']} files of the input are not there, and the queue reads only local data"
    ),
}

GENERIC: dict[Named, Sentence] = ALIKE | {
    ("nonpreassigned", 0): lambda a, r: f"the task runs only at {a.site}",
    ("excluded", 0): lambda a, r: f"the task excludes it: {', '.join(a.excluded_sites)}",
    ("notincluded", 0): lambda a, r: f"the task allows only {', '.join(a.included_sites)}",
    ("disk", 0): lambda a, r: f"a job needs {unscaled(a, r):.0f} MB of scratch disk, a slot gives {r['maxwdir']:.0f} MB",
    ("disk", 1): lambda a, r: f"its output storage has {r['space_gb']:.0f} GB free, 200 GB are wanted",
    ("cpucore", 0): lambda a, r: (
        f"a job takes {1 if a.core_count is None else a.core_count} cores, the slots have {r['corecount']}"
    ),
    ("lowmemory", 0): lambda a, r: f"a job needs {memory(a, r, 1):.0f} MB, a slot gives {r['maxrss']:.0f} MB",
    ("highmemory", 0): lambda a, r: f"a job needs {memory(a, r, 1):.0f} MB, the slots are for {r['minrss']:.0f} MB or more",
    ("processing", 0): lambda a, r: f"it does not take work of the type {a.processing_type}",
    ("nopilot", 0): lambda a, r: "no pilot has asked for work in three hours",
}

NUCLEUS: dict[Named, Sentence] = {
    ("status", 0): lambda a, r: f"the site is {r['state']}, not ACTIVE",
    ("space", 0): lambda a, r: (
        f"{r['free_gb'] - r['total_rw'] / 10 / 24 / 3600 * 0.25:.0f} GB would be left on its storage, "
        "more than 5000 GB are wanted"
    ),
    ("insize", 0): lambda a, r: f"{r['available_gb']:.1f} GB of the input are there, {a.chunk.gb * 0.1:.1f} GB are wanted",
    ("innum", 0): lambda a, r: f"{r['available_files']} files of the input are there, {a.chunk.files * 0.1:.0f} are wanted",
    ("job", 0): lambda a, r: "none of its queues can run the jobs",
    ("transfer_backlog", 0): lambda a, r: f"{r['files_queued']} files wait for transfer to it, fewer than 2000 are wanted",
    ("source_blacklist", 0): lambda a, r: "its storage cannot be read from elsewhere",
    ("destination_blacklist", 0): lambda a, r: "its storage cannot be written from elsewhere",
}
