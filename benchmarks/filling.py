"""Rows that benchmarks work on, made inside the database by INSERT .. SELECT: a grid, task queues, and any number of jobs.

The rows are as the ledgers leave them: a job has its wide row, its inputs and outputs, their places in the catalogue, and its
history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.server import Bench
from workqueues.states import OUTPUT_TYPES

QUEUE = "BENCH"
STORAGE = "BENCH_DISK"
QUEUE_SIZES: dict[str, Any] = {"type": "unified", "maxrss": 8000, "maxtime": 86400, "maxwdir": 20000, "corecount": 8}
"""Columns of a computing queue."""
INPUTS = 1
"""Input files of a job."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the jobs wait: computing queue, task, input and output dataset."""

    queue_id: int
    task_id: int
    input_id: int
    output_ids: tuple[int, int]


def grid(task_queues: int) -> int:
    """One site, storage endpoint and computing queue with so many task queues; the id of the computing queue."""
    from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint, TaskQueue

    site = Site.objects.create(name="BENCH_SITE")
    storage = StorageEndpoint.objects.create(name=STORAGE, site=site, path="/bench")
    queue = ComputingQueue.objects.create(name=QUEUE, site=site, **QUEUE_SIZES)
    for access in ("read_lan", "write_lan"):
        QueueStorage.objects.create(queue=queue, storage=storage, access=access, position=1)
    TaskQueue.objects.bulk_create(
        TaskQueue(computing_queue=queue, vo="bench", core_count=1, ram_mb=1000 + i, disk_mb=1000, walltime_s=3600)
        for i in range(task_queues)
    )
    return queue.id


def task(queue_id: int, name: str = "bench") -> Place:
    """A running task that reads one dataset and writes two."""
    from workqueues.models import CatalogueDataset, Dataset, Task

    one = Task.objects.create(task_name=name, user_name="bench", vo="bench", status="registered", trans_path="run.py")
    datasets = [
        Dataset.objects.create(task=one, dataset_name=f"{name}.{type_}", type=type_, status="defined", vo="bench")
        for type_ in ("input", *OUTPUT_TYPES)
    ]
    CatalogueDataset.objects.bulk_create(
        CatalogueDataset(vo="bench", name=d.dataset_name, folder=d.dataset_name) for d in datasets
    )
    return Place(queue_id, one.id, datasets[0].id, (datasets[1].id, datasets[2].id))


JOBS = """
INSERT INTO brokerage_job (id, task_id, status, priority, ready_priority, task_queue_id, computing_queue_id, storage,
    attempt_nr)
SELECT n, {task}, 'activated', p, -p, q.ids[1 + n % q.size], nullif(q.queues[1 + n % q.size], 0),
    CASE WHEN q.queues[1 + n % q.size] = 0 THEN '' ELSE '{storage}' END, 1
FROM generate_series({first}, {last}) AS n, LATERAL (SELECT 500 + (n::bigint * 7919 % 11)::int AS p) AS priority,
    (SELECT array_agg(id ORDER BY id) AS ids, array_agg(coalesce(computing_queue_id, 0) ORDER BY id) AS queues,
        count(*) AS size
     FROM brokerage_taskqueue) AS q
"""
BIRTHS = """
INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who)
SELECT n, '-', 'activated', 0, 'agent:generate' FROM generate_series({first}, {last}) AS n
"""
SPECS = """
INSERT INTO brokerage_jobspec (job_id, job_name, vo, user_name, transformation, job_parameters, ram_mb, disk_mb, walltime_s,
    n_input_files)
SELECT n, 'bench.' || n, 'bench', 'bench', 'run.py', '--seed ' || n || ' --in a.' || n || ' --out=x.' || n, 1000,
    1000, 3600, {inputs}
FROM generate_series({first}, {last}) AS n
"""
INPUT_FILES = """
INSERT INTO workqueues_file (id, dataset_id, task_id, lfn, type, status, fsize, checksum, n_events, max_attempt)
SELECT n * {files} + i, {input}, {task}, 'in.' || n || '.' || i, 'input', 'ready', 1000000, '00000001', 10, 3
FROM generate_series({first}, {last}) AS n, generate_series(0, {inputs} - 1) AS i
"""
INPUTS_PICKED = """
UPDATE workqueues_file SET status = 'picked'
WHERE id BETWEEN {first} * {files} AND {last} * {files} + {inputs} AND type = 'input' AND status = 'ready'
"""
INPUTS_USED = """
UPDATE workqueues_file SET status = 'running', job_id = id / {files}
WHERE id BETWEEN {first} * {files} AND {last} * {files} + {inputs} AND type = 'input' AND status = 'picked'
"""
INPUT_USES = """
INSERT INTO brokerage_jobinput (job_id, file_id, dataset_id)
SELECT n, n * {files} + i, {input} FROM generate_series({first}, {last}) AS n, generate_series(0, {inputs} - 1) AS i
"""
OUTPUT_FILES = """
INSERT INTO workqueues_file (id, dataset_id, task_id, lfn, type, status, out_job_id)
SELECT n * {files} + {inputs} + i, CASE i WHEN 0 THEN {output} ELSE {log} END, {task},
    CASE i WHEN 0 THEN 'out.' ELSE 'log.' END || n, CASE i WHEN 0 THEN 'output' ELSE 'log' END, 'running', n
FROM generate_series({first}, {last}) AS n, generate_series(0, 1) AS i
"""
CATALOGUE_FILES = """
WITH made AS (
    INSERT INTO workqueues_cataloguefile (dataset_id, lfn, fsize, checksum, n_events)
    SELECT (SELECT c.id FROM workqueues_cataloguedataset c JOIN workqueues_dataset d ON d.dataset_name = c.name
            WHERE d.id = {input}),
        'in.' || n || '.' || i, 1000000, '00000001', 10
    FROM generate_series({first}, {last}) AS n, generate_series(0, {inputs} - 1) AS i RETURNING id
)
INSERT INTO workqueues_replica (file_id, storage) SELECT id, '{storage}' FROM made
"""
COUNTERS = """
UPDATE workqueues_dataset d SET n_files = d.n_files + c.n, n_files_to_be_used = d.n_files_to_be_used + c.n,
    n_files_used = d.n_files_used + c.n
FROM (SELECT dataset_id, count(*) AS n FROM workqueues_file WHERE id BETWEEN {first} * {files} AND {last} * {files} + {files} - 1
    GROUP BY 1) AS c WHERE c.dataset_id = d.id
"""


