"""A task comes in: registered once per idempotency key, with its parameters as they came and what is known before refining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, connection, transaction

from broker_site.foundation.agency.look import look_after_commit
from workqueues.ledger.moves import task_born
from workqueues.models import InputWriter, Submission, Task, TaskParams
from workqueues.rules.refine import InputWriterFacts


class KeyConflict(Exception):
    """The idempotency key was used before with another body."""


def submitted_before(user_name: str, key: str, body_sha256: str) -> Task | None:
    """The task that this key submitted; KeyConflict if that was with another body."""
    known = Submission.objects.filter(user_name=user_name, key=key).first()
    if known is None:
        return None
    if known.body_sha256 != body_sha256:
        raise KeyConflict(key)
    return Task.objects.get(id=known.task_id)


def submit(
    params: Mapping[str, Any],
    columns: Mapping[str, Any],
    submitter: str,
    who: str,
    key: str = "",
    body_sha256: str = "",
    *,
    writers: Sequence[InputWriterFacts] = (),
) -> tuple[Task, bool]:
    """Register a task whose parameters were found valid: the task and whether it is new.

    `columns`: what is known of the task before it is refined, its owner included; `writers`: the parents that were inferred. A
    repeated key of the same submitter gives the first task; raises KeyConflict.
    """
    if key and (task := submitted_before(submitter, key, body_sha256)) is not None:
        return task, False
    try:
        with transaction.atomic():
            task = Task.objects.create(status="registered", submitted_by=submitter, **columns)
            if task.parent_tid is None:
                task.parent_tid = task.id
                task.save(update_fields=["parent_tid"])
            TaskParams.objects.create(task=task, task_params=dict(params))
            InputWriter.objects.bulk_create(
                InputWriter(task=task, writer_id=writer.task_id, dataset_name=writer.dataset_name) for writer in writers
            )
            if key:
                note_key(submitter, key, body_sha256, task.id)
            task_born(task, who, "submitted")
            look_after_commit("refine")
            return task, True
    except IntegrityError:
        if key and (first := submitted_before(submitter, key, body_sha256)) is not None:
            return first, False  # the same submission at the same time: the other one was first
        raise


def note_key(submitter: str, key: str, body_sha256: str, task_id: int) -> None:
    """The key stands for this task from now on."""
    Submission.objects.create(user_name=submitter, key=key, body_sha256=body_sha256, task_id=task_id)


def hold_name(vo: str, user_name: str, task_name: str) -> None:
    """Until the end of the caller's transaction nobody else submits a task of this name that must be the only one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"task {vo} {user_name} {task_name}"])


def first_columns(params: Mapping[str, Any], owner: str, parent_id: int | None = None) -> dict[str, Any]:
    """Columns of the row of a task before it is refined, by accepted parameters; it belongs to `owner`."""
    priority = params.get("taskPriority") or 0
    current = params.get("currentPriority")
    return {
        "task_name": params["taskName"],
        "user_name": owner,
        "vo": params["vo"],
        "prod_source_label": params["prodSourceLabel"],
        "task_type": params.get("taskType") or "anal",
        "processing_type": params.get("processingType") or "",
        "working_group": params.get("workingGroup") or "",
        "campaign": params.get("campaign") or "",
        "task_priority": priority,
        "current_priority": priority if current is None else current,
        "parent_tid": parent_id,
    }
