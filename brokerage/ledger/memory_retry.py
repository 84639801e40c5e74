"""More memory after a job that ran out of it: for the next try of its inputs, and for the whole task where many did.

In the transaction of the end of the job, which holds the datasets of its inputs.
"""

from __future__ import annotations

from functools import partial

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import SYSTEM
from brokerage.models import JobInput
from workqueues.models import File, Task
from workqueues.rules.jobs.memory_ladder import MEMORY_CODES, asked_for, next_step, raises_task
from workqueues.rules.jobs.resource_type import resource_type

LATEST = 1000
"""So many of the latest ended jobs speak for a task."""

_JOB = """
SELECT j.task_id, t.vo, t.ram_count, t.ram_unit, coalesce(t.base_ram_count, 0), j.core_count, s.ram_mb
FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id JOIN brokerage_jobspec s ON s.job_id = j.id WHERE j.id = %s
"""
_FAILED = """
SELECT count(*) FILTER (WHERE r.error_code = ANY(%s)), count(*)
FROM (SELECT id FROM brokerage_job WHERE task_id = %s AND ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT %s) j
    LEFT JOIN brokerage_jobresult r ON r.job_id = j.id
"""


def ask_for_more_memory(job_id: int, max_pss: float, *, merging: bool = False) -> None:
    """The inputs of a job that ran out of memory get the next step of the ladder, and so does its task where many jobs did.

    The task is looked at once the end of the job is committed, since who works on a task locks it before its datasets. A process
    that is killed between leaves that to the next job that fails so. `merging`: the job merged what others made, which counts by
    itself, in MB, and says nothing of the task.
    """
    with connection.cursor() as cursor:
        cursor.execute(_JOB, [job_id])
        if (row := cursor.fetchone()) is None:
            return
    task_id, vo, of_task, unit, base, cores, ram_mb = row
    compensation = gdpconfig.value("jobbroker", "MEMORY_COMPENSATION", vo=vo)
    if merging:
        unit, base, compensation = "MB", 0, 1.0
    asked = asked_for(ram_mb, compensation, unit or "MB", base, cores)
    more = round(next_step(max_pss, asked, unit or "MB", base, cores))
    if more > asked:
        inputs = JobInput.objects.filter(job_id=job_id, tracked=True).values("file_id")
        File.objects.filter(id__in=inputs, ram_count__lt=more).update(ram_count=more)
        if more > (of_task or 0) and not merging:
            transaction.on_commit(partial(_raise_task, task_id, more, compensation))


def _raise_task(task_id: int, more: int, compensation: float) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_FAILED, [list(MEMORY_CODES), task_id, LATEST])
        n_failed, n_jobs = cursor.fetchone()
        task = Task.objects.select_for_update(no_key=True).get(id=task_id)
        before = task.ram_count or 0
        if more <= before or not raises_task(n_failed, n_jobs):
            return
        kind = resource_type(task.core_count, more, task.ram_unit or "MB", task.base_ram_count, compensation=compensation)
        Task.objects.filter(id=task_id).update(ram_count=more, resource_type=kind)
        why = f"{n_failed} of the latest {n_jobs} jobs ran out of memory"
        was, now = {"ram_count": before}, {"ram_count": more}
        audit("task.memory", SYSTEM, f"task {task_id}", vo=task.vo, reason=why, before=was, after=now)
