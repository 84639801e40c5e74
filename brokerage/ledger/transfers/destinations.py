"""Datasets that a task wants somewhere once it has ended (`destination`): a wish for each of their files.

Decision I5: no job waits for it, and it changes nothing of the task.
"""

from __future__ import annotations

from django.db import connection, transaction

from brokerage.ledger.transfers.asking import ask
from brokerage.rules.grid.measurements import EXPRESS
from brokerage.rules.transfers.wishes import ANALYSIS_OUTPUT, DATASETS, FileWish, is_express
from workqueues.models import Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.states import OUTPUT_TYPES

AT_ONCE = 1000

_ABSENT = f"""
SELECT c.id, d.id, d.destination
FROM workqueues_dataset d
    JOIN brokerage_storageendpoint e ON e.name = d.destination
    JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = d.vo
    JOIN workqueues_cataloguefile c ON c.dataset_id = cd.id
WHERE d.task_id = %(task)s AND d.type IN ({OUTPUT_TYPES.sql}) AND (c.id, d.id) > (%(file)s, %(dataset)s)
    AND EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = c.id AND r.state = 'available')
    AND NOT EXISTS (
        SELECT FROM workqueues_replica r WHERE r.file_id = c.id AND r.state = 'available' AND r.storage = d.destination)
    AND NOT EXISTS (
        SELECT FROM brokerage_transferwish w JOIN brokerage_transfer t ON t.id = w.transfer_id
        WHERE t.file_id = c.id AND t.destination = d.destination AND w.dataset_id = d.id AND w.job_id IS NULL
            AND w.closed_at IS NULL)
ORDER BY c.id, d.id LIMIT %(limit)s
"""

_KEEP = f"""
WITH there AS (
    SELECT c.id, d.destination FROM workqueues_dataset d
        JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = d.vo
        JOIN workqueues_cataloguefile c ON c.dataset_id = cd.id
        JOIN workqueues_replica r ON r.file_id = c.id AND r.storage = d.destination AND r.kind = 'cache'
    WHERE d.task_id = %(task)s AND d.type IN ({OUTPUT_TYPES.sql}) ORDER BY c.id FOR NO KEY UPDATE OF c
)
UPDATE workqueues_replica r SET kind = 'origin', keep_until = NULL FROM there
WHERE r.file_id = there.id AND r.storage = there.destination AND r.kind = 'cache' AND r.state = 'available'
"""
"""What is there already as a cache copy is nobody's to remove any more."""


def send_datasets(task: Task, who: str) -> int:
    """Wish the files of the task's datasets at their destinations, as far as they are not there: how many.

    To be called before the task ends; called again it asks for what is left.
    """
    express = is_express(task.processing_type, task.current_priority)
    activity = EXPRESS if express else ANALYSIS_OUTPUT if activity_of(task.prod_source_label) == "analysis" else DATASETS
    owner = f"group:{task.working_group}" if task.working_group else task.user_name
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_KEEP, {"task": task.id})
    total, last = 0, (0, 0)
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_ABSENT, {"task": task.id, "file": last[0], "dataset": last[1], "limit": AT_ONCE})
            absent = cursor.fetchall()
            wishes = [
                FileWish(
                    file_id, place, "dataset", activity, task.vo, owner, task.gshare, task.current_priority, express,
                    task_id=task.id, dataset_id=dataset_id,
                )
                for file_id, dataset_id, place in absent
            ]  # fmt: skip
            ask(wishes, who, "the task has ended")
        total += len(absent)
        if len(absent) < AT_ONCE:
            return total
        last = absent[-1][:2]
