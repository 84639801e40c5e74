"""A grid of a few sites with real files on it, what is done to them, and the parts of pilots and movers, played in process.

Not here: which of it happens when (`test_data_on_the_move`), and what must hold (`holds`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest import mock

from django.contrib.postgres.functions import TransactionNow
from django.db.models import F

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.lease import Lease
from brokerage.ledger.transfers.local_copies import end_copies
from brokerage.models import ComputingQueue, Job, LocalCopy, Site, StorageEndpoint, Transfer, TransferLink
from brokerage.mover import batch
from brokerage.mover.bandwidth import Bandwidth
from brokerage.mover.process import Mover
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from brokerage.rules.facts.job_kind import JobKind
from tests.flow.steps import BAD, countable, end, let_confirm, try_take
from tests.moving import copy_all, marked_grid, stored_files
from workqueues.ledger.moves import Stale
from workqueues.models import Replica, Task, TaskThrottle
from workqueues.rules.jobs.file_names import copy_path

NAMES = ("ALPHA", "BETA", "GAMMA", "DELTA")
LINK_ACTIVE, STORAGE_ACTIVE = 4, 6
AN_HOUR = timedelta(hours=1)
LEASE_S = 60.0

Place = tuple[str, Path]


class Killed(BaseException):
    """The process is gone at this instruction: nothing that follows happens, and nobody tells of it."""


@contextmanager
def killed_at(target: object, name: str, *, after: bool) -> Iterator[None]:
    """Whoever calls this function dies, before it works or after."""
    work: Callable[..., Any] = getattr(target, name)

    def die(*args: Any, **more: Any) -> Any:
        if after:
            work(*args, **more)
        raise Killed

    with mock.patch.object(target, name, die):
        try:
            yield
        except Killed:
            return


@dataclass(slots=True)
class Scene:
    """The grid below `folder`. `contents`: what files must hold; `harmed`: copies that were damaged or taken away by hand."""

    folder: Path
    names: Sequence[str]
    contents: dict[str, bytes] = field(default_factory=dict)
    stored: dict[Path, int] = field(default_factory=dict)
    harmed: set[Path] = field(default_factory=set)
    away: set[str] = field(default_factory=set)
    leases: list[Lease] = field(default_factory=list)
    n: int = 0

    @classmethod
    def made(cls, folder: Path, names: Sequence[str], nucleus: str) -> Scene:
        """Sites of which one is a nucleus, with small limits so that they matter."""
        marked_grid(folder, *names)
        Site.objects.filter(name=f"SITE_{nucleus}").update(nucleus=True)
        StorageEndpoint.objects.update(free_gb=50_000)
        for key, value in {
            "LINK_ACTIVE": LINK_ACTIVE,
            "STORAGE_ACTIVE": STORAGE_ACTIVE,
            "LINK_JUDGED_FROM": 6,
            "MOVER_POLL": 0.005,
        }.items():
            set_override("transfers", key, value, who="test", why="small enough to be reached")
        gdpconfig.reading.forget()
        return cls(folder, names)

    def store(self, sizes: Sequence[int], places: Sequence[str]) -> str:
        """A dataset with a copy of each file at these places, as far as they are there: its name."""
        self.n += 1
        name = f"in{self.n}"
        contents = [f"{name} {i} ".encode().ljust(size, b"x")[:size] for i, size in enumerate(sizes)]
        there = [place for place in places if place not in self.away]
        files = stored_files(self.folder, contents, *there, dataset=name)
        for file, content in zip(files, contents, strict=True):
            self.contents[file.lfn] = content
            for place in there:
                self.stored[self.folder / place / copy_path("", "demo", name, file.lfn)] = file.id
        return name

    def harm(self, number: int, how: str) -> None:
        """Something happens to one of the copies that were stored."""
        paths = sorted(path for path in self.stored if path.is_file())
        if paths:
            path = paths[number % len(paths)]
            self.harmed.add(path)
            content = path.read_bytes()
            path.unlink()
            if how != "gone":
                path.write_bytes(content[:-1] + b"?" if how == "damaged" and content else content + b"more")

    def move_away(self, name: str) -> None:
        """The root of a site is moved, and a bare folder stands in its place."""
        if name not in self.away:
            (self.folder / name).rename(self.folder / f"{name}.away")
            (self.folder / name).mkdir()
            self.away.add(name)

    def bring_back(self, name: str) -> None:
        """It is back; nothing may have been written where it was not."""
        if name in self.away:
            (self.folder / name).rmdir()
            (self.folder / f"{name}.away").rename(self.folder / name)
            self.away.discard(name)

    def place(self, name: str) -> Path:
        """Where the root of a site is now."""
        return self.folder / (f"{name}.away" if name in self.away else name)

    def take(self, queue: str) -> bool:
        """A pilot gets a job there; whether one waits."""
        leased = try_take(ComputingQueue.objects.get(name=queue), LEASE_S)
        if leased is not None:
            self.leases.append(leased)
        return leased is not None

    def settle(self, leased: Lease, *, well: bool) -> str:
        """A pilot reads its inputs, writes its outputs, and reports; it fails where it cannot do either."""
        self.leases.remove(leased)
        document = job_document(leased.job_id)
        readable = all(any(self._reads(s, i) for s in i["sources"]) for i in document["inputs"])
        homes = {str(o["storage"]).removesuffix("_DISK") for o in document["outputs"]}
        if not (well and readable) or homes & self.away:
            return self.report(leased, BAD)
        outputs = [self._write(output) for output in document["outputs"]]
        return self.report(leased, Report("finished", outputs, metadata={} if document["metadata_file"] else None))

    def report(self, leased: Lease, report: Report) -> str:
        """What is answered to a pilot: of a merge job, which ends with the jobs that it merges, that it is another's by now."""
        try:
            return end(leased, report)
        except Stale:
            assert Job.objects.get(id=leased.job_id).kind == JobKind.MERGE
            return "stale"

    def _reads(self, source: dict[str, Any], wanted: dict[str, Any]) -> bool:
        path = Path(source["path"])
        return path.is_file() and f"{zlib.adler32(path.read_bytes()):08x}" == wanted["checksum"]

    def _write(self, output: dict[str, Any]) -> ReportedOutput:
        content = f"made as {output['lfn']}".encode()
        path = Path(output["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.contents[output["lfn"]] = content
        return ReportedOutput(output["lfn"], len(content), f"{zlib.adler32(content):08x}", output["storage"])

    def vanish(self, leased: Lease) -> None:
        """A pilot is never heard of again."""
        self.leases.remove(leased)
        Job.objects.filter(id=leased.job_id).update(lease_until=F("lease_until") - timedelta(seconds=LEASE_S + 1))

    def copy(self, mover: Mover | None = None) -> None:
        """A mover works until nothing is left for it and nothing is under way."""
        copy_all(mover or Mover())

    def copy_until(self, step: str, *, after: bool, room: bool = True) -> None:
        """The steps of a mover in this thread; it dies at one of them, or ends without being able to tell."""
        mover = Mover()
        claimed = mover._claim(gdpconfig.component("transfers"))
        rows = sorted(claimed, key=lambda row: (row.source.name, row.destination.name))
        target: object = batch.os if step == "fsync" else batch
        with killed_at(target, step, after=after):
            for _, of_pair in groupby(rows, key=lambda row: (row.source.name, row.destination.name)):
                tasks = [batch.Task(row, Bandwidth(None)) for row in of_pair]
                ends = batch.copy_batch(tasks, lambda size, free: room)
                if not room:
                    end_copies(mover.name, ends)

    def pass_time(self) -> None:
        """What rests is due, files that are looked for too, and claims of the dead are over."""
        Task.objects.filter(next_look_at__isnull=False).update(next_look_at=F("next_look_at") - AN_HOUR * 24)
        Task.objects.exclude(locked_by="").update(locked_time=TransactionNow() - timedelta(seconds=1))
        TaskThrottle.objects.filter(until__isnull=False).update(until=F("until") - AN_HOUR * 24)
        let_confirm()
        Transfer.objects.filter(next_at__isnull=False).update(next_at=F("next_at") - AN_HOUR * 24)
        Transfer.objects.filter(claimed_until__isnull=False).update(claimed_until=F("claimed_until") - AN_HOUR)
        LocalCopy.objects.filter(claimed_until__isnull=False).update(claimed_until=F("claimed_until") - AN_HOUR)
        Replica.objects.filter(removal_at__isnull=False).update(removal_at=F("removal_at") - AN_HOUR)
        TransferLink.objects.filter(blocked_until__isnull=False).update(blocked_until=None)

    def run(self, *agents: str) -> None:
        """Agents, each once, as told to look."""
        for name in countable(agents):
            run_agent(name, looked=True)
