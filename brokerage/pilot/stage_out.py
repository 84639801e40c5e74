"""Bringing output files to storage: each under a temporary name first, all given their names together at the end.

Nothing that stands on storage is ever overwritten, and nothing is written where the root of a storage ought to be and is not.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokerage.pilot import remote_outputs
from brokerage.pilot.copying import Sum, identity, open_regular, store
from brokerage.pilot.job import Failure, Output
from brokerage.pilot.journal import Journal
from brokerage.pilot.storage_root import StorageDown, StorageRoot, keep_names, make_folder

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
    Raises Failure OUTPUT_MISSING, OUTPUT_EXISTS, STAGEOUT_FAILED or STORAGE_DOWN; what was written until then is in the journal.
    """
    events = events_by_name(folder, owner)
    present = [(output, folder / output.made_as) for output in outputs if _is_there(output, folder)]
    ready: list[tuple[Part, StoredOutput]] = []
    local = dict.fromkeys(output.root for output, _ in present if output.root and not output.remote)
    try:
        with contextlib.ExitStack() as roots:
            opened = {root: roots.enter_context(root.opened()) for root in local}
            for output, source in present:
                with _as_failure(output):
                    part, copied = _bring(output, source, opened, name, journal, check, owner)
                ready.append((part, StoredOutput(output, copied, events.get(output.made_as, events.get(output.lfn)))))
            for part, written in ready:
                check()
                with _as_failure(written.output):
                    _name_part(part, written.output, opened, journal, check)
    except StorageDown as away:
        raise Failure("STORAGE_DOWN", str(away.strerror), down=(away.storage,)) from away
    except Failure as failure:
        faults = {root.name: root.fault() for root in local} if failure.code == "STAGEOUT_FAILED" else {}
        if down := tuple(sorted(name for name, fault in faults.items() if fault)):
            raise Failure("STORAGE_DOWN", f"{faults[down[0]]}; {failure.message}", down=down) from failure
        raise
    return [written for _, written in ready]


Part = Path | str
"""A file that has not got its name yet: its path in a directory, or its tag at a server."""
Opened = Mapping[StorageRoot, Path]


@contextlib.contextmanager
def _as_failure(output: Output) -> Iterator[None]:
    """Tell of which output something went wrong; a storage that is down is told of as that."""
    try:
        yield
    except StorageDown:
        raise
    except OSError as problem:
        raise Failure("STAGEOUT_FAILED", f"{output.lfn}: {problem.strerror or problem}") from problem


def _bring(
    output: Output, source: Path, opened: Opened, name: str, journal: Journal, check: Callable[[], None], owner: int | None
) -> tuple[Part, Sum]:
    """Bring a file to where it is to get its name."""
    if output.path is None or output.root is None or output.root not in opened:
        return remote_outputs.send(output, source, journal, check, owner)
    temporary = output.path.with_name(f".{output.lfn}.{name}.part")
    return temporary, _copy_out(source, temporary, output.root, opened[output.root], journal, check, owner)


def _name_part(part: Part, output: Output, opened: Opened, journal: Journal, check: Callable[[], None]) -> None:
    """Give a file its name, unless the name is taken by a file that is not ours. Raises Failure, OSError."""
    if isinstance(part, str):
        remote_outputs.publish(output, part, journal, check)
    elif output.path and output.root:
        whole, target = (_below(opened[output.root], output.root, path) for path in (part, output.path))
        _publish(whole, target, part, output.path, output, journal)


def _below(opened: Path, root: StorageRoot, path: Path) -> Path:
    """The path by way of the opened root, for what must not happen anywhere else."""
    return opened / path.relative_to(root.path)


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


def _copy_out(
    source: Path, temporary: Path, root: StorageRoot, opened: Path, journal: Journal, check: Callable[[], None], owner: int | None
) -> Sum:
    check()
    target = _below(opened, root, temporary)
    make_folder(opened, target.parent)
    fd = open_regular(source, owner)
    try:
        journal.will_write(temporary, root)
        return store(fd, target, check)
    finally:
        os.close(fd)


def _publish(whole: Path, target: Path, temporary: Path, path: Path, output: Output, journal: Journal) -> None:
    """`whole`, `target`: the two names by way of the opened root. Raises Failure, OSError."""
    written = identity(whole)
    if written is None or output.root is None:
        raise Failure("STAGEOUT_FAILED", f"{output.lfn}: its temporary file vanished from storage")
    journal.will_publish(temporary, path, written, output.root)
    try:
        give_name(whole, target)
        keep_names(target.parent)
    except FileExistsError as problem:
        if not journal.published(path, identity(target)):
            raise remote_outputs.stands_already(output) from problem
        whole.unlink()


def give_name(temporary: Path, path: Path) -> None:
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
