"""Files that other tasks have used, which a task is to leave out (skipFilesUsedBy)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.models import Dataset, File, Task
from workqueues.states import INPUT_FILE, MASTER_TYPES


def used_files(task_ids: Sequence[int], dataset_names: Collection[str]) -> dict[str, set[str]]:
    """Dataset -> the files of it, or numbers of a sequence, that these tasks have processed, or that jobs of theirs have now."""
    if not task_ids:
        return {}
    theirs = Dataset.objects.filter(task_id__in=task_ids, type__in=MASTER_TYPES, dataset_name__in=dataset_names)
    names = dict(theirs.values_list("id", "dataset_name"))
    used: dict[str, set[str]] = defaultdict(set)
    rows = File.objects.filter(dataset_id__in=names, status__in=INPUT_FILE.spent).values_list("dataset_id", "lfn")
    for dataset_id, lfn in rows.iterator():
        used[names[dataset_id]].add(lfn)
    return used


def check_users(vo: str, task_ids: Sequence[int]) -> Iterator[Problem]:
    """What is wrong with the tasks of skipFilesUsedBy: those that the VO does not have. Nobody learns of tasks of others."""
    known = set(Task.objects.filter(vo=vo, id__in=task_ids).values_list("id", flat=True)) if task_ids else set()
    for task_id in task_ids:
        if task_id not in known:
            yield problem("skipFilesUsedBy", "exists", f"VO {vo} has no task {task_id}")
