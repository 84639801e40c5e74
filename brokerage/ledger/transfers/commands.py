"""What operators do with a transfer: try it again, or cancel it. Each leaves an audit row, done or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection, transaction

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.agency.look import look_after_commit
from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.ends import end_unmet
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import StorageEndpoint, Transfer, TransferWish
from brokerage.rules.transfers.wishes import INPUT_ROLES, OUTPUT_ROLES, FileWish
from workqueues.ledger.moves import Stale
from workqueues.models import Task

MOST_WISHES = 1000
"""Wishes of a transfer that are asked for again, the newest."""

_DUE = """
WITH due AS (
    UPDATE brokerage_transfer SET next_at = NULL WHERE id = %s AND status = 'queued' AND next_at > now()
    RETURNING id, status, attempt
)
INSERT INTO brokerage_transferchange (transfer_id, old, new, attempt, who, why)
SELECT id, status, status, attempt, left(%s, 128), left(%s, 255) FROM due RETURNING transfer_id
"""


class CannotCommand(Exception):
    """The transfer takes no such command now; in words."""


def retry_transfer(caller: Principal, transfer: Transfer, comment: str = "") -> int:
    """Try an attempt that rests at once, or ask anew for what an ended one did not bring: the transfer that will bring it."""
    with transaction.atomic():
        audit("transfer.retry", caller, _target(transfer), vo=transfer.vo, reason=comment)
        if transfer.ended_at is None:
            return _due_now(transfer, caller.name, comment)
        if not StorageEndpoint.objects.filter(name=transfer.destination).exists():
            raise CannotCommand(f"the grid knows no storage {transfer.destination} any more")
        wishes = list(_wishes_again(transfer))
        if not wishes:
            raise CannotCommand("nobody wants it there any more: the tasks that did have ended, or it was a job's own output")
        try:
            again = ask(wishes, caller.name, f"{caller.name} asked for it again")
        except Stale as stale:
            raise CannotCommand(f"{stale}; try again") from None
        asked = next((id_ for id_ in again if id_ is not None), None)
        if asked is None:
            raise CannotCommand(f"the file is at {transfer.destination}")
        return asked


def cancel_transfer(caller: Principal, transfer: Transfer, comment: str = "") -> None:
    """End a transfer that is open. Jobs that wait for its file end; what copies it is told by the agent."""
    why = f"{caller.name} cancelled it" + (f": {comment}" if comment else "")
    with transaction.atomic():
        audit("transfer.cancel", caller, _target(transfer), vo=transfer.vo, reason=comment)
        if not end_unmet([TransferMove(transfer.id, why, reason="operator")], "cancelled", caller.name):
            raise CannotCommand("it has ended")
        look_after_commit("transfer")


def _due_now(transfer: Transfer, who: str, comment: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [transfer.id, who, "to be tried again now" + (f": {comment}" if comment else "")])
        if cursor.fetchone() is None:
            raise CannotCommand(f"it is {transfer.status} and does not rest")
    look_after_commit("transfer")
    return transfer.id


def _wishes_again(transfer: Transfer) -> Iterator[FileWish]:
    """The wishes that it had, without those that are over.

    Jobs that waited for it have ended with it, and their files are in new jobs, or will be: so what was an input is asked for by
    the task, as long as that has not ended. What was an output has been made anew, or given up. A log still travels.
    """
    wishes = list(TransferWish.objects.filter(transfer_id=transfer.id).order_by("-id")[:MOST_WISHES])
    live = set(Task.objects.filter(id__in={w.task_id for w in wishes}, ended_at=None).values_list("id", flat=True))
    seen = set()
    for wish in wishes:
        input_of_task = wish.role in INPUT_ROLES
        if (input_of_task and wish.task_id not in live) or (wish.role in OUTPUT_ROLES and wish.role != "log"):
            continue
        again = FileWish(
            file_id=transfer.file_id,
            destination=transfer.destination,
            role=wish.role,
            activity=transfer.activity,
            vo=wish.vo,
            owner=wish.owner,
            share=transfer.share,
            priority=transfer.priority,
            express=transfer.express,
            job_id=None if input_of_task else wish.job_id,
            task_id=wish.task_id,
            dataset_id=wish.dataset_id,
        )
        if again not in seen:
            seen.add(again)
            yield again


def _target(transfer: Transfer) -> str:
    return f"transfer {transfer.id} of {transfer.file.lfn} to {transfer.destination}"
