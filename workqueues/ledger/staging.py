"""Input files that are held until they are staged from tape: held when they are fed, let go when a disk has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db import connection, transaction
from django.db.models import Case, Exists, OuterRef, Value, When

from broker_site.foundation.agency.look import look_after_commit
from workqueues.models import Dataset, File, FileChange, Task
from workqueues.rules.jobs.open_inputs import GROWING_BLOCK
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.jobs.staging import NOT_LOOKED_AT, STAGED_FIRST
from workqueues.states import INPUT_FILE, MUTABLE


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
        tasks = Task.objects.filter(id__in=held.values("task_id")).values_list("id", "split_rule")
        by_block = [task_id for task_id, rule in tasks if parse(rule).release_per_lb]
        held.filter(task_id__in=by_block, lumi_block_nr__isnull=False).update(held=GROWING_BLOCK)
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


_COMPLETE = f"""
SELECT f.dataset_id, f.lumi_block_nr FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
WHERE f.task_id = ANY (%s) AND f.held <> '' AND f.status = 'ready' AND d.state <> '{MUTABLE}'
GROUP BY 1, 2 HAVING bool_or(f.held = %s) AND NOT bool_or(starts_with(f.held, %s))
"""


def release_blocks(task_ids: Sequence[int], who: str) -> int:
    """Files of these tasks are ready whose lumi blocks are staged whole (releasePerLB): how many. Of an input that grows they are
    when that is read again.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_COMPLETE, [list(task_ids), GROWING_BLOCK, STAGED_FIRST])
        blocks: dict[int, list[int]] = defaultdict(list)
        for dataset_id, block in cursor.fetchall():
            blocks[dataset_id].append(block)
        list(Dataset.objects.select_for_update(no_key=True).filter(id__in=sorted(blocks)).order_by("id").values_list("id"))
        n = sum(_free_blocks(dataset_id, blocks[dataset_id], who) for dataset_id in sorted(blocks))
        if n:
            look_after_commit("generate")
        return n


def _free_blocks(dataset_id: int, blocks: Sequence[int], who: str) -> int:
    held = File.objects.filter(dataset_id=dataset_id, status="ready", held=GROWING_BLOCK, lumi_block_nr__in=blocks)
    rows = list(held.values_list("id", "task_id"))
    held.update(held="")
    why = "its lumi block is complete"
    FileChange.objects.bulk_create(
        (FileChange(file_id=id_, task_id=task_id, old="held", new="ready", who=who, why=why) for id_, task_id in rows),
        batch_size=1000,
    )
    return len(rows)


def _lock(ids: Sequence[int]) -> None:
    """Whoever changes a file holds the lock of its dataset."""
    datasets = set(File.objects.filter(id__in=ids).values_list("dataset_id", flat=True))
    list(Dataset.objects.select_for_update(no_key=True).filter(id__in=sorted(datasets)).order_by("id").values_list("id"))
