"""The loop of an agent over its claimed tasks: one bad task does not hold up the others; how long a pending one rests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from workqueues.ledger.holds import retry_later
from workqueues.ledger.moves import Stale
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.task.pending import wait_s

logger = logging.getLogger(__name__)


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
            logger.exception("agent %s failed on task %s", run.agent, task.id)
            _set_aside(run, task, error)
    return handled


def _set_aside(run: Run, task: Task, error: Exception) -> None:
    """Give the claim back with the reason, and before it the files picked under it: without a claim nobody would look at them."""
    try:
        give_back_picked(run.id, task.id)
    except Stale:
        return
    reason = f"agent {run.agent} failed on this task: {type(error).__name__}: {error}".replace("\x00", "")
    retry_later(run.id, task.id, reason, gdpconfig.value("agents", "SET_ASIDE"))


def rest_s(task: Task) -> float:
    """Seconds until the pending task is tried again."""
    config = gdpconfig.component("watchdog", vo=task.vo)
    return wait_s(task.current_priority, activity_of(task.prod_source_label), config)
