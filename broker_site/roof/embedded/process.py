"""Processes that outlive or follow their parent: starting, recognising after a crash, and stopping exactly them.

A process is known by its pid and the moment it began, so that a recycled pid is never taken for ours.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Identity:
    """One process for ever: its pid and when it began (seconds since the epoch, as the system tells it)."""

    pid: int
    began: float

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The process that has this pid now; None when there is none or it is only waiting to be collected."""
        try:
            process = psutil.Process(pid)
            return None if process.status() == psutil.STATUS_ZOMBIE else cls(pid, process.create_time())
        except psutil.Error:
            return None

    def alive(self) -> bool:
        now = Identity.of(self.pid)
        return now is not None and abs(now.began - self.began) < 0.05

    def signal(self, number: int) -> None:
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return


@dataclass(frozen=True, slots=True)
class Account:
    """An existing user as whom a server runs when we are root."""

    name: str
    uid: int
    gid: int


def launch(
    command: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    account: Account | None = None,
    text: bytes = b"",
    parent_death: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, output appended to `log`, `text` on its standard input.

    `parent_death` is the signal that the kernel sends it when the thread that called this ends (Linux only).
    """
    follow = _follower(parent_death) if parent_death is not None and sys.platform == "linux" else None
    as_user = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=follow,  # noqa: PLW1509 - one system call, no lock is taken
            **as_user,  # type: ignore[call-overload]
        )
    with child.stdin as pipe:
        pipe.write(text)
    return child  # type: ignore[no-any-return]


def _follower(number: int) -> Callable[[], None]:
    """What the child does before it becomes the command: ask for `number` at its parent's death, and see that it still lives."""
    libc, parent = ctypes.CDLL(None, use_errno=True), os.getpid()

    def follow() -> None:
        libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return follow


def stop(identity: Identity, steps: Iterable[tuple[int, float]]) -> bool:
    """Signal the process step by step, each (signal, seconds to wait), until it is gone; whether it is."""
    for number, seconds in steps:
        identity.signal(number)
        if gone(identity, seconds):
            return True
    return not identity.alive()


def gone(identity: Identity, seconds: float) -> bool:
    """Wait at most `seconds` for the process to end. A child of ours is not collected here, so its pid stays taken."""
    end = time.monotonic() + seconds
    while True:
        if not identity.alive():
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(POLL_S)


def kill_group(leader: int) -> None:
    """SIGKILL whatever is left of the session that `launch` made with this leader; quiet when nothing is."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def free_port(wanted: int | None = None) -> int:
    """`wanted` if nobody listens there, else a port that the system gives; 127.0.0.1."""
    for port in (wanted, 0):
        if port is None:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")


def last_lines(log: Path, count: int = 8) -> str:
    """The end of a log, for messages about a server that did not start."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])
    except FileNotFoundError:
        return ""
