"""Tasks that wait: put on hold with a reason, woken, timed out while pending."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Case, DateTimeField, F, Func, Value, When
from django.db.models.functions import Coalesce, Now

from broker_site.foundation.gdpconfig.texts import duration_text
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.lost_claims import give_back
from workqueues.ledger.moves import Stale, move_task
from workqueues.ledger.throttles import held_until
from workqueues.models import Task
from workqueues.rules.jobs.retry_pause import RetryPause
from workqueues.states import TASK

LONGEST_OF_REST = 1.5
"""A rest that ends together with others lasts less than so many times as long as is asked for, and at least half as long."""
_GRID = datetime(2000, 1, 1, tzinfo=UTC)
"""Rests that end together end a whole number of them after this."""
REST = timedelta(minutes=10)
"""So long a task that is sent elsewhere rests after each look at its jobs; that ends as soon as they are gone."""


def set_pending(run_id: str, task_id: int, reason: str, wait_s: float, who: str, *, clock: bool = True) -> None:
    """Put a claimed task on hold for `wait_s` seconds and give the claim back.

    `clock`: whether the wait counts towards the time-out of pending tasks (not while a parent runs; facts, timeouts 4.4).
    """
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        columns = {
            "old_status": task.status,
            "error_dialog": reason[:510],
            "next_look_at": Now() + Value(timedelta(seconds=wait_s)),
            "frozen_time": Coalesce(task.frozen_time, Now()) if clock else None,
        }
        move_task(task, "pending", who, reason, **columns)


def retry_later(run_id: str, task_id: int, reason: str, wait_s: float) -> None:
    """A claimed task stays in its state for `wait_s` seconds before the next look; say why, and give the claim back."""
    Task.objects.filter(id=task_id, locked_by=run_id).update(**_later(reason, wait_s), locked_by="", locked_time=None)


def retry_all_later(run_id: str, task_ids: Sequence[int], reason: str, wait_s: float) -> None:
    """The same for many tasks at once; what was picked for them is given back too."""
    give_back(run_id, task_ids, **_later(reason, wait_s))


def rest_together(run_id: str, task_ids: Sequence[int], reason: str, rest_s: float) -> None:
    """The same for about `rest_s` seconds, up to a moment at which all end that rest so long.

    Were each to rest for itself, one of low priority would be alone awake when room is made, and take it from those before it.
    """
    rest = timedelta(seconds=rest_s)
    until = Func(
        Value(rest), Now() + Value(LONGEST_OF_REST * rest), Value(_GRID), function="date_bin", output_field=DateTimeField()
    )
    give_back(run_id, task_ids, **{**_later(reason, rest_s), "next_look_at": until})


def _later(reason: str, wait_s: float) -> dict[str, Any]:
    """Columns of a task that rests. It has been worked on, so those come first then that were not."""
    until = Now() + Value(timedelta(seconds=wait_s))
    return {"error_dialog": reason[:510], "next_look_at": until, "modification_time": Now()}


def note_fault(run_id: str, task_id: int, agent: str, reason: str, pause: RetryPause, most: int) -> bool:
    """An agent failed on a claimed task, which waits, longer after each failure in a row, and gives the claim back. The last of
    `most` puts it into quarantine: whether it did.
    """
    with transaction.atomic():
        try:
            task = lock_claimed(task_id, run_id)
        except Stale:
            return False
        faults = task.agent_faults + 1
        last = faults >= most
        end = "no agent works on it until it is retried" if last else "it is tried again"
        Task.objects.filter(id=task_id).update(
            agent_faults=faults,
            faulty_agent=agent,
            quarantined_at=Now() if last else None,
            error_dialog=f"{reason[:430]} ({faults} of {most} times; {end})",
            next_look_at=Now() + Value(timedelta(seconds=pause.after(faults))),
            locked_by="",
            locked_time=None,
        )
        return last


def forget_faults(task_id: int, agent: str) -> None:
    """An agent got on with a task on which it had failed before: what it said of that holds no more."""
    Task.objects.filter(id=task_id, faulty_agent=agent, quarantined_at=None).update(
        agent_faults=0,
        faulty_agent="",
        error_dialog=Case(When(error_dialog__startswith=f"agent {agent} ", then=Value("")), default=F("error_dialog")),
    )


WITHOUT_FAULTS = {"agent_faults": 0, "faulty_agent": "", "quarantined_at": None}
"""Columns of a task to which no agent's failures are held any more."""


def note_reason(task_id: int, reason: str) -> None:
    """Say on a task what is wrong with it, whoever has it; nothing happens to one that has ended, or that is locked."""
    with transaction.atomic():
        tasks = Task.objects.select_for_update(no_key=True, skip_locked=True).filter(id=task_id, ended_at=None)
        if tasks.exists():
            tasks.update(error_dialog=reason[:510])


def wake(run_id: str, task_id: int, who: str, *, over_s: float | None) -> None:
    """Bring a claimed task that rests back to the state before; or to exhausted when it was pending for longer than `over_s`
    seconds, None: it was not; release it.

    One that is throttled for a further cause stays so, and one that is sent elsewhere until the jobs that are to go have ended,
    whoever wanted it to be looked at.
    """
    with transaction.atomic():
        task = lock_claimed(task_id, run_id)
        if task.status not in TASK.resting:
            raise Stale(f"task {task_id} is {task.status}, it does not rest")
        if task.status == "throttled" and (until := held_until(task.id)):
            Task.objects.filter(id=task.id).update(next_look_at=until, locked_by="", locked_time=None)
        elif task.command == "reassign":
            Task.objects.filter(id=task.id).update(next_look_at=Now() + Value(REST), locked_by="", locked_time=None)
        elif over_s is not None:
            move_task(task, "exhausted", who, f"pending for over {duration_text(over_s)}: {task.error_dialog}")
        else:
            move_task(task, task.old_status, who, "looked at again", old_status="")


def kick_children(parent_id: int) -> int:
    """Let pending children of a task be looked at now, those that only wait for its outputs too; how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH children AS (
                SELECT id FROM workqueues_task WHERE status = 'pending' AND id <> %(parent)s AND id = ANY (ARRAY(
                    SELECT id FROM workqueues_task WHERE parent_tid = %(parent)s
                    UNION SELECT task_id FROM workqueues_inputwriter WHERE writer_id = %(parent)s))
                ORDER BY id FOR NO KEY UPDATE
            )
            UPDATE workqueues_task t SET next_look_at = now() FROM children c WHERE t.id = c.id
            """,
            {"parent": parent_id},
        )
        return int(cursor.rowcount)
