"""What the brokerage is asked for a task and a chunk of its files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from math import ceil
from types import MappingProxyType
from typing import Any, NamedTuple

from brokerage.rules.dispatch.task_requirement import listed_by_task
from brokerage.rules.facts.ask import Ask, Chunk, ChunkDataset
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.event_ranges import InputFile
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.task_parameters import read_parameters
from workqueues.splitters.protocol import JobPlan
from workqueues.states import OUTPUT_TYPES

GB, MB = 1e9, 1e6

CONNECTIVITIES = {1: "full", 2: "http"}
"""Values of the split rule for what worker nodes must reach."""

ONLY = 2
"""Value of the split rule: input is read directly or not at all."""

DIRECT = "direct"
"""The one way of reading input over the network that pilots know."""

_NIGHTLY = re.compile(r"(rel_\d+|\d{4}-\d{2}-\d{2}T\d{4})$")
"""How releases and caches end that are builds of one night."""


NOWHERE: Mapping[str, Collection[str]] = MappingProxyType({})


class Input(NamedTuple):
    """How much of one dataset a chunk takes: files, bytes."""

    name: str
    master: bool
    files: int
    size: int


def inputs_taken(
    dataset: Dataset, files: Sequence[InputFile], others: Sequence[Dataset], sizes: Mapping[int, tuple[int, int]]
) -> list[Input]:
    """What a chunk of these files of a master takes of it and of its secondaries; pseudo datasets have nothing that is read.

    `sizes`: dataset to its files and bytes. A secondary that is not split is taken whole, of others what their ratio asks for.
    What is everywhere (cvmfs) is not taken from anywhere.
    """
    read = dataset.type == "input" and not read_attributes(dataset.attributes).everywhere
    inputs = [Input(dataset.dataset_name, True, len(files), sum(f.fsize or 0 for f in files))] if read else []
    for other in others:
        rule = read_attributes(other.attributes)
        if other.master_id is not None and other.type == "input" and not rule.everywhere:
            n, size = sizes.get(other.id, (other.n_files, 0))
            taken = n if rule.nosplit else min(n, ceil(rule.ratio * len(files)))
            inputs.append(Input(other.dataset_name, False, taken, size * taken // max(n, 1)))
    return inputs


def chunk_of(inputs: Sequence[Input], jobs: Sequence[JobPlan], files: Sequence[InputFile]) -> Chunk:
    """The chunk, `jobs` being the smallest into which it can be cut: what is asked holds for the largest of them."""
    ram = max((f.ram_count for f in files), default=0)
    return Chunk(
        n_events=max(job.n_events for job in jobs),
        files=sum(i.files for i in inputs),
        gb=sum(i.size for i in inputs) / GB,
        job_gb=max(job.size for job in jobs) / GB,
        ram_count=float(ram) if ram else None,
        datasets=tuple(ChunkDataset(i.name, i.master, i.files, i.size / GB) for i in inputs),
    )


def task_ask(task: Task, chunk: Chunk, now: datetime, offered: Mapping[str, Collection[str]] = NOWHERE) -> Ask:
    """The ask for a chunk of a task's files; `now` tells for how long the task has waited. `offered`: station -> sites.

    The walltime that a task gives per MB of input counts only where none follows from its cpuTime (seed 000).
    """
    params: dict[str, Any] = task.params.task_params
    by_events = task.cpu_time and chunk.n_events
    largest_mb = 0.0 if by_events else chunk.largest_gb * GB / MB
    return Ask(
        task_id=task.id,
        vo=task.vo,
        prod_source_label=task.prod_source_label,
        processing_type=task.processing_type,
        working_group=task.working_group or None,
        user=task.user_name,
        share=task.gshare or None,
        resource_type=task.resource_type or None,
        priority=task.current_priority,
        task_priority=task.task_priority,
        waits_s=max((now - task.frozen_time).total_seconds(), 0.0) if task.frozen_time else 0.0,
        walltime_s=task.walltime * largest_mb if task.walltime and largest_mb else None,
        scout=parse(task.split_rule).scouting,
        chunk=chunk,
        **_places(task, params),
        **_matched_places(params, offered),
        **_needs(task, params),
        **_software(task),
    )


def _places(task: Task, params: Mapping[str, Any]) -> dict[str, Any]:
    """Where the task may go, and how its data travel."""
    rules = parse(task.split_rule)
    asked, _ = read_parameters({name: params.get(name) for name in ("includedSite", "excludedSite")})
    return {
        "cloud": task.cloud or None,
        "nucleus": task.nucleus or None,
        "site": task.site or None,
        "included_sites": asked.includedSite,
        "excluded_sites": asked.excludedSite,
        "t1_weight": float(rules.t1_weight),
        "ip_connectivity": CONNECTIVITIES.get(rules.ip_connectivity),
        "ip_stack": f"IPv{rules.ip_stack}" if rules.ip_stack else None,
        "direct_access_only": rules.input_lan == ONLY,
        "use_local_io": rules.use_local_io,
        "read_wan": rules.input_wan and not rules.use_local_io and (params.get("transferType") or DIRECT) == DIRECT,
        "avoid_vp": rules.avoid_vp,
        "merge_output": bool(params.get("mergeOutput")) and not rules.in_step,
        "output_tokens": ()
        if rules.in_step
        else tuple(sorted({token for item in _items(params) if (token := item.get("token"))})),
    }


def stations_of(tasks: Iterable[Task]) -> set[str]:
    """The stations that these tasks name."""
    return {station for task in tasks for station in listed_by_task("stations", task.params.task_params)}


def sites_with(stations: Iterable[str], offered: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The sites that offer one of these stations, sorted."""
    return tuple(sorted({site for station in stations for site in offered.get(station, ())}))


