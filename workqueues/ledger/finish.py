"""The end of a task: its inputs closed when all are settled, then its final state with everything that goes with it."""

from __future__ import annotations

from django.db import connection, transaction

from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.moves import move_dataset, move_task
from workqueues.ledger.picked_files import return_picked
from workqueues.models import Dataset
from workqueues.rules.task.finish import Ending
from workqueues.states import INPUT_DATASET, INPUT_TYPES, MASTER_TYPES, OUTPUT_DATASET, TASK


def prepare_task(run_id: str, task_id: int, who: str, why: str) -> None:
    """All inputs of a claimed task are settled: inputs done, outputs prepared, the task prepared; release."""
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        for dataset in Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id).order_by("id"):
            if dataset.type in INPUT_TYPES and dataset.status in INPUT_DATASET.accepting("close"):
                move_dataset(dataset, "done", who, why, state_check_expiration=None)
            elif dataset.type not in INPUT_TYPES and dataset.status in OUTPUT_DATASET.accepting("prepare"):
                move_dataset(dataset, "prepared", who, why)
        move_task(task, "prepared", who, why, error_dialog="")


def end_task(run_id: str, task_id: int, ending: Ending, who: str, failure_rate: int | None = None, about: str = "") -> None:
    """Bring a claimed task to the end that was decided; release. `failure_rate`: percent of its jobs that failed; `about`: what
    else is to be told of its end.
    """
    reason = "; ".join(filter(None, [ending.reason, about]))
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        columns: dict[str, object] = {"old_status": "", "failure_rate": failure_rate}
        if ending.status in TASK.final:
            return_picked(task_id)
            close_datasets(task_id, who, reason)
            columns["progress"] = progress_of(task_id)
        if ending.status in TASK.completed:
            columns["ami_flag"] = "READY"
        if ending.status in TASK.settled or ending.status == "exhausted":
            columns["error_dialog"] = "" if ending.status == "done" and not about else reason[:510]
        move_task(task, ending.status, who, reason, **columns)


def close_datasets(task_id: int, who: str, why: str) -> None:
    """Close whatever is open of a task that ends: inputs with the reason of the end, outputs with what is in them.

    The caller holds the lock of the task, and no job of it lives.
    """
    for dataset in Dataset.objects.select_for_update(no_key=True).filter(task_id=task_id).order_by("id"):
        if dataset.status in (INPUT_DATASET if dataset.type in INPUT_TYPES else OUTPUT_DATASET).final:
            continue
        said = why if dataset.type in INPUT_TYPES else _content(dataset)
        move_dataset(dataset, "done", who, said, state_check_expiration=None)


def _content(dataset: Dataset) -> str:
    good, failed = dataset.n_files_finished, dataset.n_files_failed
    if not (good or failed):
        return "no file was made"
    made = f"{good} file{'' if good == 1 else 's'} finished" if good else "no file finished"
    return f"{made}, {failed} failed" if failed else made


def progress_of(task_id: int) -> int:
    rows = Dataset.objects.filter(task_id=task_id, type__in=MASTER_TYPES, master=None, excluded=False)
    counts = list(rows.values_list("n_files", "n_files_finished"))
    files = sum(n for n, _ in counts)
    return 100 * sum(done for _, done in counts) // files if files else 0


def note_progress() -> int:
    """Bring the progress column of the tasks that run up to their counters: how many changed.

    Rows that somebody works on wait.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH counted AS (
                SELECT t.id, 100 * sum(d.n_files_finished) / greatest(sum(d.n_files), 1) AS progress
                FROM workqueues_task t JOIN workqueues_dataset d ON d.task_id = t.id
                WHERE t.status IN ({TASK.working.sql}) AND d.type IN ({MASTER_TYPES.sql})
                  AND d.master_id IS NULL AND NOT d.excluded
                GROUP BY t.id
            ), changed AS (
                SELECT t.id, counted.progress FROM workqueues_task t JOIN counted ON counted.id = t.id
                WHERE t.progress <> counted.progress ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED
            )
            UPDATE workqueues_task t SET progress = changed.progress FROM changed WHERE changed.id = t.id
            """
        )
        return int(cursor.rowcount)
