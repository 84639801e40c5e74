"""What the brokerage is asked for a task and a chunk of its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brokerage.rules.ask import Ask, Chunk, ChunkDataset
from workqueues.models import Dataset, File, Task
from workqueues.splitters.protocol import JobPlan

GB, MB = 1e9, 1e6


def task_ask(task: Task, dataset: Dataset, files: Sequence[File], jobs: Sequence[JobPlan]) -> Ask:
    """The ask for the files picked from a master dataset and the jobs they are cut into: it must hold for every one of them."""
    largest_bytes = max(job.size for job in jobs)
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
        walltime_s=task.walltime * largest_bytes / MB if task.walltime and largest_bytes else None,
        architecture=task.architecture or None,
        release=task.trans_uses or None,
        container_name=task.container_name or None,
        chunk=_chunk(dataset, files, jobs),
        **_places(task),
        **_needs(task),
    )


def _chunk(dataset: Dataset, files: Sequence[File], jobs: Sequence[JobPlan]) -> Chunk:
    """The input of the jobs; a pseudo dataset has records, but nothing that is read."""
    real = dataset.type == "input"
    gb, n = (sum(f.fsize or 0 for f in files) / GB, len(files)) if real else (0.0, 0)
    return Chunk(
        n_events=min(job.n_events for job in jobs),
        files=n,
        gb=gb,
        job_gb=max(job.size for job in jobs) / GB,
        datasets=(ChunkDataset(dataset.dataset_name, True, n, gb),) if real else (),
    )


def _places(task: Task) -> dict[str, Any]:
    """Where the task may go."""
    params: dict[str, Any] = task.params.task_params
    return {
        "nucleus": task.nucleus or None,
        "site": task.site or None,
        "included_sites": tuple(params.get("includedSite") or ()),
        "excluded_sites": tuple(params.get("excludedSite") or ()),
    }


def _needs(task: Task) -> dict[str, Any]:
    """What its jobs need of a slot."""
    return {
        "core_count": task.core_count,
        "ram_count": task.ram_count,
        "ram_unit": task.ram_unit or None,
        "base_ram_count": task.base_ram_count,
        "cpu_time": task.cpu_time,
        "cpu_time_unit": task.cpu_time_unit or None,
        "cpu_efficiency": task.cpu_efficiency,
        "base_walltime": task.base_walltime,
        "out_disk_count": task.out_disk_count,
        "out_disk_unit": task.out_disk_unit or None,
        "work_disk_count": task.work_disk_count,
        "work_disk_unit": task.work_disk_unit or None,
        "io_intensity": task.io_intensity,
        "disk_io": task.disk_io,
    }
