"""Placed jobs of a claimed task become rows: numbers are reserved, the jobs are built from them and written."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from brokerage.ledger.generate import generate
from brokerage.ledger.reservation import outputs_by_queue, reserve, task_queues
from brokerage.rules.placement.job_builder import JobBuilder, dealt_files
from brokerage.rules.placement.new_job import PlacedJob
from brokerage.rules.placement.usable_input import UsableInput
from workqueues.models import JobParamsTemplate, Task


def make_jobs(run_id: str, task: Task, usable: UsableInput, placed: Sequence[PlacedJob], decision_id: int, who: str) -> None:
    """Make the placed jobs.

    Raises Stale if the claim is gone, UnresolvedPlaceholder if a job lacks a value, BadPlan if the generator gives no text.
    """
    if not placed:
        return
    with _without_garbage_collection():
        reservation = reserve(run_id, task.id, len(placed))
        outputs = outputs_by_queue(task, reservation.outputs, {p.queue for p in placed}, who)
        queues = task_queues(task, {(p.queue_id, p.slot) for p in placed})
        parameters = JobParamsTemplate.objects.get(task_id=task.id).job_params_template
        builder = JobBuilder(task.id, usable, parameters, reservation.job_ids, reservation.seeds, outputs)
        jobs = (builder.job(i, p, queues[p.queue_id, p.slot]) for i, p in enumerate(placed))
        cut = [usable.dataset.id] if usable.pieces else []
        generate(run_id, task.id, jobs, who, decision_id, builder.written(placed), cut, dealt_files(usable.others, placed))


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """All that is made is kept to the end, and looking through it for garbage takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
