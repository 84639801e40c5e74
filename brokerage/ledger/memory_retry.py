"""More memory after jobs that ran out of it: for the next try of their inputs, and for the whole task where many did.

In the transaction of the end of the jobs, which holds the datasets of their inputs. Which jobs ran out of memory retry rules say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.follow_up import follow_up
from brokerage.rules.dispatch.retry_rules import INCREASE_MEMORY
from workqueues.ledger.resource_types import resource_type_of
from workqueues.ledger.task_notes import note_step
from workqueues.models import Task
from workqueues.rules.jobs.memory_ladder import asked_for, is_per_core, next_step, own_steps, raises_task
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.task.automatic_steps import MEMORY

LATEST = 1000
"""So many of the latest ended jobs speak for a task."""

_JOBS = Prepared(
    "memory_of_failed_jobs",
    "bigint[]",
    """
    SELECT j.id, j.task_id, t.vo, t.ram_count, t.ram_unit, coalesce(t.base_ram_count, 0), t.split_rule, j.core_count, s.ram_mb
    FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id JOIN brokerage_jobspec s ON s.job_id = j.id
    WHERE j.id = ANY($1)
    """,
)
_MORE = Prepared(
    "more_memory",
    "bigint[], int[], text[]",
    """
    WITH wanted AS (
        SELECT DISTINCT ON (i.file_id) i.file_id, v.job_id, v.more, v.why
        FROM unnest($1, $2, $3) AS v(job_id, more, why) JOIN brokerage_jobinput i ON i.job_id = v.job_id AND i.tracked
        ORDER BY i.file_id, v.more DESC
    ), raised AS (
        UPDATE workqueues_file f SET ram_count = w.more FROM wanted w WHERE f.id = w.file_id AND f.ram_count < w.more
        RETURNING f.id, f.task_id, f.status, w.job_id, w.why
    )
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, task_id, status, 'more memory', 'job:' || job_id, why FROM raised
    """,
)
_FAILED = """
SELECT count(*) FILTER (WHERE r.retry_actions @> jsonb_build_array(jsonb_build_object('action', %s::text))), count(*)
FROM (SELECT id FROM brokerage_job WHERE task_id = %s AND ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT %s) j
    LEFT JOIN brokerage_jobresult r ON r.job_id = j.id
"""


class MemoryFailure(NamedTuple):
    """A job that ran out of memory, by a rule. `merges`: it merged what others made, which counts by itself, in MB, and says
    nothing of the task.
    """

    job_id: int
    max_pss: float
    merges: bool
    rule: str


def ask_for_more_memory(failures: Sequence[MemoryFailure]) -> dict[int, str]:
    """The inputs of jobs that ran out of memory get the next step of the ladder, or of those of their task; so does a task where
    many jobs did: what was done for each job, in words.

    The task is looked at once the end of the jobs is committed, since who works on a task locks it before its datasets. A process
    that is killed between, or finds the task locked for long, leaves that to the next job that fails so.
    """
    if not failures:
        return {}
    rows = {row[0]: row[1:] for row in _JOBS.run([failure.job_id for failure in failures])}
    told: dict[int, str] = {}
    raised: list[tuple[int, int, str]] = []
    tasks: dict[int, int] = {}
    for failure in failures:
        if failure.job_id not in rows:
            continue
        task_id, vo, of_task, unit, base, split_rule, cores, ram_mb = rows[failure.job_id]
        compensation = gdpconfig.value("jobbroker", "MEMORY_COMPENSATION", vo=vo)
        steps = parse(split_rule).retry_ram
        if failure.merges:
            unit, base, compensation, steps = "MB", 0, 1.0, None
        unit = unit or "MB"
        asked = asked_for(ram_mb, compensation, unit, base, cores)
        next_ = own_steps(*steps) if steps else next_step
        more = round(next_(failure.max_pss, asked, unit, base, cores))
        mb = "MB a core" if is_per_core(unit) else "MB"
        told[failure.job_id] = f"{more} {mb} for the next try" if more > asked else f"there is no step above its {asked} {mb}"
        if more > asked:
            raised.append((failure.job_id, more, f"retry rule {failure.rule}: {told[failure.job_id]}"))
            if more > (of_task or 0) and not failure.merges:
                tasks[task_id] = max(tasks.get(task_id, 0), more)
    if raised:
        _MORE.run(*map(list, zip(*raised, strict=True)))
    for task_id, more in tasks.items():
        follow_up(_raise_task, task_id, more)
    return told


def _raise_task(task_id: int, more: int) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_FAILED, [INCREASE_MEMORY, task_id, LATEST])
        n_failed, n_jobs = cursor.fetchone()
        task = Task.objects.select_for_update(no_key=True).get(id=task_id)
        before = task.ram_count or 0
        least = gdpconfig.value("jobbroker", "MEMORY_RAISE_MIN_JOBS", vo=task.vo)
        if more <= before or not raises_task(n_failed, n_jobs, least):
            return
        kind = resource_type_of(task, {"ram_count": more})
        Task.objects.filter(id=task_id).update(ram_count=more, resource_type=kind)
        why = f"{n_failed} of the latest {n_jobs} jobs ran out of memory"
        was, now = {"ram_count": before}, {"ram_count": more}
        note_step(task, MEMORY, "task.memory", "agent:settle", why, was, now)
