"""The loop of an agent over its claimed tasks: one bad task does not hold up the others; how long a pending one rests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from math import inf

from celery.exceptions import SoftTimeLimitExceeded

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import concerns_all, in_words, is_of_others
from broker_site.foundation.agency.run import Run
from workqueues.ledger.holds import forget_faults, note_fault, note_reason, retry_later
from workqueues.ledger.lost_claims import give_back
from workqueues.ledger.moves import Stale
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.retry_pause import RetryPause
from workqueues.rules.task.pending import wait_s


def each(run: Run, tasks: Iterable[Task], step: Callable[[Run, Task], int | bool | None]) -> int:
    """Run `step` for every task: the sum of what it handled; None: nothing was tried, which says nothing of the task.

    A task that somebody else moved meanwhile is left to them. A task whose step fails is set aside for a while, with the reason
    on it, so that its owner sees it and the others go on. A step that ends well ends its row of failures. When the time of the
    run is over, that is a failure of the task at work, and those after it are given back.
    """
    handled = 0
    rest = deque(tasks)
    while rest:
        task = rest.popleft()
        try:
            done = step(run, task)
            handled += done or 0
            if done is not None and task.faulty_agent == run.agent:
                forget_faults(task.id, run.agent)
        except Stale:
            continue  # a command or a later run has the task by now
        except Exception as error:  # the agent loop: what went wrong with one task is said on it
            if concerns_all(error):
                raise
            set_aside(run, task, error)
            if isinstance(error, SoftTimeLimitExceeded):
                give_back(run.id, [task.id for task in rest])
                break
    return handled


def set_aside(run: Run, task: Task, error: Exception) -> None:
    """Leave a claimed task alone for a while, with the reason on it and in the record of the agent.

    After each failure in a row it waits twice as long, after the last it is in quarantine; where other work was in the way, it is
    not to blame. The files picked under its claim are given back before: without a claim nobody would look at them. Where these
    cannot be had now, the claim stays until it runs out; then the agent wake gives them back.
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
        config = gdpconfig.component("agents")
        if is_of_others(error):
            retry_later(run.id, task.id, reason, config["SET_ASIDE"])
        elif note_fault(run.id, task.id, run.agent, reason, RetryPause(config["SET_ASIDE"], inf), config["QUARANTINE_AFTER"]):
            run.left.append(f"task {task.id} is in quarantine")


def rest_s(task: Task) -> float:
    """Seconds until the pending task is tried again."""
    config = gdpconfig.component("watchdog", vo=task.vo)
    return wait_s(task.current_priority, activity_of(task.prod_source_label), config)
