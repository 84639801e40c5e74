"""Files that jobs could not read and about which the catalogue is to be asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from workqueues.models import File, FileChange


def held_files(task_id: int) -> dict[str, list[tuple[int, str]]]:
    """Dataset name -> (file id, LFN) of the held inputs of a task."""
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    rows = File.objects.filter(task_id=task_id, status="ready").exclude(held="").order_by("id")
    for name, file_id, lfn in rows.values_list("dataset__dataset_name", "id", "lfn"):
        found[name].append((file_id, lfn))
    return found


def reporting_queues(file_ids: Sequence[int]) -> dict[int, set[str]]:
    """File -> the computing queues at which jobs could not read it; one query."""
    found: dict[int, set[str]] = defaultdict(set)
    said = FileChange.objects.filter(file_id__in=file_ids, new="held")
    for file_id, why in said.values_list("file_id", "why"):
        found[file_id].add(why.rpartition(" at ")[2])
    return found
