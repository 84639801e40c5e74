"""Outputs and logs of jobs, as files on this side. The server passes on those of at most 10 MB that it reaches."""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from broker_site.client.connection import Connection
from broker_site.client.errors import BrokerError, Refused, Unusable
from broker_site.client.rows import Row, rows

STREAMS = ("pilot.log", "stdout", "stderr")
"""What a log is made of."""
LARGEST_LOG = 50_000_000
"""Bytes to which a log is unpacked; a few of them can stand for any number."""
STORED = "finished"
"""The state of an output that is on storage."""


class Damaged(BrokerError):
    """What arrived is not what is registered."""


@dataclass(frozen=True)
class Stream:
    """One file of a log."""

    name: str
    text: str


class Outputs:
    """`client.outputs`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_task(self, task_id: int, kind: str = "output", lfn: str | None = None) -> Iterator[Row]:
        """Files on storage of this type that a task wrote; `lfn` may have * and ?."""
        filters = {"type": kind, "status": STORED, "lfn": lfn}
        return rows(self._connection, f"tasks/{int(task_id)}/files/", filters)

    def of_job(self, job_id: int, kind: str = "output") -> Iterator[Row]:
        """Files on storage of this type that a job wrote."""
        outputs = self._connection.get(f"jobs/{int(job_id)}/")["outputs"]
        return (each for each in outputs if each["type"] == kind and each["status"] == STORED)

    def content(self, file: Row) -> bytes:
        """A file whole, held against its size and checksum. Raises Refused, Damaged."""
        try:
            answer = self._connection.ask("GET", f"/jobs/{int(file['out_job_id'])}/outputs/{int(file['id'])}/")
        except Refused as refused:
            if refused.status == 503 and not refused.trace_id:
                refused.title = f"The server cannot pass on {file['lfn']}"
                refused.detail = "it is larger than the server passes on, or its storage is not reached"
                page = f"/files/{int(file['id'])}/"
                refused.hint = f"where it is: {self._connection.address(page)}"
            raise
        told, size = file.get("checksum"), file.get("fsize")
        if (size is not None and size != len(answer.body)) or (told and _adler(told) not in ("", adler32(answer.body))):
            raise Damaged(f"{file['lfn']} is not what is registered", f"{len(answer.body)} bytes came, {size} are registered")
        return answer.body

    def save(self, file: Row, folder: Path, over: bool = False) -> bool:
        """Write a file into a folder under its own name, whole or not at all; whether it was written.

        False: the same file is there already. Raises Unusable for a name that leads out of the folder, or of which another file
        is there, unless `over`.
        """
        there = folder / file_name(file)
        if there.is_symlink() or (there.exists() and not over):
            if not there.is_symlink() and there.is_file() and same(there.read_bytes(), file):
                return False
            raise Unusable(
                f"{there} is there already", "and is another file", "--force writes over it, --dir takes another folder"
            )
        content = self.content(file)
        new = folder / f".{uuid4().hex}.part"
        try:
            with new.open("xb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            new.replace(there)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        return True

    def log(self, job_id: int, *, end: bool = False) -> list[Stream] | None:
        """What is in the log of a job, standard error last; None where no log is on storage. `end`: the last 64 kB of each file.

        Its archive comes here, and is unpacked, only where the server has no plain files of it.
        """
        for file in self.of_job(job_id, "log"):
            if end:
                return [stream for name in STREAMS if (stream := self._stream(job_id, "text", name)) is not None]
            plain = [stream for name in STREAMS if (stream := self._stream(job_id, "file", name)) is not None]
            found = plain if len(plain) == len(STREAMS) else _streams(self.content(file), str(file["lfn"]))
            return sorted(found, key=lambda each: (each.name == "stderr", each.name))
        return None

    def _stream(self, job_id: int, how: str, name: str) -> Stream | None:
        """A stream of a log, its end as `text` or whole as `file`; None where the server does not have it so."""
        try:
            answer = self._connection.ask("GET", f"/jobs/{int(job_id)}/log/{how}/", {"stream": name})
        except Refused as refused:
            if refused.status == 404 or (how == "file" and refused.status == 503):
                return None
            raise
        return Stream(name, answer.body.decode("utf-8", "replace"))


def file_name(file: Mapping[str, Any]) -> str:
    """The name of a file, if it is one. Raises Unusable: a name from elsewhere must not lead out of a folder."""
    name = str(file["lfn"])
    if name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():
        raise Unusable("Not the name of a file", repr(name))
    return name


def same(content: bytes, file: Mapping[str, Any]) -> bool:
    """Whether bytes are those of a registered file."""
    return file.get("fsize") == len(content) and _adler(file.get("checksum") or "") == adler32(content)


def adler32(content: bytes) -> str:
    return f"{zlib.adler32(content) & 0xFFFFFFFF:08x}"


def _adler(checksum: str) -> str:
    """The sum of a checksum by adler32, `` for one by another rule."""
    rule, _, text = checksum.rpartition(":")
    return text.lower().zfill(8) if rule.lower() in ("", "ad", "adler32") and len(text) <= 8 else ""


def _streams(content: bytes, name: str) -> Iterator[Stream]:
    left = LARGEST_LOG
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
            for entry in archive:
                left -= entry.size + tarfile.BLOCKSIZE
                if left < 0:
                    raise Damaged(
                        f"{name} is not shown", f"it unpacks to more than {LARGEST_LOG // 1_000_000} MB", "broker get --log"
                    )
                if (file := archive.extractfile(entry)) is not None:
                    yield Stream(entry.name, file.read().decode("utf-8", "replace"))
    except (tarfile.TarError, EOFError, OSError, zlib.error) as problem:
        raise Damaged(f"{name} cannot be unpacked", str(problem)) from None
