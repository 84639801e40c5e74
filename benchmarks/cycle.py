"""One cycle of the brokerage on a full grid: load the world, decide for N tasks over Q queues, store.

The tasks are production with input at a few sites, of several shares and nuclei; J jobs are in the system. Told are the seconds
of each part, the statements that the database was asked, the bytes that were stored, and the memory of this process. There is no
reference.
"""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from benchmarks.harness import Line
from benchmarks.server import bench

SHARES = ("Evgen", "Simul", "Reco", "Group")
PER_SITE = 4
NUCLEI = 10
DATASETS = 100
FILES = 20
FILE: dict[str, Any] = {"type": "input", "status": "ready", "fsize": 200_000_000, "n_events": 1000}


def add_arguments(parser: ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--tasks", type=int, default=1000, metavar="N", help="tasks to decide about (default 1000)")
    parser.add_argument("--queues", type=int, default=1000, metavar="Q", help="queues of the grid (default 1000)")
    parser.add_argument("--jobs", type=int, default=100_000, metavar="J", help="jobs in the system (default 100000)")


def run(options: Namespace) -> Iterator[Line]:
    """Fill, then one cycle to warm up and one that counts."""
    with bench() as server:
        fill_grid(options.queues)
        tasks = fill_tasks(options.tasks, options.queues)
        fill_jobs(options.jobs, tasks)
        server.settle("brokerage_job", "workqueues_file", "workqueues_replica")
        for _ in range(2):
            sizes = {"tasks": options.tasks, "queues": options.queues, "jobs": options.jobs}
            yield {"name": "cycle", **measured_cycle(tasks), "reference": None, "ratio": None, "unit": "s", **sizes}


def measured_cycle(tasks: list[int]) -> Line:
    """One cycle, measured."""
    from broker_site.foundation.agency.run import new_run
    from brokerage.agents.decision_cycle import begin
    from brokerage.models import Decision, StoredSnapshot
    from brokerage.queries.usable_input import usable_input
    from workqueues.models import File, Task
    from workqueues.rules.jobs.event_ranges import InputFile

    with asked() as statements:
        began = time.monotonic()
        rows = list(Task.objects.filter(id__in=tasks).order_by("id"))
        run = new_run("generate")
        cycle = begin(run.now)
        cycle.load(run, rows)
        files: dict[int, list[InputFile]] = {}
        of_tasks = File.objects.filter(task_id__in=tasks).order_by("id")
        for file in map(InputFile._make, of_tasks.values_list(*InputFile._fields)):
            files.setdefault(file.dataset_id, []).append(file)
        loaded = time.monotonic()
        outcomes: dict[str, int] = {}
        for task in rows:
            dataset = cycle.requests.batch.masters(task)[0]
            usable = usable_input(task, dataset, files[dataset.id])
            request = cycle.requests.for_queues(task, dataset, usable, usable.smallest())
            outcome = cycle.decide(request).decision.outcome
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        decided_at = time.monotonic()
        cycle.decisions.store()
        stored = time.monotonic()
    sizes = [
        len(d.record) + len(d.own) + len(json.dumps(d.ask)) + len(json.dumps(d.config))
        for d in Decision.objects.filter(task_id__in=tasks)
    ]
    snapshot = StoredSnapshot.objects.select_related("grid", "links").order_by("-id")[0]
    return {
        "ours": round(stored - began, 3),
        "load_s": round(loaded - began, 2),
        "decide_s": round(decided_at - loaded, 2),
        "ms_per_decision": round((decided_at - loaded) / len(rows) * 1e3, 2),
        "store_s": round(stored - decided_at, 2),
        "statements": len(statements),
        **outcomes,
        "decision_bytes_most": max(sizes),
        "decision_bytes_mean": round(sum(sizes) / len(sizes)),
        "decisions_mb": round(sum(sizes) / 1e6, 2),
        "moment_bytes": len(snapshot.moment),
        "grid_bytes": len(snapshot.grid.content) + len(snapshot.links.content),
        "memory_mb": round(psutil.Process().memory_info().rss / 1e6),
        "load": round(os.getloadavg()[0], 1),
    }


@contextmanager
def asked() -> Iterator[list[str]]:
    """The statements that the database is asked meanwhile."""
    from django.db import connection

    found: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found


def fill_grid(queues: int) -> None:
    """Sites with four queues and a storage each, the first ones nuclei; links from every site to each nucleus; pilots."""
    from brokerage.models import ComputingQueue, Link, Pilot, QueueStorage, Site, StorageEndpoint

    sites = [Site(name=f"S{n:03}", nucleus=n < NUCLEI) for n in range(max(queues // PER_SITE, 1))]
    Site.objects.bulk_create(sites)
    StorageEndpoint.objects.bulk_create(
        StorageEndpoint(name=f"{site.name}_DATADISK", site=site, free_gb=50_000 + 1_000 * n, expired_gb=100, path="/data")
        for n, site in enumerate(sites)
    )
    made = ComputingQueue.objects.bulk_create(
        ComputingQueue(
            name=f"{sites[n // PER_SITE % len(sites)].name}_Q{n:04}",
            site=sites[n // PER_SITE % len(sites)],
            status="online" if n % 25 else "test",
            type="analysis" if n % 20 == 7 else "unified",
            corecount=1 if n % 10 == 3 else 8,
            corepower=(0, 8, 10, 12.5)[n % 4],
            maxrss=(16000, 32000, 48000)[n % 3],
            maxtime=(0, 172800, 345600)[n % 3],
            maxwdir=(0, 80000, 160000)[n % 3],
            attributes={"releases": ["ANY"] if n % 3 else ["AUTO"], "wnconnectivity": "full", "maxdiskio": (0, 4000)[n % 2]},
        )
        for n in range(queues)
    )
    QueueStorage.objects.bulk_create(
        QueueStorage(queue=queue, storage_id=f"{queue.site_id}_DATADISK", access=access, position=1)
        for queue in made
        for access in ("read_lan", "write_lan")
    )
    Link.objects.bulk_create(
        Link(source=source, destination=nucleus, files_queued=n % 320, mbps_1d=n % 90, closeness=n % 11)
        for n, (source, nucleus) in enumerate((s, d) for s in sites for d in sites[:NUCLEI])
    )
    Pilot.objects.bulk_create(Pilot(queue=queue, host="n", slot="1") for n, queue in enumerate(made) if n % 20)


def asks(count: int, queues: int) -> list[Any]:
    """Asks of several kinds, without a row in the database."""
    from brokerage.rules.facts.ask import Ask, Chunk

    nuclei = min(NUCLEI, max(queues // PER_SITE, 1))
    return [
        Ask(task_id=n + 1, chunk=Chunk(n_events=1000 + n), nucleus=f"S{n % nuclei:03}", vo="bench", **_needs(n))
        for n in range(count)
    ]


def _needs(n: int) -> dict[str, Any]:
    """What the jobs of the n-th task need, as columns of a task."""
    return {
        "prod_source_label": "managed",
        "processing_type": ("simul", "reco", "pile")[n % 3],
        "core_count": 8,
        "ram_count": 1500 + n % 300,
        "ram_unit": "MBPerCore",
        "base_ram_count": 500,
        "cpu_time": 200 + n % 97,
        "cpu_time_unit": "HS06sPerEvent",
        "out_disk_count": 500,
        "out_disk_unit": "kBPerEvent",
        "io_intensity": (100, 300)[n % 2],
    }


def fill_tasks(count: int, queues: int) -> list[int]:
    """Ready tasks, each with one dataset of the catalogue; the datasets have copies at three sites each."""
    from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, File, Replica, Task, TaskParams

    sites = max(queues // PER_SITE, 1)
    known = CatalogueDataset.objects.bulk_create(
        CatalogueDataset(vo="bench", name=f"data.{n:03}", state="closed") for n in range(DATASETS)
    )
    kept = CatalogueFile.objects.bulk_create(
        CatalogueFile(dataset=dataset, lfn=f"{dataset.name}.{i:04}", fsize=200_000_000, checksum="00000001", n_events=1000)
        for dataset in known
        for i in range(FILES)
    )
    Replica.objects.bulk_create(
        Replica(file=file, storage=f"S{at:03}_DATADISK")
        for n, file in enumerate(kept)
        for at in sorted({(n // FILES * 7 + further) % sites for further in (0, 31, 62)})
    )
    tasks = Task.objects.bulk_create(
        Task(
            task_name=f"bench.{n}",
            user_name="bench",
            vo="bench",
            status="registered",
            gshare=SHARES[n % len(SHARES)],
            resource_type="MCORE",
            current_priority=(200, 500, 790)[n % 3],
            task_priority=500,
            nucleus=f"S{n % min(NUCLEI, sites):03}",
            split_rule="NF=2",
            **_needs(n),
        )
        for n in range(count)
    )
    TaskParams.objects.bulk_create(TaskParams(task=task, task_params={}) for task in tasks)
    datasets = Dataset.objects.bulk_create(
        Dataset(
            task=task,
            vo="bench",
            dataset_name=known[n % DATASETS].name,
            type="input",
            status="defined",
            n_files=FILES,
            n_files_to_be_used=FILES,
            n_events=FILES * 1000,
        )
        for n, task in enumerate(tasks)
    )
    File.objects.bulk_create(
        File(dataset=dataset, task_id=dataset.task_id, lfn=f"{dataset.dataset_name}.{i:04}", **FILE)
        for dataset in datasets
        for i in range(FILES)
    )
    return [task.id for task in tasks]


def fill_jobs(count: int, tasks: list[int]) -> None:
    """Jobs of the tasks, waiting and running at all queues."""
    from django.db import connection

    from brokerage.models import ComputingQueue, TaskQueue

    queue = ComputingQueue.objects.order_by("id").first()
    assert queue is not None
    any_queue = TaskQueue.objects.create(computing_queue=queue, vo="bench")
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO brokerage_job (task_id, status, ready_priority, task_queue_id, computing_queue_id, resource_type,
                core_count, attempt_nr)
            SELECT (%(tasks)s::bigint[])[1 + n %% %(n_tasks)s], 'activated', 0, %(task_queue)s,
                q.ids[1 + (n::bigint * 7919 / 13) %% q.size], 'MCORE', 8, 1
            FROM generate_series(1, %(jobs)s) AS n,
                (SELECT array_agg(id ORDER BY id) AS ids, count(*) AS size FROM brokerage_computingqueue) AS q
            """,
            {"tasks": tasks, "n_tasks": len(tasks), "task_queue": any_queue.id, "jobs": count},
        )
        cursor.execute(
            """
            UPDATE brokerage_job SET status = 'sent', ready_priority = NULL, lease_until = now() + interval '1 hour',
                lease_holder = gen_random_uuid() WHERE id % 4 <> 0
            """
        )
        cursor.execute("UPDATE brokerage_job SET status = 'running' WHERE status = 'sent'")
