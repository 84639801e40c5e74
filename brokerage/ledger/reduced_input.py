"""Less input for the jobs of a task after one that failed with too much of it, by a retry rule.

The task is changed once the end of the job is committed, since who works on a task locks it before its datasets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.follow_up import follow_up
from workqueues.ledger.task_notes import note_step
from workqueues.models import Task
from workqueues.rules.jobs.reduced_input import parts, reduced, why_not
from workqueues.rules.task.automatic_steps import LESS_INPUT

_JOBS = Prepared(
    "input_of_failed_jobs",
    "bigint[]",
    """
    SELECT j.id, j.task_id, t.split_rule,
        (SELECT count(*) FROM brokerage_jobinput i
        WHERE i.job_id = j.id AND (SELECT d.master_id IS NULL FROM workqueues_dataset d WHERE d.id = i.dataset_id))
    FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id
    WHERE j.id = ANY($1)
    """,
)


class InputFailure(NamedTuple):
    """A job that failed with too much input, the `attempt_nr`-th try of it."""

    job_id: int
    attempt_nr: int


def ask_for_less_input(failures: Sequence[InputFailure]) -> dict[int, str]:
    """The next jobs of the tasks of these jobs take less: what was done for each, in words."""
    if not failures:
        return {}
    rows = {row[0]: row[1:] for row in _JOBS.run([failure.job_id for failure in failures])}
    told: dict[int, str] = {}
    for job_id, attempt_nr in failures:
        if job_id not in rows:
            continue
        task_id, split_rule, n_files = rows[job_id]
        n = parts(attempt_nr)
        if n == 1:
            told[job_id] = "less input for its task only after its second try"
        elif reason := why_not(split_rule):
            told[job_id] = f"no less input: {reason}"
        elif reduced(split_rule, n_files, attempt_nr) == split_rule:
            told[job_id] = "the jobs of its task take no less than they do already"
        else:
            share = "single files" if n is None else f"1/{n} of the input"
            told[job_id] = f"{share} for the next jobs of its task"
            follow_up(_reduce, task_id, job_id, n_files, attempt_nr)
    return told


def _reduce(task_id: int, job_id: int, n_files: int, attempt_nr: int) -> None:
    with transaction.atomic():
        task = Task.objects.select_for_update(no_key=True).get(id=task_id)
        before, after = task.split_rule, reduced(task.split_rule, n_files, attempt_nr)
        if after == before:
            return
        Task.objects.filter(id=task_id).update(split_rule=after)
        why = f"job {job_id} failed with too much input"
        was, now = {"split_rule": before}, {"split_rule": after}
        note_step(task, LESS_INPUT, "task.input", f"job:{job_id}", why, was, now)
