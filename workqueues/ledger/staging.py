"""Input files that are held until they are staged from tape: held when they are fed, let go when a disk has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction
from django.db.models import Case, Value, When

from broker_site.foundation.agency.look import look_after_commit
from workqueues.models import Dataset, File, FileChange
from workqueues.rules.jobs.staging import NOT_LOOKED_AT, STAGED_FIRST


def hold_until_staged(task_id: int) -> None:
    """Hold the untouched input files of a claimed task, in the caller's transaction, until somebody looked where they are."""
    list(Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type="input").order_by("id").values_list("id"))
    File.objects.filter(task_id=task_id, type="input", status="ready", held="", attempt_nr=0).update(held=NOT_LOOKED_AT)


def hold_on(words: Mapping[int, str]) -> None:
    """Say of files, by id, why they are still held."""
    if words:
        _lock(list(words))
        held = File.objects.filter(id__in=words, status="ready", held__startswith=STAGED_FIRST)
        held.update(held=Case(*(When(id=id_, then=Value(why[:255])) for id_, why in words.items())))


def let_go(ids: Sequence[int], who: str) -> int:
    """Files that a disk has are ready: how many."""
    if not ids:
        return 0
    with transaction.atomic():
        _lock(ids)
        held = File.objects.filter(id__in=ids, status="ready", held__startswith=STAGED_FIRST)
        rows = list(held.values_list("id", "task_id"))
        held.update(held="")
        FileChange.objects.bulk_create(
            FileChange(file_id=id_, task_id=task_id, old="held", new="ready", who=who, why="a disk has it")
            for id_, task_id in rows
        )
        look_after_commit("generate")
        return len(rows)


def _lock(ids: Sequence[int]) -> None:
    """Whoever changes a file holds the lock of its dataset."""
    datasets = set(File.objects.filter(id__in=ids).values_list("dataset_id", flat=True))
    list(Dataset.objects.select_for_update(no_key=True).filter(id__in=sorted(datasets)).order_by("id").values_list("id"))
