"""What a pilot needs to know of the job it got: parameters, inputs with their sources, outputs with their places."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from brokerage.models import Job, JobInput, JobSpec, StorageEndpoint
from workqueues.models import CatalogueFile, File
from workqueues.rules.stored_path import stored_path


def job_document(job_id: int) -> dict[str, Any]:
    """The job as the pilot's wire format has it, without lease and token."""
    spec = JobSpec.objects.select_related("job__computing_queue").get(job_id=job_id)
    job, queue = spec.job, spec.job.computing_queue
    return {
        "id": job_id,
        "task_id": job.task_id,
        "attempt_nr": job.attempt_nr,
        "queue": queue.name,
        "transformation": spec.transformation,
        "parameters": spec.job_parameters,
        "cores": job.core_count,
        "memory_mb": spec.ram_mb,
        "disk_mb": spec.disk_mb,
        "walltime_s": spec.walltime_s or queue.maxtime,
        "inputs": _inputs(job, queue.site_id),
        "outputs": _outputs(job_id, spec.storage),
    }


def _inputs(job: Job, site: str) -> list[dict[str, Any]]:
    ids = JobInput.objects.filter(job_id=job.id).values_list("file_id", flat=True)
    files = list(File.objects.filter(id__in=list(ids), type="input").select_related("dataset").order_by("id"))
    if not files:
        return []
    sources = _sources({f.dataset.dataset_name for f in files}, {f.lfn for f in files}, site)
    return [
        {
            "lfn": f.lfn,
            "size": f.fsize,
            "checksum": f.checksum,
            "dataset": f.dataset.dataset_name,
            "sources": sources[f.dataset.dataset_name, f.lfn],
        }
        for f in files
    ]


def _sources(datasets: set[str], lfns: set[str], site: str) -> dict[tuple[str, str], list[dict[str, str]]]:
    """Replicas on reachable storage, those of the job's own site first, then by name."""
    endpoints = {s.name: s for s in StorageEndpoint.objects.exclude(path="")}
    found: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    rows = CatalogueFile.objects.filter(dataset__name__in=datasets, lfn__in=lfns, replicas__storage__in=endpoints).values_list(
        "dataset__name", "lfn", "replicas__storage", "replicas__path"
    )
    for dataset, lfn, storage, path in sorted(rows, key=lambda row: (endpoints[row[2]].site_id != site, row[2])):
        found[dataset, lfn].append({"storage": storage, "path": f"{endpoints[storage].path}/{path or lfn}"})
    return found


def _outputs(job_id: int, storage: str) -> list[dict[str, Any]]:
    root = StorageEndpoint.objects.values_list("path", flat=True).get(name=storage) if storage else ""
    return [
        {
            "lfn": f.lfn,
            "storage": storage,
            "path": f"{root}/{stored_path(f.dataset.dataset_name, f.lfn)}",
            "type": f.type,
            "optional": f.dataset.no_output_allowed,
        }
        for f in File.objects.filter(out_job_id=job_id).select_related("dataset").order_by("id")
    ]