def _matched_places(params: Mapping[str, Any], offered: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """At which sites pilots can get the jobs at all."""
    stations = listed_by_task("stations", params)
    return {
        "banned_sites": tuple(sorted(listed_by_task("banned_sites", params))),
        "stations": tuple(sorted(stations)),
        "station_sites": sites_with(stations, offered),
    }


def _items(params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The items of the task that make outputs or logs."""
    logs = params.get("log") or []
    items = [*(params.get("jobParameters") or []), *(logs if isinstance(logs, list) else [logs])]
    return [item for item in items if isinstance(item, Mapping) and item.get("param_type") in OUTPUT_TYPES]


def _needs(task: Task, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "core_count": task.core_count,
        "max_core_count": parse(task.split_rule).max_core_count,
        "ram_count": task.ram_count,
        "ram_unit": task.ram_unit or None,
        "base_ram_count": task.base_ram_count,
        "merge_core_count": task.merge_core_count,
        "merge_ram_count": task.merge_ram_count,
        "cpu_time": task.cpu_time,
        "cpu_time_unit": task.cpu_time_unit or None,
        "cpu_efficiency": task.cpu_efficiency,
        "base_walltime": task.base_walltime,
        "max_walltime_h": params.get("maxWalltime"),
        "out_disk_count": task.out_disk_count,
        "out_disk_unit": task.out_disk_unit or None,
        "work_disk_count": task.work_disk_count,
        "work_disk_unit": task.work_disk_unit or None,
        "n_gb_per_job": parse(task.split_rule).gb_per_job,
        "io_intensity": task.io_intensity,
        "disk_io": task.disk_io,
        "event_service": task.event_service,
    }


def _software(task: Task) -> dict[str, Any]:
    return {
        "architecture": task.architecture or None,
        "release": task.trans_uses or None,
        "nightly": bool(_NIGHTLY.search(task.trans_uses) or _NIGHTLY.search(task.trans_home)),
        "container_name": task.container_name or None,
        "only_tags_for_fc": parse(task.split_rule).only_tags_for_fc,
    }
