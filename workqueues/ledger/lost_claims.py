"""Claims whose run was killed, by one of its tasks perhaps: each counts as a failure of the agent on the task.

Which task it was cannot be told of a run that had several, and a run may be killed from outside. Therefore tasks on which their
agent failed twice in a row are taken alone: an innocent one comes through and is forgotten, and only a harmful one is counted on,
up to quarantine.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import in_halves, in_words
from workqueues.ledger.picked_files import return_picked
from workqueues.models import Task

logger = logging.getLogger(__name__)

SUSPECT_AFTER = 2
"""Failures of an agent on a task, in a row, after which it is taken alone."""
CAUSES = "by lack of memory, by its time limit or from outside"


def agent_of(run_id: str) -> str:
    """The name of the agent of a run."""
    return run_id.partition("-")[0]


def note_lost_claims(run_id: str, holders: Mapping[int, str]) -> list[int]:
    """Count the failure on tasks that this run has just taken over from `holders`, runs that were killed.

    What these had picked is given back: where it was all that is left, no generator would look at the task again. Returned are
    tasks for which that cannot be done now: nobody works on them until the claim runs out.

    The last of `agents.QUARANTINE_AFTER` puts a task into quarantine: it is given back with its picked files.
    """
    most = gdpconfig.value("agents", "QUARANTINE_AFTER")
    with transaction.atomic():
        tasks = list(Task.objects.select_for_update(no_key=True).filter(id__in=holders, locked_by=run_id).order_by("id"))
        for task in tasks:
            task.agent_faults += 1
            task.faulty_agent = agent_of(holders[task.id])[:32]
            last = task.agent_faults >= most
            end = "no agent works on it until it is retried" if last else "it is tried again, by itself"
            task.error_dialog = (
                f"agent {task.faulty_agent} was killed while it worked on this task: {CAUSES}"
                f" ({task.agent_faults} of {most} times; {end})"
            )
            task.quarantined_at = Now() if last else None
            logger.warning("task %s: %s", task.id, task.error_dialog)
        Task.objects.bulk_update(tasks, ["agent_faults", "faulty_agent", "error_dialog", "quarantined_at"])
        give_back(run_id, [task.id for task in tasks if task.agent_faults >= most])
    stuck: list[int] = []

    def keep(task_id: int, error: Exception) -> None:
        logger.warning("the claim of %s on task %s stays: %s", run_id, task_id, in_words(error))
        stuck.append(task_id)

    in_halves([task.id for task in tasks if task.agent_faults < most], partial(_return, run_id), keep)
    return stuck


def _return(run_id: str, task_ids: Sequence[int]) -> None:
    """Give back what was picked for these tasks, of those that the run holds."""
    with transaction.atomic():
        held = Task.objects.select_for_update(no_key=True).filter(id__in=task_ids, locked_by=run_id).order_by("id")
        return_picked(*held.values_list("id", flat=True))


def work_of_run(run_id: str, tasks: Sequence[Task]) -> Sequence[Task]:
    """The part of a batch that a run works on: all tasks but suspects, or one suspect alone.

    Where there are both the lot decides, so that neither keeps the other waiting for long.
    """
    agent = agent_of(run_id)
    suspects = [task for task in tasks if task.agent_faults >= SUSPECT_AFTER and task.faulty_agent == agent]
    others = [task for task in tasks if task not in suspects]
    return suspects[:1] if suspects and (not others or random.random() < 0.5) else others  # noqa: S311


def give_back(run_id: str, task_ids: Sequence[int], **columns: Any) -> None:
    """Give claimed tasks back as they were but for `columns`, with what was picked for them. Where that cannot be, the claim runs
    out.
    """

    def keep(task_id: int, error: Exception) -> None:
        logger.warning("the claim of %s on task %s stays: %s", run_id, task_id, in_words(error))

    in_halves(task_ids, partial(_give_back, run_id, columns), keep)


def _give_back(run_id: str, columns: Mapping[str, Any], task_ids: Sequence[int]) -> None:
    with transaction.atomic():
        held = Task.objects.select_for_update(no_key=True).filter(id__in=task_ids, locked_by=run_id).order_by("id")
        ids = list(held.values_list("id", flat=True))
        return_picked(*ids)
        Task.objects.filter(id__in=ids).update(**columns, locked_by="", locked_time=None)
