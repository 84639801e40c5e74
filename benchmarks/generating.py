"""The two legs of the benchmark of generation: the tasks, the agent in a process of its own, and the bare writing of its rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg2.extensions

from benchmarks.harness import Lap
from workqueues.states import INPUT_FILE, OUTPUT_TYPES

PER_JOB = 5
"""Input files of a job."""
ROWS = 5 + 2 * PER_JOB
"""Rows written for a job: job, spec, history, two outputs, its inputs, and the files of these."""
PER_TRANSACTION = 10_000
STORAGE = "S000_DATADISK"

Copy = tuple[str, Path]
"""A statement, and the file that it reads."""


@dataclass(frozen=True, slots=True)
class Place:
    """A task: its input dataset with the id of the first file, its two outputs."""

    task_id: int
    input_id: int
    first_file: int
    output_ids: tuple[int, int]


def without_caps() -> None:
    """Let as many jobs wait at the queues as the benchmark makes."""
    from broker_site.foundation.gdpconfig.store import set_override

    set_override("jobbroker", "NQUEUELIMITSITE", 100_000_000, who="bench", why="the benchmark makes that many")


TASK: dict[str, Any] = {
    "user_name": "bench",
    "vo": "bench",
    "status": "registered",
    "prod_source_label": "managed",
    "processing_type": "simul",
    "resource_type": "MCORE",
    "core_count": 8,
    "ram_count": 1500,
    "ram_unit": "MBPerCore",
    "current_priority": 500,
    "task_priority": 500,
    "trans_path": "run.py",
    "nucleus": "S000",
    "split_rule": f"NF={PER_JOB}",
}

FILES = """
WITH known AS (
    INSERT INTO workqueues_cataloguedataset (vo, name, state, created_at) VALUES ('bench', %(name)s, 'closed', now()) RETURNING id
), filed AS (
    INSERT INTO workqueues_cataloguefile (dataset_id, lfn, fsize, checksum, n_events)
    SELECT known.id, %(name)s || '.' || lpad(n::text, 7, '0'), 200000000, '00000001', 1000
    FROM known, generate_series(1, %(files)s) AS n RETURNING id
), placed AS (
    INSERT INTO workqueues_replica (file_id, storage) SELECT id, %(storage)s FROM filed
)
INSERT INTO workqueues_file (dataset_id, task_id, lfn, type, status, fsize, checksum, n_events, max_attempt)
SELECT %(dataset)s, %(task)s, %(name)s || '.' || lpad(n::text, 7, '0'), 'input', 'ready', 200000000, '00000001', 1000, 3
FROM generate_series(1, %(files)s) AS n
"""


def fill(number: int, files: int, status: str) -> Place:
    """A task with a closed dataset of so many files, all in this status; its jobs take five files and write two."""
    from django.db import connection

    from workqueues.models import Dataset, JobParamsTemplate, OutputTemplate, Task, TaskParams

    name = f"bench.generation.{number}"
    task = Task.objects.create(task_name=name, **TASK)
    TaskParams.objects.create(task=task, task_params={})
    parameters = "--in ${IN/L} --first ${FIRSTEVENT} --out=${OUTPUT0} --log=${LOG0}"
    JobParamsTemplate.objects.create(task=task, job_params_template=parameters)
    count = {"n_files": files, "n_files_to_be_used": files, "n_files_used": 0 if status == "ready" else files}
    source = Dataset.objects.create(
        task=task, vo="bench", dataset_name=name, type="input", status="defined", stream_name="IN", state="closed", **count
    )
    outputs = [
        Dataset.objects.create(task=task, vo="bench", dataset_name=f"{name}.{kind}", type=kind, status="defined")
        for kind in OUTPUT_TYPES
    ]
    for kind, dataset in zip(OUTPUT_TYPES, outputs, strict=True):
        pattern = f"{name}.{kind}.${{SN}}.root"
        OutputTemplate.objects.create(
            task=task, dataset=dataset, filename_template=pattern, stream_name=f"{kind.upper()}0", out_type=kind
        )
    with connection.cursor() as cursor:
        cursor.execute(FILES, {"name": name, "files": files, "storage": STORAGE, "dataset": source.id, "task": task.id})
        if status != "ready":
            cursor.execute("UPDATE workqueues_file SET status = %s WHERE dataset_id = %s", [status, source.id])
        cursor.execute("SELECT min(id) FROM workqueues_file WHERE dataset_id = %s", [source.id])
        (first,) = cursor.fetchone()
    Dataset.objects.filter(task=task).update(status="ready")
    if status == "ready":
        Task.objects.filter(id=task.id).update(status="defined")
        Task.objects.filter(id=task.id).update(status="ready")
    return Place(task.id, source.id, first, (outputs[0].id, outputs[1].id))


class Generator:
    """The process that generates: what the worker of the agents does, without Celery."""

    def __init__(self, number: int) -> None:
        import broker_site.roof.beat  # noqa: F401 - declares the agents

    def generate(self, task_id: int) -> None:
        """Run the agent until the task has no file left to use."""
        from broker_site.foundation.agency.run import run_agent
        from workqueues.models import Dataset

        left = Dataset.objects.filter(task_id=task_id, type="input")
        while left.exclude(n_files_used=left.get().n_files).exists():
            made = run_agent("generate", looked=True)
            assert made, f"the agent made nothing of task {task_id}"

    def peak_mb(self, _: object) -> float:
        """The most memory that the process had so far, MB."""
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1e3


COLUMNS = {
    "brokerage_job": "id kind task_id status priority ready_priority task_queue_id computing_queue_id storage work_queue_id"
    " resource_type core_count attempt_nr",
    "brokerage_jobspec": "job_id job_name vo user_name prod_source_label processing_type working_group transformation"
    " software_release job_parameters ram_mb disk_mb walltime_s n_input_files input_bytes n_events nucleus decision_id",
    "brokerage_jobinput": "job_id file_id dataset_id tracked attempt_nr",
    "brokerage_jobchange": "job_id old new epoch who",
    "workqueues_file": "dataset_id task_id lfn type status out_job_id",
}
"""What is written to each table; the rest are defaults."""

KEY = {
    "brokerage_job": "t.id",
    "brokerage_jobspec": "t.job_id",
    "brokerage_jobinput": "t.job_id",
    "brokerage_jobchange": "t.job_id",
    "workqueues_file": "t.out_job_id",
}
USE = """
UPDATE workqueues_file f SET status = 'running', job_id = i.job_id, last_attempt_time = now()
FROM brokerage_jobinput i WHERE i.job_id BETWEEN {first} AND {last} AND f.id = i.file_id
"""


def copies(made: Place, other: Place, folder: Path) -> list[list[Copy | str]]:
    """For each transaction what it runs: the rows that were made for one task, written to files as those of another task."""
    from django.db import connection

    shift = 1_000_000_000 * other.task_id
    moved = {
        "id": f"id + {shift}", "job_id": f"job_id + {shift}", "out_job_id": f"out_job_id + {shift}",
        "task_id": str(other.task_id),
        "file_id": f"file_id + {other.first_file - made.first_file}",
        "dataset_id": f"CASE dataset_id WHEN {made.output_ids[0]} THEN {other.output_ids[0]}"
        f" WHEN {made.output_ids[1]} THEN {other.output_ids[1]} ELSE {other.input_id} END",
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM brokerage_job WHERE task_id = %s ORDER BY id", [made.task_id])
        ids = [row[0] for row in cursor.fetchall()]
        transactions: list[list[Copy | str]] = []
        for at in range(0, len(ids), PER_TRANSACTION):
            first, last = ids[at], ids[min(at + PER_TRANSACTION, len(ids)) - 1]
            steps: list[Copy | str] = []
            for table, names in COLUMNS.items():
                path = folder / f"{table}.{at}"
                columns = ", ".join(moved.get(name, name) for name in names.split())
                with path.open("w") as file:
                    rows = f"SELECT {columns} FROM {table} t WHERE {KEY[table]} BETWEEN {first} AND {last} ORDER BY t.ctid"
                    cursor.copy_expert(f"COPY ({rows}) TO STDOUT", file)
                steps.append((f"COPY {table} ({', '.join(names.split())}) FROM STDIN", path))
            steps.append(USE.format(first=first + shift, last=last + shift))
            transactions.append(steps)
    return transactions


def written(connection: psycopg2.extensions.connection, transactions: Sequence[Sequence[Copy | str]]) -> Lap:
    """Write these rows: how long it took."""
    began, cpu = time.monotonic(), time.process_time()
    with connection.cursor() as cursor:
        for steps in transactions:
            cursor.execute("BEGIN")
            for step in steps:
                if isinstance(step, str):
                    cursor.execute(step)
                else:
                    with step[1].open() as file:
                        cursor.copy_expert(step[0], file)
            cursor.execute("COMMIT")
    return Lap(1, time.monotonic() - began, time.process_time() - cpu)


def rows_of(lap: Lap, files: int) -> Lap:
    """The lap with the rows that were written as its operations."""
    return replace(lap, operations=files // PER_JOB * ROWS)


def bulk_create(place: Place) -> Lap:
    """The same rows by Django's bulk_create, files by one UPDATE each thousand: how long it took."""
    from django.db import transaction

    from brokerage.models import ComputingQueue, Job, JobChange, JobInput, JobSpec
    from workqueues.models import File

    queue = ComputingQueue.objects.order_by("id")[0]
    files = list(File.objects.filter(dataset_id=place.input_id).order_by("id"))
    began, cpu = time.monotonic(), time.process_time()
    with transaction.atomic():
        jobs = Job.objects.bulk_create(_jobs(place, queue, len(files) // PER_JOB), batch_size=1000)
        JobSpec.objects.bulk_create(_specs(jobs), batch_size=1000)
        JobInput.objects.bulk_create(
            (JobInput(job=jobs[i // PER_JOB], file_id=f.id, dataset_id=f.dataset_id) for i, f in enumerate(files)),
            batch_size=1000,
        )
        JobChange.objects.bulk_create(
            (JobChange(job_id=j.id, old="-", new="activated", epoch=0, who="bench") for j in jobs), batch_size=1000
        )
        File.objects.bulk_create(_outputs(place, jobs), batch_size=1000)
        for status in INPUT_FILE.in_use:
            for i, file in enumerate(files):
                file.status, file.job_id = status, jobs[i // PER_JOB].id
            File.objects.bulk_update(files, ["status", "job_id"], batch_size=1000)
    return rows_of(Lap(1, time.monotonic() - began, time.process_time() - cpu), len(files))


def _jobs(place: Place, queue: Any, n: int) -> Iterator[Any]:
    from brokerage.models import Job, TaskQueue

    group, _ = TaskQueue.objects.get_or_create(computing_queue=queue, vo="bench", core_count=8)
    for _ in range(n):
        yield Job(
            task_id=place.task_id, status="activated", priority=500, ready_priority=-500, task_queue=group, computing_queue=queue,
            storage=STORAGE, resource_type="MCORE", core_count=8, attempt_nr=1,
        )  # fmt: skip


def _outputs(place: Place, jobs: Sequence[Any]) -> Iterator[Any]:
    from workqueues.models import File

    for job in jobs:
        for dataset, kind in zip(place.output_ids, OUTPUT_TYPES, strict=True):
            name = f"bench.{dataset}.{job.id}"
            yield File(dataset_id=dataset, task_id=place.task_id, lfn=name, type=kind, status="running", out_job_id=job.id)


def _specs(jobs: Sequence[Any]) -> Iterator[Any]:
    from brokerage.models import JobSpec

    for job in jobs:
        yield JobSpec(
            job=job, job_name=f"bench.{job.id}", vo="bench", user_name="bench", transformation="run.py", ram_mb=1500,
            disk_mb=1000,
            walltime_s=3600, n_input_files=PER_JOB, job_parameters=f"--in many.{job.id} --out=one.{job.id}" * 4,
        )  # fmt: skip
