"""One round of every agent where it has nothing to do but to look: seconds at N live tasks with J jobs, and at a quarter of them.

The tasks are those of a full system: most run with jobs under way, others scout, wait to merge, have a goal, are nearly done, or
rest as pending, throttled, paused or exhausted. Each agent runs until it finds nothing more, then ROUNDS times; told is the
median. There is no reference; `growth` is the time at N over four times that at a quarter: above 1 it grows faster than N.
"""

from __future__ import annotations

import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from benchmarks.cycle import fill_grid
from benchmarks.harness import Line
from benchmarks.server import Bench, bench

if TYPE_CHECKING:
    from workqueues.models import Task

QUEUES = 100
SETTLING = 10
"""An agent that still finds something after so many rounds is told of as restless."""
ROUNDS = 3
QUARTER = 4
LONG_S = 0.05
"""Of an agent that is faster than this nothing is said about growth: it would be noise."""
GUARDED = ("brokerage_job", "workqueues_file", "workqueues_dataset", "workqueues_task")

FILES_OF_JOBS = """
INSERT INTO workqueues_file (id, dataset_id, task_id, lfn, type, status, fsize, checksum, n_events, max_attempt, job_id)
SELECT n, t.dataset_id, t.task_id, 'in.' || n, 'input', CASE WHEN n % 10 < 8 THEN 'finished' ELSE 'running' END, 1000000,
    '00000001', 10, 3, n
FROM generate_series({first_job}, {last_job}) AS n CROSS JOIN LATERAL (
    SELECT task_id, id AS dataset_id FROM workqueues_dataset WHERE id = {first_dataset} + (n - {first_job}) / {per_task}) t
"""
JOBS = """
INSERT INTO brokerage_job (id, task_id, kind, status, ended_at, priority, ready_priority, task_queue_id, computing_queue_id,
    storage, resource_type, core_count, attempt_nr, lease_until, lease_s, lease_holder, last_seen, epoch)
SELECT n, f.task_id, CASE WHEN k.status = 'scouting' THEN {scout} ELSE {normal} END,
    CASE WHEN n % 10 < 8 THEN 'finished' WHEN n % 10 = 8 THEN 'running' ELSE 'activated' END,
    CASE WHEN n % 10 < 8 THEN now() - interval '1 hour' END, 500, CASE WHEN n % 10 = 9 THEN -500 END, {task_queue},
    q.ids[1 + (n * 7919 / 13) % q.size], 'S000_DATADISK', 'SCORE', 1, 1,
    CASE WHEN n % 10 = 8 THEN now() + interval '1 day' END, 3600,
    CASE WHEN n % 10 = 8 THEN gen_random_uuid() END, CASE WHEN n % 10 = 8 THEN now() END, 1
FROM generate_series({first_job}::bigint, {last_job}) AS n JOIN workqueues_file f ON f.id = n
    JOIN workqueues_task k ON k.id = f.task_id,
    (SELECT array_agg(id ORDER BY id) AS ids, count(*) AS size FROM brokerage_computingqueue) AS q
"""
SPECS = """
INSERT INTO brokerage_jobspec (job_id, job_name, vo, user_name, transformation, job_parameters, ram_mb, disk_mb, walltime_s,
    n_input_files, n_events)
SELECT n, 'bench.' || n, 'bench', 'bench', 'run.py', '--in a.' || n, 1000, 1000, 3600, 1, 10
FROM generate_series({first_job}, {last_job}) AS n
"""
INPUTS = """
INSERT INTO brokerage_jobinput (job_id, file_id, dataset_id, status)
SELECT n, n, f.dataset_id, CASE WHEN n % 10 < 8 THEN 'used' ELSE 'live' END
FROM generate_series({first_job}, {last_job}) AS n JOIN workqueues_file f ON f.id = n
"""
RESULTS = """
INSERT INTO brokerage_jobresult (job_id, reported_status, host, exit_code, start_time, end_time, metrics)
SELECT n, 'finished', 'bench', 0, now() - interval '2 hours', now() - interval '1 hour',
    '{{"cpu_s": 3000, "max_pss_mb": 900, "read_bytes": 1000000, "written_bytes": 1000000, "work_mb": 10}}'
FROM generate_series({first_job}, {last_job}) AS n WHERE n % 10 < 8
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--tasks", type=int, default=10_000, metavar="N", help="live tasks (default 10000)")
    parser.add_argument("--jobs", type=int, default=1_000_000, metavar="J", help="jobs of these tasks (default 1000000)")


def run(options: Namespace) -> Iterator[Line]:
    """Fill a quarter and measure, fill the rest and measure again: a line for each agent, the slowest last."""
    with bench() as server:
        fill_grid(QUEUES)
        server.execute("UPDATE brokerage_storageendpoint SET path = ''")
        per_task = max(options.jobs // options.tasks, 1)
        quarter = max(options.tasks // QUARTER, 1)
        fill(server, 1, quarter, per_task)
        small = rounds()
        fill(server, quarter + 1, options.tasks, per_task)
        full = rounds()
    sizes = {"tasks": options.tasks, "jobs": options.tasks * per_task}
    for name, (seconds, restless) in sorted(full.items(), key=lambda item: item[1]):
        before = small[name][0]
        growth = round(seconds * quarter / (before * options.tasks), 2) if min(before, seconds) > LONG_S else None
        line = {"name": "agents", "agent": name, "ours": round(seconds, 3), "growth": growth, "restless": restless}
        yield {**line, "reference": None, "ratio": None, "unit": "s", **sizes}


def fill(server: Bench, first: int, last: int, per_task: int) -> None:
    """Tasks with these numbers and their jobs, four fifths of which have finished."""
    from brokerage.models import ComputingQueue, TaskQueue
    from brokerage.rules.facts.job_kind import JobKind

    queue = ComputingQueue.objects.order_by("id")[0]
    task_queue, _ = TaskQueue.objects.get_or_create(computing_queue=queue, vo="bench", owner="bench")
    # The guards of states hold for what the system does; these rows were never anything else.
    server.execute(*(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in GUARDED))
    values = {"per_task": per_task, "task_queue": task_queue.id, "scout": JobKind.SCOUT.value, "normal": JobKind.NORMAL.value}
    values["first_dataset"] = _tasks(first, last, per_task)
    values["first_job"], values["last_job"] = 1 + (first - 1) * per_task, last * per_task
    for part in (FILES_OF_JOBS, JOBS, SPECS, INPUTS, RESULTS):
        server.execute(part.format(**values))
    server.execute(*(f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in GUARDED))
    for table in ("brokerage_job", "workqueues_file"):
        server.number(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))")
    server.settle("brokerage_job", "brokerage_jobspec", "brokerage_jobresult", "brokerage_jobinput", *GUARDED[1:])


def _tasks(first: int, last: int, per_task: int) -> int:
    """Insert the tasks with a dataset each: the id of the first dataset, which the others follow."""
    from workqueues.models import Dataset, Task, TaskParams

    now = timezone.now()
    tasks = Task.objects.bulk_create(_task(n, now) for n in range(first, last + 1))
    TaskParams.objects.bulk_create(TaskParams(task=task, task_params={}) for task in tasks)
    used = {"n_files": per_task, "n_files_to_be_used": per_task, "n_files_used": per_task, "n_files_finished": per_task * 4 // 5}
    datasets = Dataset.objects.bulk_create(
        Dataset(task=task, vo="bench", dataset_name=f"in.{task.id}", type="input", status="ready", n_events=10 * per_task, **used)
        for task in tasks
    )
    return datasets[0].id


def _task(n: int, now: datetime) -> Task:
    from workqueues.models import Task
    from workqueues.states import TASK

    kind = n % 20
    status = {0: "scouting", 1: "paused", 2: "throttled", 3: "pending", 4: "exhausted"}.get(kind, "running")
    label, type_ = (("managed", "prod"), ("managed", "prod"), ("user", "anal"))[n % 3]
    return Task(
        task_name=f"bench.{n}",
        user_name=f"user{n % 200}",
        vo="bench",
        prod_source_label=label,
        task_type=type_,
        status=status,
        old_status="" if status in TASK.generating else "running",
        resource_type="SCORE",
        task_priority=500,
        current_priority=500,
        nucleus="S000",
        split_rule={0: "NF=1,US=2", 6: "NF=1,MO=1"}.get(kind, "NF=1"),
        ram_count=2000,
        ram_unit="MB",
        goal=999 if kind == 7 else None,
        next_look_at=now + timedelta(days=1) if status in TASK.resting else None,
        start_time=now - timedelta(days=1),
    )


def rounds() -> dict[str, tuple[float, bool]]:
    """Median seconds of a round of each agent, and whether it never came to rest."""
    from broker_site.foundation.agency.run import BODIES, new_run
    from broker_site.roof import beat  # noqa: F401 - declares the agents

    found = {}
    for name in sorted(BODIES):
        restless = all(BODIES[name](new_run(name)) for _ in range(SETTLING))
        found[name] = (statistics.median(_round(name) for _ in range(ROUNDS)), restless)
    return found


def _round(name: str) -> float:
    from broker_site.foundation.agency.run import BODIES, new_run

    began = time.monotonic()
    BODIES[name](new_run(name))
    return time.monotonic() - began
