"""Fetching input files into the working folder, checked on the way."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from brokerage.pilot import remote_storage
from brokerage.pilot.copying import Sum, copy, open_regular
from brokerage.pilot.job import Failure, Input, Source
from brokerage.pilot.storage_root import StorageDown

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
MISSING, CORRUPT, FAILED, DOWN, FETCHED = "missing", "corrupt", "failed", "down", "fetched"
WEIGHT = (MISSING, CORRUPT, FAILED, DOWN)
"""A damaged copy weighs more than missing ones, a storage in trouble more than both, and most one that is not there at all."""


def stage_in(inputs: Sequence[Input], folder: Path, check: Callable[[], None]) -> int:
    """Copy all inputs to `folder`; the bytes copied.

    Every input is looked at, so that one report names all missing and corrupt ones; after the first bad one the rest is only
    looked for. Raises Failure with code STORAGE_DOWN (an input has no good copy elsewhere), INPUT_MISSING, INPUT_CORRUPT (damaged
    at every source that has it), STAGEIN_FAILED (the storage did not work) or PILOT_ERROR (the folder is on a full disk).
    """
    verdicts: dict[str, list[str]] = {verdict: [] for verdict in WEIGHT}
    words: list[str] = []
    down: set[str] = set()
    copied = 0
    for entry in inputs:
        verdict, text = _fetch(entry, None if words else folder / entry.lfn, check, down)
        if verdict == FETCHED:
            copied += entry.size or 0
        else:
            verdicts[verdict].append(entry.lfn)
            words.append(text)
    if words:
        codes = {DOWN: "STORAGE_DOWN", MISSING: "INPUT_MISSING", CORRUPT: "INPUT_CORRUPT", FAILED: "STAGEIN_FAILED"}
        code = next(code for verdict, code in codes.items() if verdicts[verdict])
        missing, corrupt = tuple(verdicts[MISSING]), tuple(verdicts[CORRUPT])
        raise Failure(code, "; ".join(words), missing=missing, corrupt=corrupt, down=tuple(sorted(down)))
    return copied


def _fault(source: Source, down: set[str]) -> str:
    """Why the directory of a copy is not there, which is noted; empty when the copy itself is at fault."""
    fault = source.root.fault() if source.root else ""
    if source.root and fault:
        down.add(source.root.name)
    return fault


def _fetch(entry: Input, target: Path | None, check: Callable[[], None], down: set[str]) -> tuple[str, str]:
    """Try the sources in order: (verdict, words). Nothing is said of a copy whose storage is down.

    Without `target` a copy is only looked for.
    """
    verdict, text = MISSING, f"{entry.lfn}: at no source"
    gone: set[str] = set()
    for source in entry.sources:
        path = None if source.remote else source.path
        try:
            if target is None:
                _look_for(source, path)
                return FETCHED, ""
            wrong = _difference(entry, _bring(source, path, target, check))
            if wrong is None:
                return FETCHED, ""
            problem = (CORRUPT, wrong)
        except (FileNotFoundError, NotADirectoryError):
            problem = (MISSING, "at no source")
        except StorageDown as away:
            gone.add(away.storage)
            problem = (DOWN, str(away.strerror))
        except OSError as trouble:
            if target and trouble.errno in NO_SPACE:  # writing: no other copy would fit either
                target.unlink(missing_ok=True)
                raise Failure(
                    "PILOT_ERROR", f"no space left on the disk of the worker node: {entry.lfn}", of_node=True
                ) from trouble
            problem = (FAILED, trouble.strerror or str(trouble))
        if target:
            target.unlink(missing_ok=True)
        if path and (fault := _fault(source, gone)):
            problem = (DOWN, fault)
        if WEIGHT.index(problem[0]) >= WEIGHT.index(verdict):
            verdict, text = problem[0], f"{entry.lfn}: {problem[1]}"
    down |= gone
    return verdict, text


def _look_for(source: Source, path: Path | None) -> None:
    """Raises OSError where it is not there."""
    if path is None:
        remote_storage.head(source.storage, source.url, summed=False, seconds=remote_storage.LOOK_S)
    else:
        path.stat()


def _bring(source: Source, path: Path | None, target: Path, check: Callable[[], None]) -> Sum:
    """Copy it from its directory, or without a path from its server."""
    if path is None:
        return remote_storage.download(source.storage, source.url, target, check)
    opened = open_regular(path)
    try:
        return copy(opened, target, check)
    finally:
        os.close(opened)


def _difference(entry: Input, copied: Sum) -> str | None:
    if entry.size is not None and copied.size != entry.size:
        return f"has {copied.size} bytes, registered are {entry.size}"
    if entry.checksum is not None and copied.checksum != entry.checksum:
        return f"has adler32 {copied.checksum}, registered is {entry.checksum}"
    return None
