"""What is registered or being written at a storage endpoint: path below its root, as pilots write it."""

from __future__ import annotations

from django.db.models import OuterRef, Subquery

from brokerage.models import JobSpec
from workqueues.models import CatalogueDataset, File, Replica

READ_AT_ONCE = 5000


def registered_files(storage: str) -> dict[str, int]:
    """Path -> size in bytes of every copy that the catalogue has there."""
    rows = Replica.objects.filter(storage=storage).values_list("path", "file__lfn", "file__fsize")
    return {path or lfn: size for path, lfn, size in rows.iterator(READ_AT_ONCE)}


def files_being_written(storage: str) -> set[str]:
    """Paths of the outputs of jobs that have not ended."""
    jobs = JobSpec.objects.filter(storage=storage, job__ended_at=None).values("job_id")
    outputs = File.objects.filter(out_job_id__in=jobs)
    known = CatalogueDataset.objects.filter(name=OuterRef("dataset__dataset_name"), vo=OuterRef("dataset__vo"))
    rows = outputs.annotate(folder=Subquery(known.values("folder"))).values_list("folder", "lfn")
    return {f"{folder}/{lfn}" for folder, lfn in rows.iterator(READ_AT_ONCE)}
