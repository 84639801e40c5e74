"""Transfers: files brought from one storage endpoint to another, from the moment they are asked for to the last replica.

The system runs as `up` starts it, without pilots. The reference is a bare loop with as many streams and the same steps for
each file: temporary name, fsync, rename, read back. With `--size` it is `cp --reflink=never` of a few large files, sync, and
adler32 of source and copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import zlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.flow import system_on
from benchmarks.harness import Lap, Line, add_rounds, compare
from benchmarks.server import Bench, bench, tree_cpu_s
from broker_site.roof.supervisor import System

if TYPE_CHECKING:
    from brokerage.rules.transfers.wishes import FileWish

VO = "bench"
SMALL_BYTES = 1000
LARGE_FILES = 8
MB = 1_000_000
ASKED_AT_ONCE = 2000
LONGEST_S = 1800.0
ACTIVE = 2000
"""Transfers under way at most: enough that the mover always has some."""
CHUNK = 1 << 20


def add_arguments(parser: ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--requests", type=int, default=20_000, metavar="N", help="files of 1 kB of a round (default 20000)")
    parser.add_argument("--size", type=int, default=0, metavar="MB", help=f"instead {LARGE_FILES} files of so many MB")
    parser.add_argument("--streams", type=int, default=8, metavar="S", help="copies at a time, in both legs (default 8)")
    add_rounds(parser, 3)


def run(options: Namespace) -> Iterator[Line]:
    """A line for each round, then the result: requests in a second, or MB in a second with `--size`."""
    with bench() as server, system_on(server) as system:
        files = LARGE_FILES if options.size else options.requests
        size = options.size * MB or SMALL_BYTES
        places = Places(server, system, files, size, options.streams)
        try:
            sizes = {"requests": files, "size": options.size, "streams": options.streams}
            reference = places.copied_whole if options.size else places.copied_bare
            for line in compare(
                "transfers", "MB/s" if options.size else "requests/s", places.brought, reference, sizes, options.rounds
            ):
                yield {**line, **places.told()} if "ratio" in line else line
        finally:
            places.remove()


@dataclass(slots=True)
class Places:
    """Two sites with an endpoint each, and the files that are brought from the first to the second, anew in each round."""

    server: Bench
    system: System
    files: int
    size: int
    streams: int
    _round: int = 0
    _used: dict[str, float] = field(default_factory=dict)
    _brought: int = 0

    def __post_init__(self) -> None:
        from broker_site.foundation.gdpconfig import set_override
        from brokerage.feeds.storage_roots import put_mark
        from brokerage.ledger.storages import note_mark
        from brokerage.models import Site, StorageEndpoint

        for name in ("FROM", "TO"):
            self.root(name).mkdir(parents=True)
            site = Site.objects.create(name=f"{name}_SITE")
            StorageEndpoint.objects.create(name=name, site=site, free_gb=50_000, path=str(self.root(name)))
            note_mark(name, put_mark(name, self.root(name)))
        for key in ("LINK_ACTIVE", "STORAGE_ACTIVE"):
            set_override("transfers", key, ACTIVE, who="benchmark", why="the mover is the limit")
        set_override("transfers", "MOVER_STREAMS", self.streams, who="benchmark", why="as many streams in both legs")

    @property
    def folder(self) -> Path:
        return Path(self.server.instance.folder) / "transfers"

    def root(self, name: str) -> Path:
        """The folder of an endpoint."""
        return self.folder / name

    def remove(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def brought(self) -> Lap:
        """Ask for every file at the second endpoint, and wait until all are there."""
        wishes = self._wishes()
        before = self._cpu()
        began = time.monotonic()
        self._ask(wishes)
        last = "SELECT count(*) FROM brokerage_transfer WHERE status <> 'done'"
        while (left := self.server.number(last)) > 0:
            if time.monotonic() - began > LONGEST_S:
                raise TimeoutError(f"{left:.0f} of {self.files} transfers are not done after {LONGEST_S:.0f} s")
            time.sleep(0.05)
        seconds = time.monotonic() - began
        if self._round > 1:
            after = self._cpu()
            self._used = {name: self._used.get(name, 0.0) + after[name] - before[name] for name in after}
            self._brought += self.files
        self._empty()
        return Lap(self._operations, seconds, 0.0)

    def copied_bare(self) -> Lap:
        """The same steps for each file in a loop, in so many threads."""
        names, target = self._write(), self.root("TO") / "bare"
        target.mkdir()

        def stream(number: int) -> None:
            for name in names[number :: self.streams]:
                copy_bare(self.root("FROM") / name, target / name.replace("/", "."))

        return self._timed(lambda: self._all(stream), target)

    def copied_whole(self) -> Lap:
        """cp, sync, and adler32 of source and copy, in so many processes at a time."""
        names, target = self._write(), self.root("TO") / "whole"
        target.mkdir()

        def stream(number: int) -> None:
            for name in names[number :: self.streams]:
                source, copy = self.root("FROM") / name, target / name.replace("/", ".")
                subprocess.run(["/bin/cp", "--reflink=never", str(source), str(copy)], check=True)
                subprocess.run(["/bin/sync", str(copy)], check=True)
                assert adler32(source) == adler32(copy)

        return self._timed(lambda: self._all(stream), target)

    def told(self) -> Line:
        """CPU of a request by process, ms."""
        return {"cpu_ms": {name: round(1000 * s / max(self._brought, 1), 3) for name, s in sorted(self._used.items())}}

    @property
    def _operations(self) -> int:
        return self.files * self.size // MB if self.size >= MB else self.files

    def _all(self, stream: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(self.streams) as pool:
            list(pool.map(stream, range(self.streams)))

    def _timed(self, work: Callable[[], None], target: Path) -> Lap:
        began, cpu = time.monotonic(), time.process_time()
        work()
        lap = Lap(self._operations, time.monotonic() - began, time.process_time() - cpu)
        shutil.rmtree(target)
        self._empty()
        return lap

    def _write(self) -> list[str]:
        """The files of a round at the first endpoint: their paths below it."""
        self._round += 1
        folder = self.root("FROM") / f"r{self._round}"
        folder.mkdir()
        block = os.urandom(min(self.size, CHUNK))
        for n in range(self.files):
            with (folder / f"{n:06}").open("wb") as file:
                for at in range(0, self.size, CHUNK):
                    file.write(block[: min(CHUNK, self.size - at)])
        os.sync()
        return [f"r{self._round}/{n:06}" for n in range(self.files)]

    def _wishes(self) -> Sequence[FileWish]:
        from brokerage.rules.transfers.wishes import DATASETS, FileWish
        from workqueues.models import CatalogueDataset, CatalogueFile, Replica

        names = self._write()
        checksum = adler32(self.root("FROM") / names[0])
        dataset = CatalogueDataset.objects.create(
            vo=VO, name=f"transfers.r{self._round}", folder=f"{VO}/r{self._round}", state="closed"
        )
        files = CatalogueFile.objects.bulk_create(
            CatalogueFile(dataset=dataset, lfn=name.replace("/", "."), fsize=self.size, checksum=checksum) for name in names
        )
        Replica.objects.bulk_create(
            Replica(file=file, storage="FROM", path=name) for file, name in zip(files, names, strict=True)
        )
        self.server.settle("workqueues_cataloguefile", "workqueues_replica")
        return [FileWish(file.id, "TO", "dataset", DATASETS, VO, dataset_id=dataset.id) for file in files]

    def _ask(self, wishes: Sequence[FileWish]) -> None:
        from django.db import transaction

        from brokerage.ledger.transfers.asking import ask

        for at in range(0, len(wishes), ASKED_AT_ONCE):
            with transaction.atomic():
                ask(wishes[at : at + ASKED_AT_ONCE], "benchmark")

    def _empty(self) -> None:
        for name in ("FROM", "TO"):
            for path in self.root(name).iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
        os.sync()

    def _cpu(self) -> dict[str, float]:
        used = {name: tree_cpu_s(child.pid) for name, child in self.system.children.items() if child.pid}
        return used | {"postgres": self.server.cpu_s() or 0.0}


def copy_bare(source: Path, target: Path) -> None:
    """Temporary name, fsync, rename, read back."""
    part = target.with_name(f".{target.name}.part")
    written = 1
    with source.open("rb") as file, part.open("xb", buffering=0) as out:
        while chunk := file.read(CHUNK):
            out.write(chunk)
            written = zlib.adler32(chunk, written)
        os.fsync(out.fileno())
    part.rename(target)
    assert int(adler32(target), 16) == written


def adler32(path: Path) -> str:
    """As 8 hex digits."""
    total = 1
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK):
            total = zlib.adler32(chunk, total)
    return f"{total:08x}"
