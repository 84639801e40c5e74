"""Bringing output files to storage: each under a temporary name first, all given their names together at the end.

Nothing that stands on storage is ever overwritten.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokerage.pilot.copying import Sum, copy, identity, open_regular
from brokerage.pilot.job import Failure, Output
from brokerage.pilot.journal import Journal

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
REPORT = "jobReport.json"
"""A payload may leave its numbers of events here: {"files": {"output": [{"subFiles": [{"name": file, "nentries": n}]}]}}."""
REPORT_LIMIT = 10**6


@dataclass(frozen=True)
class StoredOutput:
    """An output that stands on storage."""

    output: Output
    sum: Sum
    n_events: int | None

    def as_report(self) -> dict[str, object]:
        """The entry of the final report."""
        entry: dict[str, object] = {
            "lfn": self.output.lfn,
            "size": self.sum.size,
            "checksum": self.sum.checksum,
            "storage": self.output.storage,
        }
        if self.n_events is not None:
            entry["n_events"] = self.n_events
        return entry


def stage_out(
    outputs: Sequence[Output], folder: Path, name: str, journal: Journal, check: Callable[[], None], owner: int | None = None
) -> list[StoredOutput]:
    """Copy the outputs that lie in `folder`, as the payload called them, under their names to their storage.

    `name` of the attempt makes temporary names unique; with `owner` only files of this user are outputs.

    `check` is called between chunks and before each file gets its name; it raises when the lease is lost.
    Raises Failure OUTPUT_MISSING, OUTPUT_EXISTS or STAGEOUT_FAILED; what was written until then is in the journal.
    """
    events = events_by_name(folder, owner)
    present = [(output, folder / output.made_as) for output in outputs if _is_there(output, folder)]
    ready: list[tuple[Path, StoredOutput]] = []
    for output, source in present:
        temporary = output.path.with_name(f".{output.lfn}.{name}.part")
        try:
            copied = _copy_out(source, temporary, journal, check, owner)
        except OSError as problem:
            raise Failure("STAGEOUT_FAILED", f"{output.lfn}: {problem.strerror or problem}") from problem
        ready.append((temporary, StoredOutput(output, copied, events.get(output.made_as, events.get(output.lfn)))))
    for temporary, written in ready:
        check()
        _publish(temporary, written.output, journal)
    return [written for _, written in ready]


def _is_there(output: Output, folder: Path) -> bool:
    """True when the payload made it, False when it did not have to; Failure otherwise, also for what leads out of the folder."""
    path = folder / output.made_as
    exists = path.exists() or path.is_symlink()
    if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
        return True
    if output.optional and not exists:
        return False
    what = "is not a regular file of the working folder" if exists else "was not written"
    name = f"{output.source_name}, which becomes {output.lfn}," if output.source_name else output.lfn
    raise Failure("OUTPUT_MISSING", f"{name} {what}")


def _copy_out(source: Path, temporary: Path, journal: Journal, check: Callable[[], None], owner: int | None) -> Sum:
    check()
    temporary.parent.mkdir(parents=True, exist_ok=True)
    fd = open_regular(source, owner)
    try:
        journal.will_write(temporary)
        return copy(fd, temporary, check)
    finally:
        os.close(fd)


def _publish(temporary: Path, output: Output, journal: Journal) -> None:
    """Give the file its name, unless the name is taken by a file that is not ours."""
    written = identity(temporary)
    if written is None:
        raise Failure("STAGEOUT_FAILED", f"{output.lfn}: its temporary file vanished from storage")
    journal.will_publish(temporary, output.path, written)
    try:
        _name(temporary, output.path)
    except FileExistsError as problem:
        if not journal.published(output.path):
            raise Failure("OUTPUT_EXISTS", f"{output.lfn} stands on {output.storage} already") from problem
        temporary.unlink()
    except OSError as problem:
        raise Failure("STAGEOUT_FAILED", f"{output.lfn}: {problem.strerror or problem}") from problem


def _name(temporary: Path, path: Path) -> None:
    """Rename without ever replacing: a link fails when the name is taken. Where links do not exist, look first."""
    try:
        path.hardlink_to(temporary)
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        if path.exists() or path.is_symlink():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from problem
        temporary.rename(path)
    else:
        temporary.unlink()


def events_by_name(folder: Path, owner: int | None = None) -> dict[str, int]:
    """Numbers of events that the payload reported; nonsense counts as no report."""
    path = folder / REPORT
    try:
        with os.fdopen(open_regular(path, owner), "rb") as file:
            content = file.read(REPORT_LIMIT + 1)
        if len(content) > REPORT_LIMIT:
            return {}
        document: Any = json.loads(content)
        entries = [entry for item in document["files"]["output"] for entry in item["subFiles"]]
        return {str(entry["name"]): int(entry["nentries"]) for entry in entries if int(entry["nentries"]) >= 0}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
