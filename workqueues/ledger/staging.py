"""Input files that are held until they are staged from tape: held when they are fed, let go when a disk has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connection, transaction
from django.db.models import Case, Exists, OuterRef, Value, When

from broker_site.foundation.agency.look import look_after_commit
from workqueues.models import Dataset, File, FileChange
from workqueues.rules.jobs.staging import NOT_LOOKED_AT, STAGED_FIRST
from workqueues.states import INPUT_FILE


def hold_until_staged(task_id: int) -> None:
    """Hold the untouched input files of a claimed task, in the caller's transaction, until somebody looked where they are. Those
    that were let go once are not held again when the input is read again.
    """
    list(Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type="input").order_by("id").values_list("id"))
    let_go_before = FileChange.objects.filter(file_id=OuterRef("id"), old="held", new="ready")
    untouched = File.objects.filter(task_id=task_id, type="input", status="ready", held="", attempt_nr=0)
    untouched.exclude(Exists(let_go_before)).update(held=NOT_LOOKED_AT)


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


_NO_MORE = f"""
WITH waiting AS (
    SELECT id FROM workqueues_file WHERE dataset_id = ANY(%(datasets)s) AND status IN ({INPUT_FILE.unused.sql})
        AND starts_with(held, %(staged)s) ORDER BY id
), noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, %(task)s, 'held', 'ready', %(who)s, 'run again without being staged' FROM waiting
)
UPDATE workqueues_file f SET held = '' FROM waiting WHERE f.id = waiting.id
"""


def stage_no_more(task_id: int, datasets: Sequence[int], who: str) -> int:
    """Files of these locked datasets of a task that wait to be staged are given to jobs as they are: how many."""
    with connection.cursor() as cursor:
        cursor.execute(_NO_MORE, {"task": task_id, "datasets": list(datasets), "who": who[:128], "staged": STAGED_FIRST})
        return int(cursor.rowcount)


def _lock(ids: Sequence[int]) -> None:
    """Whoever changes a file holds the lock of its dataset."""
    datasets = set(File.objects.filter(id__in=ids).values_list("dataset_id", flat=True))
    list(Dataset.objects.select_for_update(no_key=True).filter(id__in=sorted(datasets)).order_by("id").values_list("id"))
