"""Input that is staged from tape before jobs are made of it: wishes of datasets, and the files that are held until they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connection, transaction

from broker_site.foundation.agency.look import look_after_commit
from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.new_jobs import wisher_of
from brokerage.queries.staged_files import StagedFile
from workqueues.ledger.staging import hold_on, let_go
from workqueues.models import Task
from workqueues.queries.read_grants import INPUT_IN_CATALOGUE
from workqueues.rules.jobs.staging import not_brought, on_its_way, without_disk

_UNWANTED = """
UPDATE brokerage_transferwish w SET closed_at = now() FROM workqueues_task t
WHERE w.closed_at IS NULL AND w.role = 'stage' AND w.job_id IS NULL AND t.id = w.task_id AND t.ended_at IS NOT NULL
RETURNING w.id
"""

_DROP = f"""
UPDATE workqueues_replica r SET keep_until = now()
FROM workqueues_dataset d
    JOIN workqueues_cataloguedataset c ON {INPUT_IN_CATALOGUE} JOIN workqueues_cataloguefile f ON f.dataset_id = c.id
WHERE d.task_id = %(task)s AND d.type = 'input' AND r.file_id = f.id AND r.kind = 'cache' AND r.state = 'available'
    AND EXISTS (
        SELECT FROM brokerage_transfer t JOIN brokerage_transferwish w ON w.transfer_id = t.id
        WHERE t.file_id = f.id AND t.destination = r.storage AND w.role = 'stage' AND w.task_id = %(task)s)
    AND NOT EXISTS (
        SELECT FROM brokerage_transfer t JOIN brokerage_transferwish w ON w.transfer_id = t.id
            JOIN workqueues_task k ON k.id = w.task_id
        WHERE t.file_id = f.id AND t.destination = r.storage AND w.role = 'stage' AND k.id <> %(task)s AND k.ended_at IS NULL)
"""
"""Except what was staged for another task too that has not ended."""


def stage_files(files: Sequence[StagedFile], disks: Mapping[str, str], who: str) -> int:
    """Ask for the files that no disk has, and let those go that one has: how many of these.

    `disks`: tape -> the disk to which its files are staged. A file that lately did not come is not asked for again yet.
    """
    ready = [file for file in files if file.on_disk]
    absent = [file for file in files if not file.on_disk]
    wanted = [f for f in absent if f.catalogue_id and disks.get(f.tape) and not f.under_way and f.failure is None]
    words = {file.id: _why(file, disks) for file in absent}
    with transaction.atomic():
        if wanted:
            tasks = Task.objects.in_bulk({file.task_id for file in wanted})
            wishes = [
                wisher_of(tasks[f.task_id]).wish(f.catalogue_id or 0, disks[f.tape], f.dataset_id, None, on_tape=True)
                for f in wanted
            ]
            ask(wishes, who, "staged before jobs are made")
        hold_on({f.id: words[f.id] for f in absent if words[f.id] != f.held})
        return let_go([file.id for file in ready], who)


def _why(file: StagedFile, disks: Mapping[str, str]) -> str:
    """Why a file that no disk has is held."""
    disk = disks.get(file.tape, "")
    if file.failure is not None and not file.under_way:
        return not_brought(disk, file.failure)
    return on_its_way(disk) if disk and file.catalogue_id else without_disk(file.tape)


def drop_staged(task_id: int) -> None:
    """What was staged for a task that ends goes as soon as no job reads it, instead of after its lifetime."""
    with connection.cursor() as cursor:
        cursor.execute(_DROP, {"task": task_id})


def release_staging() -> None:
    """Tasks that have ended want nothing staged any more."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_UNWANTED)
        if cursor.fetchall():
            look_after_commit("transfer")
