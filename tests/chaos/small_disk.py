"""Small disks for tests: memory file systems in a mount namespace of one's own, which go away with the process."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import tempfile
from pathlib import Path

SIZES = (1 << 20, 1 << 12, 1)


def own_mounts() -> list[str]:
    """What to put before a command that shall mount for itself alone."""
    return ["unshare", "--mount", "--propagation", "private", *(["--map-root-user"] if os.geteuid() else [])]


@functools.cache
def why_not() -> str:
    """Why nothing can be mounted here; empty where it can."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*own_mounts(), "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
        try:
            tried = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        except OSError as problem:
            return f"this machine lets nobody mount a small disk: {problem.strerror}"
    return f"this machine lets nobody mount a small disk: {tried.stderr.strip()}" if tried.returncode else ""


def mount(folder: Path, size: str) -> None:
    """Put a small disk over a folder; only in a process of `own_mounts`."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={size},mode={folder.stat().st_mode & 0o777:o}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Write until nothing more can be written, also into what has become free since; the file to remove again."""
    ballast = folder / ".ballast"
    fd = os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for size in SIZES:
            with contextlib.suppress(OSError):
                while True:
                    os.write(fd, b"x" * size)
    finally:
        os.close(fd)
    return ballast
