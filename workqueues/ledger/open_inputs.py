"""Tasks whose input is still open: when it is read again, what waits for more, what is let go, and datasets that are closed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from django.contrib.postgres.functions import TransactionNow
from django.db import connection, transaction
from django.db.models import Q, Value
from django.db.models.functions import Now

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import SYSTEM, Principal
from broker_site.foundation.agency.look import look_after_commit
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.moves import move_dataset, move_task
from workqueues.models import CatalogueDataset, Dataset, File, FileChange, PlannedOutput, Task
from workqueues.rules.jobs.open_inputs import ABSENT, COLLECTED, GROWING_BLOCK, let_go, waiting
from workqueues.rules.jobs.split_rule import parse
from workqueues.states import INPUT_DATASET, MASTER_TYPES, MUTABLE, TASK

_FOLLOWED = Q(state=MUTABLE, excluded=False)


def put_off_reading(run_id: str, task_id: int, seconds: float) -> None:
    """Inputs of a claimed task that are due to be read again are due in so many seconds, whatever becomes of this look."""
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        due = Dataset.objects.filter(_FOLLOWED, task_id=task_id, state_check_expiration__lte=Now(), type="input")
        due.update(state_check_expiration=Now() + Value(timedelta(seconds=seconds)))


def go_on(run_id: str, task_id: int) -> None:
    """New files have come to a claimed task, or none come any more: what it rests for may be this."""
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        Task.objects.filter(id=task_id).update(next_look_at=None)
        look_after_commit("generate", "stage", "finish")


def wait_for_more(run_id: str, task_id: int, who: str) -> None:
    """All files so far of a claimed task are through, and more may come: defined, until its inputs are read again; release."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        followed = Dataset.objects.select_for_update(no_key=True).filter(_FOLLOWED, task_id=task_id)
        datasets = list(followed.order_by("id"))
        due = min((d.state_check_expiration for d in datasets if d.state_check_expiration), default=None)
        why = waiting([d.dataset_name for d in datasets], held_up=parse(task.split_rule).held_up)
        for dataset in datasets:
            if dataset.status in INPUT_DATASET.accepting("refresh"):
                move_dataset(dataset, "toupdate", who, "all files so far are through")
        move_task(task, "defined", who, why, error_dialog=why[:510], next_look_at=due)
        look_after_commit("feed")


def let_go_collected(
    run_id: str, task_id: int, size: int, who: str, *, growing: bool, blocks: Mapping[str, Collection[int]] | None = None
) -> int:
    """Whole bunches of `size` files that a claimed task has collected are ready for jobs, and all once no more come: how many.

    `blocks`, of a task that uses whole lumi blocks: those that are not complete, by dataset; with `size` files or more all others
    are ready.
    """
    with transaction.atomic():
        lock_claimed(task_id, run_id)
        masters = Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id, type__in=MASTER_TYPES, master=None)
        ids = list(masters.order_by("id").values_list("id", flat=True))
        held = File.objects.filter(dataset_id__in=ids, status="ready", held__in=(COLLECTED, GROWING_BLOCK)).order_by("id")
        if blocks is None:
            files = list(held.values_list("id", flat=True))
            chosen = files[: let_go(len(files), size, growing=growing)]
        else:
            rows = list(held.values_list("id", "dataset__dataset_name", "lumi_block_nr"))
            complete = [id_ for id_, name, block in rows if block not in blocks.get(name, ())]
            chosen = complete if len(complete) >= size or not growing else []
        File.objects.filter(id__in=chosen).update(held="")
        why = "there are enough files for more jobs" if growing else "no more files come"
        why = why if blocks is None or not growing else "its lumi block is complete"
        FileChange.objects.bulk_create(
            (FileChange(file_id=id_, task_id=task_id, old="held", new="ready", who=who, why=why) for id_ in chosen),
            batch_size=1000,
        )
        if chosen:
            look_after_commit("generate")
        return len(chosen)


