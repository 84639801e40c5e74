"""What deciding the end of a task needs."""

from __future__ import annotations

from workqueues.models import Dataset
from workqueues.rules.task.finish import DatasetCounts
from workqueues.states import OUTPUT_TYPES


def dataset_counts(task_id: int) -> list[DatasetCounts]:
    """The counters of every dataset of the task."""
    return [
        DatasetCounts(
            type=d.type,
            status=d.status,
            master=d.master_id is None,
            n_files=d.n_files,
            n_files_to_be_used=d.n_files_to_be_used,
            n_files_used=d.n_files_used,
            n_files_finished=d.n_files_finished,
            n_files_failed=d.n_files_failed,
            n_events=d.n_events or 0,
            n_events_used=d.n_events_used or 0,
            excluded=d.excluded,
        )
        for d in Dataset.objects.filter(task_id=task_id)
    ]


def output_names(task_id: int) -> list[str]:
    """Names of the datasets the task writes."""
    return list(Dataset.objects.filter(task_id=task_id, type__in=OUTPUT_TYPES).values_list("dataset_name", flat=True))
