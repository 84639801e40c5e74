"""What is registered or being written at a storage endpoint: path below its root, as pilots write it."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Subquery

from brokerage.models import Job
from workqueues.models import CatalogueDataset, Dataset, File, Replica
from workqueues.rules.jobs.log_streams import stream_files
from workqueues.states import LOG_TYPES

READ_AT_ONCE = 5000


def registered_files(storage: str) -> dict[str, int]:
    """Path -> size in bytes of every copy that the catalogue has there."""
    rows = Replica.objects.filter(storage=storage).values_list("path", "file__lfn", "file__fsize")
    return {path or lfn: size for path, lfn, size in rows.iterator(READ_AT_ONCE)}


def registered_logs(storage: str) -> set[str]:
    """Paths of the logs of jobs among them."""
    logs = Dataset.objects.filter(
        dataset_name=OuterRef("file__dataset__name"), vo=OuterRef("file__dataset__vo"), type__in=LOG_TYPES
    )
    rows = Replica.objects.filter(Exists(logs), storage=storage).values_list("path", "file__lfn")
    return {path or lfn for path, lfn in rows.iterator(READ_AT_ONCE)}


def files_being_written(storage: str) -> set[str]:
    """Paths of the outputs of jobs that have not ended, and of what their logs are made of."""
    jobs = Job.objects.filter(storage=storage, ended_at=None).values("id")
    outputs = File.objects.filter(out_job_id__in=jobs)
    known = CatalogueDataset.objects.filter(name=OuterRef("dataset__dataset_name"), vo=OuterRef("dataset__vo"))
    rows = outputs.annotate(folder=Subquery(known.values("folder"))).values_list("folder", "lfn", "type")
    return {
        path
        for folder, lfn, type_ in rows.iterator(READ_AT_ONCE)
        for path in [f"{folder}/{lfn}", *(stream_files(f"{folder}/{lfn}") if type_ in LOG_TYPES else ())]
    }
