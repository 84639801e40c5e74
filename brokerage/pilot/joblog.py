"""What the pilot says: lines to its standard error and to the log of the present job; texts of payloads made fit to report.

No credential is ever passed to this file.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys
import tarfile
from pathlib import Path
from typing import IO

from brokerage.pilot.clocks import wall_time

MESSAGE_LIMIT = 500
LINE_LIMIT = 250
"""Characters of the line that tells, the last one of a stream."""
STREAM_LIMIT = 380
"""Characters of a message that are left to the stream; the others say how the payload ended."""
CUT_LINE = 64
"""Bytes of the line between head and tail, at most: so much more than was asked for they are."""
LOG_MAX = 10_000_000
"""So much of each stream goes into the log archive where the server says nothing else."""


class Log:
    """Writes lines `time slot text`."""

    def __init__(self, slot: str) -> None:
        self.slot = slot
        self.job_file: Path | None = None

    def say(self, text: str) -> None:
        """One line, to standard error and to the log file of the job when there is one."""
        line = f"{wall_time()} {self.slot} {printable(text)}\n"
        with contextlib.suppress(OSError):  # a full disk or a reader that has gone must not stop the work
            sys.stderr.write(line)
            sys.stderr.flush()
        with contextlib.suppress(OSError):
            if self.job_file is not None:
                fd = os.open(self.job_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o666)
                with os.fdopen(fd, "a", encoding="utf-8") as file:
                    file.write(line)


def printable(text: str) -> str:
    """The text with every control character, lone surrogate and NUL replaced by a blank."""
    return "".join(character if character.isprintable() else " " for character in text)


def _stream(path: Path) -> IO[bytes]:
    """A stream to read. FileNotFoundError also where the payload has put a pipe, a device or a folder in its place: who reads
    those may wait for ever.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    raise FileNotFoundError(errno.ENOENT, "no file", str(path))


def read_tail(path: Path, size: int) -> bytes:
    """The last `size` bytes of a stream; empty when it does not exist."""
    try:
        with _stream(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)
    except FileNotFoundError:
        return b""


def last_lines(path: Path) -> str:
    """The end of a stream as a report has it: its last line first, which mostly tells, then the lines before it, in order.

    Whatever bytes it has; blank lines are left out.
    """
    text = read_tail(path, 4 * MESSAGE_LIMIT).decode("utf-8", "replace")
    lines = [line for raw in text.splitlines() if (line := " ".join(printable(raw).split()))]
    if not lines:
        return ""
    last, before = lines[-1][:LINE_LIMIT], list[str]()
    room = STREAM_LIMIT - len(last)
    for line in reversed(lines[:-1]):
        room -= len(line) + 1
        if room < 0:
            break
        before.insert(0, line)
    return "\n".join([last, *before])


def ends(members: dict[str, Path], size: int) -> str:
    """The ends of the files `members` (name -> path) as one text of about `size` bytes at most; long ones get what short ones
    leave.
    """
    contents = {}
    for name, path in members.items():
        with contextlib.suppress(OSError):
            contents[name] = read_tail(path, size)
    for left, name in zip(range(len(contents), 0, -1), sorted(contents, key=lambda name: len(contents[name])), strict=True):
        contents[name] = contents[name][-(size // left) :]
        size -= len(contents[name])
    texts = {name: content.decode("utf-8", "replace").rstrip() for name, content in contents.items()}
    clean = {name: "".join(c if c.isprintable() or c in "\n\t" else " " for c in text) for name, text in texts.items()}
    return "".join(f"--- {name} ---\n{text}\n" for name, text in clean.items() if text)


def head_and_tail(path: Path, most: int) -> bytes:
    """A stream of at most `most` bytes whole; of a longer one the first half of that and the last, a line between says so."""
    with _stream(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            return file.read(most)
        head = file.read(most - most // 2)
        file.seek(size - most // 2)
        tail = file.read(most // 2)
    return b"%b\n--- %d bytes are left out here ---\n%b" % (head, size - len(head) - len(tail), tail)


def pack(archive: Path, members: dict[str, Path], most: int = LOG_MAX) -> None:
    """Write a .tgz with head and tail of the files `members` (name in the archive -> path); missing ones are left out.

    It is a new file, whatever the payload has put in its place.
    """
    archive.unlink(missing_ok=True)
    with tarfile.open(archive, "x:gz", compresslevel=1) as tar:
        for name, path in members.items():
            with contextlib.suppress(FileNotFoundError):
                content = head_and_tail(path, most)
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                entry.mtime = int(path.stat().st_mtime)
                tar.addfile(entry, io.BytesIO(content))
