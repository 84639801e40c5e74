"""A pilot as a real process, its slot folders, and the peer that it speaks with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.pilot.peer import Peer, adler

ROOT = Path(__file__).resolve().parents[2]


class Slot:
    """Folders of one pilot slot, and how to start pilots at it."""

    def __init__(self, base: Path, peer: Peer) -> None:
        self.base, self.peer = base, peer
        self.work, self.software, self.storage = base / "work" / "slot-1", base / "software", peer.storage
        self.journal = base / "work" / "journal"
        self.software.mkdir()
        (base / "secret").write_text(peer.enrolment + "\n")
        self.pilots: list[subprocess.Popen[bytes]] = []

    def program(self, name: str, text: str) -> str:
        """A shell program among the software; its name."""
        path = self.software / name
        path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return name

    def stored(self, name: str, content: bytes) -> dict[str, Any]:
        """A file on storage, as an input of the wire."""
        (self.storage / name).write_bytes(content)
        source = {"storage": "DISK", "path": str(self.storage / name)}
        return {"lfn": name, "size": len(content), "checksum": adler(content), "sources": [source], "dataset": "in"}

    def command(self, *more: str, slot: str = "slot-1", work: Path | None = None) -> list[str]:
        """The command line of a pilot."""
        names = ["--server", self.peer.url, "--queue", "ALPHA", "--slot", slot, "--enrolment-file", str(self.base / "secret")]
        folders = ["--work", str(work or self.work), "--software", str(self.software)]
        return [sys.executable, "-m", "brokerage.pilot", *names, *folders, *more]

    def start(self, *more: str, slot: str = "slot-1", work: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a pilot and do not wait."""
        command = self.command(*more, slot=slot, work=work)
        environment = {**os.environ, "SECRET_OF_THE_PILOT": "hidden"}
        with (self.base / "pilot.err").open("ab") as errors:
            pilot = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=errors, umask=0o027)
        self.pilots.append(pilot)
        return pilot

    def run(self, *more: str) -> int:
        """Run a pilot until it finds no more jobs; its exit code."""
        return self.start("--idle-exit", "0", *more).wait(30)

    def report(self, job: int) -> dict[str, Any]:
        """The recorded report of a job."""
        report = self.peer.jobs[job].report
        assert report is not None, (self.base / "pilot.err").read_text()
        return report

    def files(self) -> list[str]:
        """Names of all files on storage, hidden ones too."""
        return sorted(entry.name for entry in self.storage.iterdir())

    def close(self) -> None:
        for pilot in self.pilots:
            with suppress(ProcessLookupError):
                os.kill(pilot.pid, 18)
            pilot.kill()
            pilot.wait()


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    storage = tmp_path / "storage"
    storage.mkdir()
    peer = Peer(storage)
    yield peer
    peer.released.set()
    peer.shutdown()
    peer.server_close()


@pytest.fixture
def slot(tmp_path: Path, peer: Peer) -> Iterator[Slot]:
    slot = Slot(tmp_path, peer)
    yield slot
    slot.close()


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something is true; fail after `seconds`."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "did not happen in time"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """True while the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False  # gone before the file was opened, or between that and the reading


def pid_in(path: Path) -> int:
    """The process id that a payload wrote to a file, waited for."""
    until(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())