def hold_absent(run_id: str, dataset: Dataset, known: Collection[str], who: str) -> int:
    """Files of an input of a claimed task that no job has, and that the catalogue does not know any more, are held until somebody
    has looked for them, as others that are not found (decision D16): how many.
    """
    with transaction.atomic():
        lock_claimed(dataset.task_id, run_id)
        list(Dataset.objects.select_for_update(no_key=True).filter(id=dataset.id))
        unused = File.objects.filter(dataset_id=dataset.id, status="ready", held__in=("", COLLECTED, GROWING_BLOCK))
        absent = [id_ for id_, lfn in unused.order_by("id").values_list("id", "lfn") if lfn not in known]
        File.objects.filter(id__in=absent).update(held=ABSENT, look_due=TransactionNow())
        FileChange.objects.bulk_create(
            (FileChange(file_id=id_, task_id=dataset.task_id, old="ready", new="held", who=who, why=ABSENT) for id_ in absent),
            batch_size=1000,
        )
        return len(absent)


def read_again_now(vo: str, names: Sequence[str]) -> None:
    """Tasks that follow these datasets of a VO read them at once, since they have changed."""
    ours = Q(vo=vo, data_vo="", dataset_name__in=names)
    theirs = Q(data_vo=vo, dataset_name__in=[f"{vo}:{name}" for name in names])
    followed = Dataset.objects.filter(ours | theirs, _FOLLOWED, type="input", state_check_expiration__isnull=False)
    tasks = sorted(set(followed.values_list("task_id", flat=True)))
    if not tasks:
        return
    with transaction.atomic():  # tasks are locked before their datasets, as whoever works on one does
        resting = Task.objects.select_for_update(no_key=True).filter(id__in=tasks, status="defined").order_by("id")
        Task.objects.filter(id__in=[task.id for task in resting.only("id")]).update(next_look_at=TransactionNow())
        locked = followed.select_for_update(no_key=True).order_by("id")
        Dataset.objects.filter(id__in=[dataset.id for dataset in locked.only("id")]).update(
            state_check_expiration=TransactionNow()
        )
        look_after_commit("feed")


def kick_followers(parent_id: int) -> None:
    """A task has opened the datasets that it writes: its children that do not wait for its end can begin."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH children AS (
                SELECT t.id FROM workqueues_task t JOIN workqueues_taskparams p ON p.task_id = t.id
                WHERE t.status = 'pending' AND t.id <> %(parent)s
                    AND p.task_params @> '{"noWaitParent": true}' AND t.id = ANY (ARRAY(
                        SELECT id FROM workqueues_task WHERE parent_tid = %(parent)s
                        UNION SELECT task_id FROM workqueues_inputwriter WHERE writer_id = %(parent)s))
                ORDER BY t.id FOR NO KEY UPDATE OF t
            )
            UPDATE workqueues_task t SET next_look_at = now() FROM children c WHERE t.id = c.id
            """,
            {"parent": parent_id},
        )
        if cursor.rowcount:
            look_after_commit("wake")


class StillWritten(Exception):
    """A dataset stays open; the message is a sentence for whoever wants to close it."""


def close_dataset(dataset_id: int, by: Principal = SYSTEM) -> CatalogueDataset:
    """No more files come to a dataset of the catalogue: tasks that follow it end with the files that it has.

    One that is closed stays so. Raises StillWritten.
    """
    with transaction.atomic():
        dataset = CatalogueDataset.objects.select_for_update(no_key=True).get(id=dataset_id)
        if dataset.state != "open":
            return dataset
        planned = PlannedOutput.objects.filter(writer__dataset_name=dataset.name, writer__vo=dataset.vo)
        live = planned.exclude(task__status__in=TASK.final).order_by("task_id").values_list("task_id", flat=True).first()
        if live:
            raise StillWritten(f"task {live}, which has not ended, writes to {dataset.name}; it is closed when that ends")
        CatalogueDataset.objects.filter(id=dataset.id).update(state="closed")
        audit("dataset.close", by, f"dataset {dataset.name}", vo=dataset.vo, before={"state": "open"}, after={"state": "closed"})
        read_again_now(dataset.vo, [dataset.name])
        dataset.refresh_from_db()
        return dataset


def follow_again(dataset: Dataset) -> None:
    """A dataset that the task followed until it ended is read again, now that the task goes on."""
    Dataset.objects.filter(_FOLLOWED, id=dataset.id).update(state_check_expiration=TransactionNow(), modification_time=Now())
