"""The submitter `local`: a pilot process on this machine for each job, as many at a time as there are slots.

A slot is a folder with a lock that its pilot inherits: the kernel frees it with the last process that has it, however that ends.
So a slot holds one pilot, also where this process is killed at any instruction.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import quote

import psutil
from django.conf import settings

import brokerage
from brokerage.ledger.submission import Order
from brokerage.submitters.local_slots import LocalSlots, enrolment_file
from brokerage.submitters.port import NotStarted, Pilots

ROOT = Path(brokerage.__file__).parent.parent
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "GRIDBROKER_SYSTEM")
"""What pilots get of the environment, which has secrets of the server: payloads inherit it."""
NAMED = (("--cores", "cores"), ("--memory-mb", "memory_mb"), ("--disk-mb", "disk_mb"))
LOCK, LOG = "submitted.lock", "pilot.log"
CLOCK_ERROR_S = 1.0
LAST_WORDS = 2000


class Local:
    """Handles are `host slot pid begin`, the begin in seconds since 1970: a number of a process that comes again is another."""

    name = "local"

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[bytes]] = []

    def fault(self) -> str:
        """What is missing on this machine."""
        if settings.LOCAL_PILOTS is None:
            return "GRIDBROKER_LOCAL_PILOTS is not set where the agent runs"
        try:
            _config()
        except ValueError as error:
            return f"GRIDBROKER_LOCAL_PILOTS: {error}"
        return ""

    def start(self, orders: Sequence[Order]) -> dict[int, str | NotStarted]:
        """A pilot in each free slot, in the order of the orders."""
        self._children = [child for child in self._children if child.poll() is None]
        config = _config()
        started: dict[int, str | NotStarted] = {}
        free = self._free(config)
        for order in orders:
            if (slot := next(free, None)) is None:
                break
            number, lock = slot
            try:
                started[order.job_id] = self._pilot(config, order, number, lock)
            except OSError as error:
                started[order.job_id] = NotStarted(f"{error.strerror or error}: {error.filename or config.work}")
            finally:
                os.close(lock)
        free.close()
        return started

    def look(self, handles: Mapping[int, str]) -> Pilots:
        """By their processes; of other machines nothing is known."""
        self._children = [child for child in self._children if child.poll() is None]
        there, gone = set(), {}
        for job_id, handle in handles.items():
            host, _, rest = handle.partition(" ")
            slot, pid, began = rest.split(" ")
            if host != socket.gethostname():
                continue
            if _lives(int(pid), float(began)):
                there.add(job_id)
            else:
                gone[job_id] = f"its pilot ended without a word{self._last_words(slot)}"
        return Pilots(there, gone)

    def _free(self, config: LocalSlots) -> Generator[tuple[int, int], None, None]:
        """Slots whose lock is got, with the open file of it."""
        for number in range(1, config.slots + 1):
            folder = Path(config.work) / str(number)
            folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            yield number, lock

    def _pilot(self, config: LocalSlots, order: Order, number: int, lock: int) -> str:
        """Start the process in the slot of this number."""
        folder = Path(config.work) / str(number)
        secret = enrolment_file(Path(config.enrolments), order.queue, order.site)
        uid = config.payload_uids[number - 1] if config.payload_uids else None
        sizes = [(option, getattr(order, name)) for option, name in NAMED]
        command = (
            *(sys.executable, "-m", "brokerage.pilot", "--server", config.server, "--queue", order.queue),
            *("--slot", f"submitted-{number}", "--enrolment-file", str(secret), "--work", str(folder / "work")),
            *("--journal", str(Path(config.work) / f"journal-{quote(order.queue, safe='')}"), "--software", config.software),
            *("--job", str(order.job_id), "--pilot-id", str(order.pilot), "--once"),
            *(part for option, size in sizes if size for part in (option, str(size))),
            *(() if uid is None else ("--payload-uid", str(uid))),
            *(part for hidden in config.hide for part in ("--hide", hidden)),
        )
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        with (folder / LOG).open("wb") as log:
            child = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, pass_fds=(lock,),
            )  # fmt: skip
        self._children.append(child)
        began = 0.0
        with contextlib.suppress(psutil.Error):
            began = psutil.Process(child.pid).create_time()
        return f"{socket.gethostname()} {number} {child.pid} {began}"

    def _last_words(self, slot: str) -> str:
        """What the last pilot of a slot said last."""
        try:
            folder = Path(_config().work) / slot
            said = (folder / LOG).read_bytes()[-LAST_WORDS:].decode(errors="replace").strip().splitlines()
        except (OSError, ValueError):
            return ""
        return f": {said[-1]}"[:150] if said else ""


def _config() -> LocalSlots:
    return LocalSlots.read(cast("Path", settings.LOCAL_PILOTS))


def _lives(pid: int, began: float) -> bool:
    try:
        process = psutil.Process(pid)
        there = abs(process.create_time() - began) < CLOCK_ERROR_S and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
    return there
