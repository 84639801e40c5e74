"""Transfers: files brought from one storage endpoint to another, from the moment they are asked for to the last replica.

The system runs as `up` starts it, without pilots. The reference is a bare loop with as many streams and the same steps for
each file: temporary name, fsync, rename, read back. With `--size` it is `cp --reflink=never` of a few large files, sync, and
adler32 of source and copy. With `--hung` ours runs beside copies from a server that never answers, the reference without them.
With `--open` it is what the agent asks in a run, with so many open requests and with a thousand.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import zlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import transfers_due
from benchmarks.flow import system_on
from benchmarks.harness import Lap, Line, add_rounds, compare
from benchmarks.server import Bench, bench, tree_cpu_s
from broker_site.roof.supervisor import System

if TYPE_CHECKING:
    from brokerage.rules.transfers.wishes import FileWish

VO = "bench"
SMALL_BYTES = 1000
LARGE_FILES = 8
HUNG_FILES = 200
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
    parser.add_argument("--hung", action="store_true", help="the small files, beside copies that hang")
    parser.add_argument("--open", type=int, default=0, metavar="N", help="instead: what is due of so many open requests")
    parser.add_argument("--streams", type=int, default=8, metavar="S", help="copies at a time, in both legs (default 8)")
    add_rounds(parser, 3)


def run(options: Namespace) -> Iterator[Line]:
    """A line for each round, then the result: requests in a second, MB in a second with `--size`, looks with `--open`."""
    if options.open:
        yield from transfers_due.run(options.open, options.rounds)
        return
    with bench() as server, system_on(server) as system:
        files = LARGE_FILES if options.size else options.requests
        size = options.size * MB or SMALL_BYTES
        places = Places(server, system, files, size, options.streams)
        try:
            sizes = {"requests": files, "size": options.size, "streams": options.streams, "hung": options.hung}
            yield from places.compared(sizes, options.rounds)
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

    def compared(self, sizes: Line, rounds: int) -> Iterator[Line]:
        """The lines of the legs that were asked for."""
        ours, reference = self.brought, self.copied_whole if sizes["size"] else self.copied_bare
        if sizes["hung"]:
            ours, reference = self.brought_beside_hung, self.brought
        unit = "MB/s" if sizes["size"] else "requests/s"
        for line in compare("transfers", unit, ours, reference, sizes, rounds):
            yield {**line, **self.told()} if "ratio" in line else line

    def brought(self) -> Lap:
        """Ask for every file at the second endpoint, and wait until all are there."""
        wishes = self._wishes()
        before = self._cpu()
        began = time.monotonic()
        self._ask(wishes)
        # An open one, without looking at those of earlier rounds.
        last = "SELECT t.id FROM brokerage_transfer t WHERE t.source = 'FROM' AND t.ended_at IS NULL LIMIT 1"
        while self.server.number(last):
            if time.monotonic() - began > LONGEST_S:
                raise TimeoutError(f"not all transfers are done after {LONGEST_S:.0f} s")
            time.sleep(0.05)
        seconds = time.monotonic() - began
        assert not self.server.number("SELECT count(*) FROM brokerage_transfer WHERE source = 'FROM' AND status <> 'done'")
        if self._round > 1:
            after = self._cpu()
            self._used = {name: self._used.get(name, 0.0) + after[name] - before[name] for name in after}
            self._brought += self.files
        self._empty()
        return Lap(self._operations, seconds, 0.0)

    def brought_beside_hung(self) -> Lap:
        """The same, while copies from a server that takes connections and says nothing are under way."""
        from brokerage.models import Transfer
        from brokerage.transfers.commands import cancel_transfers

        with closing(socket.create_server(("127.0.0.1", 0))) as silent:
            name = self._hung_name
            self._ask(self._hung_wishes(f"http://127.0.0.1:{silent.getsockname()[1]}"))
            hung = f"SELECT count(*) FROM brokerage_localcopy WHERE source_id = '{name}' AND status = 'copying'"
            while not self.server.number(hung):
                time.sleep(0.05)
            try:
                return self.brought()
            finally:
                open_ones = Transfer.objects.filter(source=name, ended_at=None)
                cancel_transfers(list(open_ones.values_list("id", flat=True)), "benchmark", "the round is over")

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
        names = self._write()
        wishes = self._wished(names, "FROM", adler32(self.root("FROM") / names[0]))
        self.server.settle("workqueues_cataloguefile", "workqueues_replica")
        return wishes

    def _hung_wishes(self, url: str) -> Sequence[FileWish]:
        """Files of which copies are only at an endpoint with this address."""
        from brokerage.models import Site, StorageEndpoint

        name = self._hung_name
        site = Site.objects.create(name=f"{name}_SITE")
        StorageEndpoint.objects.create(name=name, site=site, free_gb=50_000, url=url)
        return self._wished([f"{name}/{n:06}" for n in range(HUNG_FILES)], name, "00000001")

    @property
    def _hung_name(self) -> str:
        """A new one in each round: one that was found hung is left alone."""
        return f"HUNG{self._round}"

    def _wished(self, names: Sequence[str], storage: str, checksum: str) -> Sequence[FileWish]:
        """Wishes for files with these paths at an endpoint, which make a dataset."""
        from brokerage.rules.transfers.wishes import DATASETS, FileWish
        from workqueues.models import CatalogueDataset, CatalogueFile, Replica

        name = names[0].partition("/")[0]
        dataset = CatalogueDataset.objects.create(vo=VO, name=f"transfers.{name}", folder=f"{VO}/{name}", state="closed")
        files = CatalogueFile.objects.bulk_create(
            CatalogueFile(dataset=dataset, lfn=name.replace("/", "."), fsize=self.size, checksum=checksum) for name in names
        )
        Replica.objects.bulk_create(
            Replica(file=file, storage=storage, path=name) for file, name in zip(files, names, strict=True)
        )
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