def waiting_jobs(bench: Bench, place: Place, first: int, last: int, *, files: bool) -> None:
    """Insert activated jobs with these ids, round robin over the task queues; with `files` also what a pilot is told of them."""
    statements = [JOBS, BIRTHS]
    if files:
        statements += [SPECS, INPUT_FILES, INPUTS_PICKED, INPUTS_USED, INPUT_USES, OUTPUT_FILES, CATALOGUE_FILES, COUNTERS]
    values = {
        "task": place.task_id, "input": place.input_id, "output": place.output_ids[0],
        "log": place.output_ids[1], "inputs": INPUTS, "files": INPUTS + 2, "storage": STORAGE, "first": first, "last": last,
    }  # fmt: skip
    bench.execute(*(statement.format(**values) for statement in statements))


SENT = """
UPDATE brokerage_job SET status = 'sent', epoch = epoch + 1, ready_priority = NULL, lease_holder = '{holder}',
    lease_request = gen_random_uuid(), lease_until = now() + interval '1 day', lease_s = 3600, last_seen = now()
WHERE id BETWEEN {first} AND {last}
"""


def send(bench: Bench, holder: str, first: int, last: int) -> None:
    """Lease these jobs to one pilot."""
    bench.execute(SENT.format(holder=holder, first=first, last=last))


BARE = (
    """
    CREATE TABLE bare (
        id bigint PRIMARY KEY, ready_priority int, status text NOT NULL DEFAULT 'activated', holder uuid, lease_until timestamptz,
        last_seen timestamptz
    ) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000)
    """,
    "CREATE INDEX bare_ready ON bare (ready_priority, id) WHERE ready_priority IS NOT NULL",
)
"""The reference: a table with the columns that the bare statement needs, stored like our own."""

BARE_ROWS = (
    "INSERT INTO bare (id, ready_priority)"
    " SELECT n, -(500 + (n::bigint * 7919 % 11)::int) FROM generate_series({first}, {last}) AS n"
)


def bare_jobs(bench: Bench, first: int, last: int) -> None:
    """Insert rows into the bare table."""
    bench.execute(BARE_ROWS.format(first=first, last=last))


def outputs_of(job_id: int) -> list[dict[str, Any]]:
    """What a pilot reports of the outputs of a job that was inserted with files."""
    entry = {"size": 1000, "checksum": "00000001", "storage": STORAGE, "n_events": 10}
    return [{"lfn": f"{kind}.{job_id}", **entry} for kind in ("out", "log")]


FINISHED = (
    """
    UPDATE brokerage_job SET status = 'finished', ended_at = now() - interval '1 day', ready_priority = NULL, epoch = 1
    WHERE id BETWEEN {first} AND {last}
    """,
    "UPDATE brokerage_jobinput SET status = 'used' WHERE job_id BETWEEN {first} AND {last}",
    "UPDATE workqueues_file SET status = 'finished' WHERE id BETWEEN {first} * {files} AND {last} * {files} + {files} - 1",
    """
    INSERT INTO brokerage_jobresult (job_id, reported_status, host, exit_code)
    SELECT n, 'finished', 'bench', 0 FROM generate_series({first}, {last}) AS n
    """,
    "UPDATE workqueues_task SET status = 'done', ended_at = now() WHERE id = {task}",
)
JOBS_OF_A_TASK = 1000
GUARDED = ("brokerage_job", "brokerage_jobinput", "workqueues_file", "workqueues_task")


def finished_jobs(bench: Bench, n: int) -> None:
    """So many jobs that ended a day ago, with all that they left; of tasks that are done."""
    queue = grid(1)
    # The guards of states hold for what the system does; these rows were never anything else.
    bench.execute(*(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in GUARDED))
    for first in range(1, n + 1, JOBS_OF_A_TASK):
        last = min(first + JOBS_OF_A_TASK - 1, n)
        place = task(queue, f"bench{first}")
        waiting_jobs(bench, place, first, last, files=True)
        values = {"first": first, "last": last, "files": INPUTS + 2, "task": place.task_id}
        bench.execute(*(part.format(**values) for part in FINISHED))
    bench.execute(*(f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in GUARDED), "ANALYZE")
    with bench.connect() as connection, connection.cursor() as cursor:
        for table in ("brokerage_job", "workqueues_file", "workqueues_cataloguefile"):
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), greatest((SELECT max(id) FROM {table}), 1))")
