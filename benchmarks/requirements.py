"""What jobs require and what pilots offer, for benchmarks of matching: task queues with requirements of all kinds at many queues.

Drawn from one pool with fixed dice, so that a pilot suits a good part of the task queues of its queue, and pilots differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks import filling

FULL, SIMPLE = "full", "simple"
OPEN_TO = 10
"""Queues to which late-bound jobs are open, where there are so many."""
VO = "bench"
SITES = [f"BENCH_SITE{i}" for i in range(200)]
CES = [f"ce{i}.bench" for i in range(8)]
PLATFORMS = [f"Linux_x86_64_glibc-2.{i}" for i in (17, 28, 34, 35, 36, 39)]
TAGS = [f"Tag{i}" for i in range(10)]
JOB_TYPES = ["User", "MCSimulation", "MCReconstruction", "DataReprocessing", "Merge"]
OWNERS = [f"user{i}" for i in range(200)]
GROUPS = [f"group{i}" for i in range(10)]
SHARES = ["Share0", "Share1", "Share2", "Share3"]
CPU_TIMES = [500, 5000, 50_000, 300_000]

Sets = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Grid:
    """The computing queues by id, and whether jobs are bound to one of them when they are leased, not when they are made."""

    queues: dict[int, str]
    late: bool


def grid(task_queues: int, queues: int, kinds: str, *, late: bool) -> Grid:
    """So many task queues, spread over so many computing queues, each at a site of its own."""
    from brokerage.models import RequirementPlace, RequirementSet, RequirementValue, TaskQueue

    dice = Random(task_queues)
    sites = _queues(queues)
    ids = list(sites)
    made, rows, values, places = [], [], [], []
    for number in range(task_queues):
        queue = ids[number % queues]
        columns, sets = task_queue(dice, number, sites[queue], kinds)
        open_to = dice.sample(ids, min(OPEN_TO, queues)) if late else []
        if sets or open_to:
            made.append(RequirementSet(id=number + 1, digest=f"bench{number}"))
            columns["requirement_set_id"] = number + 1
        values += [
            RequirementValue(requirement_set_id=number + 1, attribute=attribute, value=value)
            for attribute, some in sets.items()
            for value in some
        ]
        places += [
            RequirementPlace(requirement_set_id=number + 1, computing_queue_id=id_, storage=filling.STORAGE, own_datasets=False)
            for id_ in open_to
        ]
        rows.append(TaskQueue(computing_queue_id=None if late else queue, **columns))
    RequirementSet.objects.bulk_create(made)
    RequirementValue.objects.bulk_create(values, batch_size=2000)
    RequirementPlace.objects.bulk_create(places, batch_size=2000)
    TaskQueue.objects.bulk_create(rows, batch_size=2000)
    return Grid({id_: f"BENCH{number}" for number, id_ in enumerate(ids)}, late)


def _queues(n: int) -> dict[int, str]:
    """So many computing queues: their ids, with the site of each."""
    from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint

    Site.objects.bulk_create(Site(name=site) for site in SITES[:n])
    storage = StorageEndpoint.objects.create(name=filling.STORAGE, site_id=SITES[0], path="/bench")
    queues = ComputingQueue.objects.bulk_create(
        ComputingQueue(name=f"BENCH{i}", site_id=SITES[i], **filling.QUEUE_SIZES) for i in range(n)
    )
    QueueStorage.objects.bulk_create(
        QueueStorage(queue=queue, storage=storage, access=access, position=1)
        for queue in queues
        for access in ("read_lan", "write_lan")
    )
    return {queue.id: queue.site_id for queue in queues}


def task_queue(dice: Random, number: int, site: str, kinds: str) -> tuple[dict[str, Any], Sets]:
    """The columns of a task queue that has jobs for a site, and its sets of values."""
    plain = {"vo": VO, "core_count": 1, "ram_mb": 1000 + number, "disk_mb": 1000, "walltime_s": 3600}
    if kinds == SIMPLE:
        return plain, {}
    group = dice.choice(GROUPS)
    columns = {
        **plain,
        "ram_mb": dice.choice((1000, 2000, 3000, 4000)),
        "walltime_s": 600 + number,
        "cpu_time_s": dice.choice(CPU_TIMES),
        "owner": dice.choice(OWNERS),
        "owner_group": group,
        "gshare": SHARES[GROUPS.index(group) % len(SHARES)],
    }
    sets = {
        "sites": sorted({site, *dice.sample(SITES, dice.randint(2, 11))}) if dice.random() < 0.7 else [],
        "banned_sites": sorted({*dice.sample(SITES, 3)} - {site}) if dice.random() < 0.2 else [],
        "grid_ces": dice.sample(CES, 3) if dice.random() < 0.3 else [],
        "platforms": dice.sample(PLATFORMS, dice.randint(2, 4)) if dice.random() < 0.5 else [],
        "tags": dice.sample(TAGS, dice.randint(1, 2)) if dice.random() < 0.4 else [],
        "job_types": [dice.choice(JOB_TYPES)],
    }
    return columns, {name: some for name, some in sets.items() if some}


def descriptions(dice: Random, kinds: str) -> Iterator[dict[str, Any]]:
    """What pilots say when they ask, without end: the fields of the verb but the ask's own name."""
    while True:
        if kinds == SIMPLE:
            yield {"cores": 8, "memory_mb": 8000, "disk_mb": 20000, "walltime_s": 86400}
            continue
        yield {
            "cores": 8,
            "memory_mb": dice.choice((2000, 4000, 8000)),
            "disk_mb": dice.randint(5000, 20000),
            "walltime_s": dice.randint(40_000, 86_400),
            "cpu_time_s": dice.randint(100_000, 600_000),
            "grid_ce": dice.choice(CES),
            "platform": dice.sample(PLATFORMS, 2),
            "tags": dice.sample(TAGS, 8),
            "job_type": dice.sample(JOB_TYPES, 4),
            "banned_sites": dice.sample(SITES, 2),
            "owner_group": dice.sample(GROUPS, 8) if dice.random() < 0.2 else [],
        }


def limit_every_other_site(grid: Grid) -> None:
    """The sites of every other queue advertise room without end, and have running limits that nothing reaches."""
    from django.utils import timezone

    from broker_site.foundation.gdpconfig import set_override
    from brokerage.ledger.site_limits import SiteCount, advertise
    from brokerage.rules.dispatch.site_limits import Advertisement

    sites = SITES[: len(grid.queues) : 2]
    ad = Advertisement(max_jobs=10**6, max_submitting_jobs=10**6, current_jobs=0, current_submitting_jobs=0)
    for site in sites:
        advertise(site, SiteCount(ad, timezone.now()), "bench")
    limits = {site: {"vo": {VO: 10**6}, "owner": dict.fromkeys(OWNERS[:10], 10**6)} for site in sites}
    for key, value in (("RUNNING_LIMITS", limits), ("SITE_AD_MAX_AGE", 86_400.0)):
        set_override("dispatch", key, value, who="benchmark", why="limits of every other site")
