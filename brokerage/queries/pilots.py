"""What the pilot verbs read: the pilot's queue, storage that is reached as a directory, and what became of jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.sql.prepared import Prepared
from brokerage.models import ComputingQueue, Job, Pilot, QueueStorage, StorageEndpoint
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import StorageRoot
from brokerage.queries.signed_places import storage_key
from brokerage.rules.dispatch.stranding import HANDS_OUT
from brokerage.states import JOB
from workqueues.models import File
from workqueues.states import PREMERGED_TYPES

FRESH_S = 1.0
"""How old the kept facts of queues may be: a queue taken offline hands out jobs no longer than this."""


class PilotQueue(NamedTuple):
    """The facts of a queue that every match needs. `maxtime` in s, 0: no limit; `core_power` in HS06, 0: not known;
    `submission`: none, or by what its jobs are submitted; `storage_down`: none of the storages that it writes to is there.
    """

    id: int
    name: str
    status: str
    workflow: str
    site: str
    maxtime: float
    core_power: float
    submission: str
    storage_down: bool

    @property
    def hands_out(self) -> bool:
        """Whether its pilots get jobs now."""
        return not self.storage_down and self.status in HANDS_OUT


def pilot_queues(**columns: Any) -> list[PilotQueue]:
    """The queues with these columns as they are now; one statement."""
    written = QueueStorage.objects.filter(queue=OuterRef("id"), access__startswith="write_")
    down = Exists(written) & ~Exists(written.exclude(storage__root_state="down"))
    queues = ComputingQueue.objects.filter(**columns).annotate(storage_down=down)
    return [PilotQueue(*row) for row in queues.values_list(*_FACTS, "storage_down")]


_FACTS = ("id", "name", "status", "workflow", "site_id", "maxtime", "corepower", "submission")


class QueueCache:
    """Facts of all queues by name, kept for a moment per process and read together: one statement, however many are asked for."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self._kept: dict[str, PilotQueue] = {}

    def named(self, name: str) -> PilotQueue | None:
        """The queue of this name, as it was at most FRESH_S ago."""
        if time.monotonic() - self._at > FRESH_S:
            self._kept, self._at = {queue.name: queue for queue in pilot_queues()}, time.monotonic()
        return self._kept.get(name)

    def forget(self) -> None:
        """Read anew at the next use."""
        self._at = float("-inf")


QUEUES = QueueCache()


class PilotCores:
    """The cores that each pilot registered with, which never change: kept per process once they were asked for."""

    MOST = 50_000

    def __init__(self) -> None:
        self._kept: dict[UUID, int] = {}

    def of(self, pilot_id: UUID) -> int | None:
        """None: there is no such pilot."""
        cores = self._kept.get(pilot_id)
        if cores is None:
            cores = Pilot.objects.filter(id=pilot_id).values_list("core_count", flat=True).first()
            if cores is not None:
                if len(self._kept) >= self.MOST:
                    self._kept.clear()
                self._kept[pilot_id] = cores
        return cores

    def forget(self) -> None:
        """Know nothing, as a new process."""
        self._kept.clear()


PILOT_CORES = PilotCores()

_HELD = Prepared(
    "held_by_pilot", "uuid", "SELECT count(*), coalesce(sum(core_count), 0) FROM brokerage_job WHERE lease_holder = $1"
)


def held_by(pilot_id: UUID) -> tuple[int, int]:
    """How many jobs a pilot holds, and with how many cores."""
    ((n, cores),) = _HELD.run(pilot_id)
    return int(n), int(cores)


def local_storages(queue_id: int) -> list[tuple[str, str]]:
    """The storage endpoints of a queue that have a directory: name and directory."""
    rows = QueueStorage.objects.filter(queue_id=queue_id).exclude(storage__path="").values_list("storage_id", "storage__path")
    return sorted(set(rows))


def place_faults(queues: Sequence[str], site: str) -> dict[str, str]:
    """What is wrong with an enrolment secret for these queues at this site (empty: wherever it is, of a single queue)."""
    places = dict(ComputingQueue.objects.filter(name__in=queues).values_list("name", "site_id"))
    if unknown := next((queue for queue in queues if queue not in places), None):
        return {"queues": no_such_queue(unknown)}
    first, *others = queues
    if elsewhere := next((queue for queue in others if places[queue] != places[first]), None):
        told = f"{first} is at the site {places[first]}, {elsewhere} at {places[elsewhere]}"
        return {"queues": f"the computing queues of an enrolment are at one site: {told}"}
    if site not in ("", places[first]):
        return {"site": f"the computing queue {first} is at the site {places[first]}, not at {site}"}
    return {"site": f"several computing queues need their site: {places[first]}"} if others and not site else {}


def storage_roots() -> dict[str, StorageRoot | RemoteRoot]:
    """The root of each storage endpoint: its directory, or where it has none what its server serves."""
    rows = StorageEndpoint.objects.exclude(path="", url="").order_by("name")
    columns = ("name", "path", "mark", "url", "key_number")
    return {
        name: StorageRoot(name, Path(path), mark) if path else RemoteRoot(name, url, storage_key(name, number))
        for name, path, mark, url, number in rows.values_list(*columns)
    }


def outcomes(pairs: Sequence[tuple[int, int]], queue: str) -> list[dict[str, object]]:
    """For each (job, epoch) of the queue: finished, if what was reported under that epoch is registered, be it only the log, or
    outputs that could not be merged; live while that lease runs; else gone.
    """
    jobs = Job.objects.filter(id__in=[job_id for job_id, _ in pairs], computing_queue__name=queue)
    by_id = {j.id: j for j in jobs.only("id", "epoch", "status", "ended_at")}
    ended = [job_id for job_id, job in by_id.items() if job.ended_at and job.status != "finished"]
    registered = Q(status="finished") | Q(type__in=PREMERGED_TYPES, checksum__gt="")
    with_log = set(File.objects.filter(registered, out_job_id__in=ended).values_list("out_job_id", flat=True))
    return [
        {"job_id": job_id, "epoch": epoch, "outcome": _outcome(by_id[job_id], epoch, job_id in with_log)}
        for job_id, epoch in pairs
        if job_id in by_id
    ]


def _outcome(job: Job, epoch: int, log_registered: bool) -> str:
    if job.epoch != epoch:
        return "gone"
    if job.status in JOB.settled:
        return "finished"
    if job.ended_at is None:
        return "live"
    return "finished" if job.status == "finished" or log_registered else "gone"


def no_such_queue(name: str) -> str:
    """What to tell who named a queue that is not there."""
    near = nearest(name, ComputingQueue.objects.values_list("name", flat=True))
    return f"there is no computing queue {name}" + (f"; the nearest name is {near}" if near else "")
