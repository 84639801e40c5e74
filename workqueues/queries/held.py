"""Files that jobs could not read and about which the catalogue is to be asked."""

from __future__ import annotations

from collections import defaultdict

from workqueues.models import File, FileChange


def held_files(task_id: int) -> dict[str, list[tuple[int, str]]]:
    """Dataset name -> (file id, LFN) of the held inputs of a task."""
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    rows = File.objects.filter(task_id=task_id, status="ready").exclude(held="").order_by("id")
    for name, file_id, lfn in rows.values_list("dataset__dataset_name", "id", "lfn"):
        found[name].append((file_id, lfn))
    return found


def reporting_queues(file_id: int) -> set[str]:
    """The computing queues at which jobs could not read the file."""
    said = FileChange.objects.filter(file_id=file_id, new="held").values_list("why", flat=True)
    return {why.rpartition(" at ")[2] for why in said}
