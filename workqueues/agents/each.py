"""The loop of an agent over its claimed tasks: one bad task does not hold up the others; how long a pending one rests."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import concerns_all, in_words
from broker_site.foundation.agency.run import Run
from workqueues.ledger.holds import note_reason, retry_later
from workqueues.ledger.moves import Stale
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.task.pending import wait_s


def each(run: Run, tasks: Iterable[Task], step: Callable[[Run, Task], int | bool]) -> int:
    """Run `step` for every task: the sum of what it handled.

    A task that somebody else moved meanwhile is left to them. A task whose step fails is set aside for a while, with the reason
    on it, so that its owner sees it and the others go on.
    """
    handled = 0
    for task in tasks:
        try:
            handled += step(run, task)
        except Stale:
            continue  # a command or a later run has the task by now
        except Exception as error:  # the agent loop: what went wrong with one task is said on it
            if concerns_all(error):
                raise
            set_aside(run, task, error)
    return handled


def set_aside(run: Run, task: Task, error: Exception) -> None:
    """Leave a claimed task alone for a while, with the reason on it and in the record of the agent.

    The files picked under its claim are given back before: without a claim nobody would look at them. Where these cannot be had
    now, the claim stays until it runs out; then the agent wake gives them back.
    """
    run.leave(f"task {task.id}", error)
    reason = f"agent {run.agent} failed on this task: {in_words(error)}"
    try:
        give_back_picked(run.id, task.id)
    except Stale:
        return
    except Exception as again:
        if concerns_all(again):
            raise
        note_reason(task.id, reason)
    else:
        retry_later(run.id, task.id, reason, gdpconfig.value("agents", "SET_ASIDE"))


def rest_s(task: Task) -> float:
    """Seconds until the pending task is tried again."""
    config = gdpconfig.component("watchdog", vo=task.vo)
    return wait_s(task.current_priority, activity_of(task.prod_source_label), config)
