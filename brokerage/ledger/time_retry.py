"""More time for the jobs of a task after one that ran out of it, by a retry rule: by what that job shows while none has finished,
else its needs are measured again.

The task is changed once the end of the job is committed, since who works on a task locks it before its datasets.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.follow_up import follow_up
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.facts.needs import BASE_WALLTIME_S, CPU_EFFICIENCY, hs06_s_per_event
from brokerage.states import JOB
from workqueues.ledger.task_notes import note_step
from workqueues.models import Task
from workqueues.rules.jobs.raised_cpu_time import CpuTime, raised_cpu_time
from workqueues.rules.task.automatic_steps import MORE_TIME

NORMAL, SCOUT = JobKind.NORMAL.value, JobKind.SCOUT.value
MEASURED_ONCE = 1
"""As of a task that was measured by so few jobs that it is again."""

_JOBS = Prepared(
    "time_of_failed_jobs",
    "bigint[]",
    f"""
    SELECT j.id, j.task_id, t.vo, t.cpu_time, t.cpu_time_unit, extract(epoch FROM r.end_time - r.start_time)::float8,
        t.base_walltime::float8, coalesce(q.corepower, 0)::float8, j.core_count,
        t.cpu_efficiency::float8, s.n_events,
        EXISTS (SELECT FROM brokerage_job o WHERE o.task_id = t.id AND o.status IN ({JOB.succeeded.sql})
            AND o.kind IN ({NORMAL}, {SCOUT}))
    FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id JOIN brokerage_jobspec s ON s.job_id = j.id
        JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id LEFT JOIN brokerage_jobresult r ON r.job_id = j.id
    WHERE j.id = ANY($1)
    """,
)


class _Job(NamedTuple):
    id: int
    task_id: int
    vo: str
    cpu_time: float | None
    unit: str
    wall_s: float | None
    base_s: float | None
    power: float
    cores: int
    efficiency: float | None
    n_events: int
    finished: bool
    """Whether another job of its task has finished."""

    def shows(self) -> CpuTime | None:
        """The CPU time of an event that it shows to be needed."""
        base_s = BASE_WALLTIME_S if self.base_s is None else self.base_s
        efficiency = CPU_EFFICIENCY if self.efficiency is None else self.efficiency
        return raised_cpu_time(self.wall_s, base_s, self.power, self.cores, efficiency, self.n_events)


def ask_for_more_time(job_ids: Sequence[int]) -> dict[int, str]:
    """The tasks of these failed jobs ask for more time: what was done for each job, in words."""
    if not job_ids:
        return {}
    told: dict[int, str] = {}
    raised: dict[int, tuple[CpuTime, int]] = {}
    measured = set[int]()
    for job in (_Job(*row) for row in _JOBS.run(list(job_ids))):
        more = job.shows()
        if job.unit.endswith("Fixed"):
            told[job.id] = f"no more time: its task says for good what an event needs ({job.unit})"
        elif job.finished or more is None:
            told[job.id] = "what the jobs of its task need is measured again, by those that have finished"
            measured.add(job.task_id)
        elif more.hs06s <= (hs06_s_per_event(job.cpu_time, job.unit) or 0.0):
            told[job.id] = "its task asks for as much time already"
        else:
            told[job.id] = f"{more.amount:.4g} {more.unit} for the next jobs of its task"
            raised[job.task_id] = max(raised.get(job.task_id, (more, job.id)), (more, job.id), key=lambda each: each[0].hs06s)
    for task_id, (more, job_id) in raised.items():
        follow_up(_raise, task_id, more, job_id)
    if measured:
        follow_up(_measure_again, sorted(measured))
    return told


def _raise(task_id: int, more: CpuTime, job_id: int) -> None:
    with transaction.atomic():
        task = Task.objects.select_for_update(no_key=True).get(id=task_id)
        if more.hs06s <= (hs06_s_per_event(task.cpu_time, task.cpu_time_unit) or 0.0):
            return
        before: dict[str, Any] = {"cpu_time": task.cpu_time, "cpu_time_unit": task.cpu_time_unit}
        after: dict[str, Any] = {"cpu_time": more.amount, "cpu_time_unit": more.unit}
        Task.objects.filter(id=task_id).update(**after)
        why = f"job {job_id} ran out of time"
        note_step(task, MORE_TIME, "task.cputime", f"job:{job_id}", why, before, after)


def _measure_again(task_ids: Sequence[int]) -> None:
    """Unless they were measured just now: so many jobs that fail at once cost one measuring."""
    pause = timedelta(seconds=gdpconfig.value("dbproxy", "MEASURE_PAUSE"))
    with transaction.atomic():
        tasks = Task.objects.filter(Q(assessment_time__isnull=True) | Q(assessment_time__lt=Now() - pause), id__in=task_ids)
        due = tasks.filter(n_measured__gt=MEASURED_ONCE).order_by("id").select_for_update(no_key=True)
        Task.objects.filter(id__in=[task.id for task in due]).update(n_measured=MEASURED_ONCE)
        look_after_commit("assess")
