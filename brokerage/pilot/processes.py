"""Finding and ending processes on Linux: descendants by /proc, leftovers by the marker in their environment.

Only descendants of the calling process and processes that carry the marker of one's own slot are ever signalled.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable, Set
from pathlib import Path
from typing import NamedTuple

_SET_PDEATHSIG = 1
_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVS = 38
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")
_BLOCK = 512
"""Bytes of a block in which the kernel counts."""
_GONE = (FileNotFoundError, ProcessLookupError)

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int | bytes) -> None:
    argument = ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_ulong(value)
    if _libc.prctl(option, argument, ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def become_subreaper() -> None:
    """Orphaned descendants become children of this process instead of init's, so that none leaves its sight."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """SIGKILL for this process when process `parent` (its parent) ends, or at once if that has happened already."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def gain_no_privileges() -> None:
    """No set-user-id program started from here gains rights: it could not be killed any more."""
    _prctl(_SET_NO_NEW_PRIVS, 1)


def set_name(name: str) -> None:
    """The name that ps shows (15 bytes)."""
    _prctl(_SET_NAME, name.encode()[:15])


def children(pid: int) -> list[int]:
    """Process ids of the direct children, of all threads of `pid`; empty when it is gone."""
    matches: list[int] = []
    with contextlib.suppress(*_GONE):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(*_GONE):
                matches += map(int, (thread / "children").read_bytes().split())
    return matches


def _children_by_scan() -> dict[int, list[int]]:
    """Parent -> children over all processes, for kernels without /proc/PID/task/TID/children."""
    table: dict[int, list[int]] = {}
    for pid in _all():
        fields = _stat(pid)
        if fields is not None:
            table.setdefault(int(fields[1]), []).append(pid)
    return table


def _all() -> list[int]:
    """Process ids of all processes of this machine (of this namespace)."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def descendants(pid: int) -> list[int]:
    """Process ids of all living descendants of `pid`, parents before children."""
    table = None if Path(f"/proc/{pid}/task/{pid}/children").exists() else _children_by_scan()
    descendants: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in children(parent) if table is None else table.get(parent, []):
            descendants.append(child)
            waiting.append(child)
    return descendants


def _stat(pid: int) -> list[bytes] | None:
    """Fields of /proc/PID/stat from the state on (index 0 = state, 1 = parent), None when gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except _GONE:
        return None


def usage(pids: Iterable[int]) -> tuple[float, int]:
    """(CPU seconds, resident bytes) summed over living processes; shared pages count once for each."""
    cpu, resident = 0.0, 0
    for pid in pids:
        fields = _stat(pid)
        if fields is not None:
            cpu += (int(fields[11]) + int(fields[12])) / _TICK
            resident += int(fields[21]) * _PAGE
    return cpu, resident


def proportional_bytes(pids: Iterable[int]) -> int:
    """Memory with shared pages divided among their users (PSS), in bytes. Slower than `usage`, but fair to forks."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
        except (*_GONE, PermissionError):
            total += usage([pid])[1]
    return total


def send(pids: Iterable[int], signum: int) -> None:
    """Signal each process that still exists and may be signalled."""
    for pid in pids:
        try:
            os.kill(pid, signum)
        except (ProcessLookupError, PermissionError):
            continue


class EndedProcess(NamedTuple):
    """A child that was collected, with what it and its own collected children used: CPU seconds, largest resident bytes, bytes
    read from and written to disks.
    """

    pid: int
    status: int
    cpu_s: float
    resident: int
    read_bytes: int
    written_bytes: int


def reap() -> tuple[bool, list[EndedProcess]]:
    """Collect ended children: (is any child left, those that were)."""
    ended: list[EndedProcess] = []
    while True:
        try:
            pid, status, spent = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return False, ended
        if pid == 0:
            return True, ended
        cpu_s, disk = spent.ru_utime + spent.ru_stime, (spent.ru_inblock * _BLOCK, spent.ru_oublock * _BLOCK)
        ended.append(EndedProcess(pid, status, cpu_s, spent.ru_maxrss * 1024, *disk))


def end_descendants(seconds: float | None = None) -> tuple[bool, list[EndedProcess]]:
    """SIGKILL all descendants again and again until none is left: (all ended, what was reaped).

    Works for what left its group, session or parent too when this process is a subreaper; `seconds` limits the trying.
    """
    limit = None if seconds is None else time.monotonic() + seconds
    pause, reaped = 0.0005, []
    while True:
        left, ended = reap()
        reaped += ended
        if not left:
            return True, reaped
        if limit is not None and time.monotonic() > limit:
            return False, reaped
        send(descendants(os.getpid()), signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def end_marked(*entries: str, users: Set[int]) -> list[int]:
    """SIGKILL every process of these users whose environment holds all `entries`; an entry ending in `:` is a beginning.

    For what a killed pilot left behind at the same slot. A descriptor of the process is held between looking and killing, so a
    reused process id is never hit.
    """
    wanted = [entry.encode() for entry in entries]
    return [pid for pid in _all() if pid != os.getpid() and _end_if_marked(pid, wanted, users)]


def _end_if_marked(pid: int, wanted: list[bytes], users: Set[int]) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        folder = Path(f"/proc/{pid}")
        if folder.stat().st_uid not in users:
            return False
        environment = (folder / "environ").read_bytes().split(b"\0")
        if all(any(e == w or (w.endswith(b":") and e.startswith(w)) for e in environment) for w in wanted):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True
    except OSError:
        return False  # it ended meanwhile, or is not ours to read
    finally:
        os.close(handle)
    return False
