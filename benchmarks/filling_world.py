"""What stands around the jobs of `filling_pages`: sites, queues, pilots, users, shares, configuration, and the errors that jobs
end with. A queue, user or error with a low number is a common one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import product

SITES, QUEUES, USERS, PILOTS = 60, 200, 300, 30
"""PILOTS: of one queue."""
VOS = ("north", "south", "west")
"""The last one is a rare one."""
LEAVES = {"north": 12, "south": 6, "west": 2}
"""Leaves of the share tree of a VO: twenty in all."""
HUGE_QUEUE, HUGE_USER = "S000_Q000", "user000"
COMMON = (
    ("pilot", "EXIT", 65, "ERROR: event # could not be read from /data/input.#.root"),
    ("pilot", "EXIT", 139, "payload was killed by signal 11 after # s"),
    ("pilot", "STAGEIN", None, "file in.# could not be copied from srm://storage.example:8443/data/#: timed out after # s"),
    ("pilot", "MEMORY", None, "the payload used # MB, more than 4000 MB"),
    ("pilot", "WALLTIME", None, "the payload ran for # s, longer than its limit"),
    ("", "LEASE_EXPIRED", None, "no sign of life of the pilot for 1800 s"),
)
WORDS = (
    "geometry", "calibration", "tracking", "vertex", "trigger", "overlay", "digitisation", "shower", "alignment", "muon", "jet",
    "photon", "tau", "luminosity", "database",
)  # fmt: skip
"""Of which the messages of rare errors are made."""


def errors() -> Iterator[tuple[str, str, int | None, str]]:
    """(what the pilot reported, code, exit code, message), the commonest first; `#` stands for a number."""
    for reported, code, exit_code, message in COMMON:
        yield "failed" if reported else "", code, exit_code, message
    for first, second, third in product(WORDS, WORDS, WORDS):
        yield "failed", "EXIT", 1, f"{first} service: no {second} constants for {third} in run #"


def fill_grid() -> None:
    """Sites, storages, queues and links."""
    from brokerage.models import ComputingQueue, Link, QueueStorage, Site, StorageEndpoint

    sites = Site.objects.bulk_create(Site(name=f"S{n:03}", nucleus=n < 10) for n in range(SITES))
    StorageEndpoint.objects.bulk_create(
        StorageEndpoint(name=f"{site.name}_DATADISK", site=site, free_gb=50_000, path="/data") for site in sites
    )
    queues = ComputingQueue.objects.bulk_create(
        ComputingQueue(
            name=f"S{n % SITES:03}_Q{n:03}",
            site=sites[n % SITES],
            status="online" if n % 25 != 24 else "test",
            type="unified",
            corecount=8,
            corepower=10,
            maxrss=(16_000, 32_000)[n % 2],
            maxtime=345_600,
            maxwdir=160_000,
            attributes={"releases": ["ANY"], "wnconnectivity": "full"},
        )
        for n in range(QUEUES)
    )
    QueueStorage.objects.bulk_create(
        QueueStorage(queue=queue, storage_id=f"{queue.site_id}_DATADISK", access=access, position=1)
        for queue in queues
        for access in ("read_lan", "write_lan")
    )
    Link.objects.bulk_create(
        Link(source=source, destination=nucleus, files_queued=n % 320, mbps_1d=n % 90, closeness=n % 11)
        for n, (source, nucleus) in enumerate((s, d) for s in sites for d in sites[:10])
    )


def fill_shares() -> None:
    """A tree of shares for each VO, and how each stands."""
    from django.utils import timezone

    from workqueues.models import GlobalShare, ShareStanding

    now = timezone.now()
    for vo, leaves in LEAVES.items():
        root = GlobalShare.objects.create(name=vo, vo=vo, value=100)
        GlobalShare.objects.bulk_create(
            GlobalShare(name=leaf(vo, n), parent=root, vo=vo, value=100 - 5 * n, position=n, processing_type=f"step{n}")
            for n in range(leaves)
        )
    ShareStanding.objects.bulk_create(
        ShareStanding(
            share=share, at=now, place=0.1 if share.parent_id else None, percent=5, target=500, entitled=500,
            hs06_running=10.0 * n, hs06_queued=50.0 * n, jobs_running=n, jobs_queued=5 * n, cores_running=n, cores_queued=5 * n,
        )
        for n, share in enumerate(GlobalShare.objects.all())
    )  # fmt: skip


def leaf(vo: str, n: int) -> str:
    """Name of a leaf of the tree of a VO."""
    return f"{vo}{n:02}"


def fill_pilots() -> None:
    """Pilots of every queue, most of them seen just now, and how long slots idled in each hour of the last day."""
    from datetime import timedelta

    from django.utils import timezone

    from brokerage.models import ComputingQueue, IdleHour, Pilot

    now = timezone.now()
    queues = list(ComputingQueue.objects.order_by("id"))
    Pilot.objects.bulk_create(
        Pilot(
            id=pilot_id(q, n), queue=queue, host=f"node{n:03}.{queue.site_id}", slot=f"slot{n}", core_count=8, memory_mb=16_000,
            last_seen=now - timedelta(seconds=0 if n % 5 else 7200),
        )
        for q, queue in enumerate(queues)
        for n in range(PILOTS)
    )  # fmt: skip
    hour = now.replace(minute=0, second=0, microsecond=0)
    IdleHour.objects.bulk_create(
        IdleHour(queue=queue, hour=hour - timedelta(hours=h), idle_s=60.0 * h, beside_s=10.0 * (q % 7), looked_at=now)
        for q, queue in enumerate(queues)
        for h in range(24)
    )


def pilot_id(queue: int, n: int) -> uuid.UUID:
    """Id of a pilot of the queue with this place among the queues."""
    return uuid.UUID(int=queue * 1000 + n + 1)


def fill_changes(n_sets: int) -> None:
    """So many sets of changes of the configuration, one after the other, by the service that all of them go through."""
    from broker_site.foundation.gdpconfig import set_override

    for n in range(n_sets):
        set_override("dispatch", "MATCH_RATE", 100 + n, who=f"user{n % 5:03}", why=f"try number {n}")
