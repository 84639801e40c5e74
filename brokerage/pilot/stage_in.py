"""Fetching input files into the working folder, checked on the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from brokerage.pilot.copying import Sum, copy, open_regular
from brokerage.pilot.job import Failure, Input

MISSING, CORRUPT, FAILED, FETCHED = "missing", "corrupt", "failed", "fetched"


def stage_in(inputs: Sequence[Input], folder: Path, check: Callable[[], None]) -> int:
    """Copy all inputs to `folder`; the bytes copied.

    Every input is looked at, so that one report names all missing and corrupt ones; after the first bad one the rest is only
    looked for. Raises Failure with code INPUT_MISSING, INPUT_CORRUPT (damaged at every source that has it) or STAGEIN_FAILED (the
    storage did not work).
    """
    verdicts: dict[str, list[str]] = {MISSING: [], CORRUPT: [], FAILED: []}
    words: list[str] = []
    copied = 0
    for entry in inputs:
        if words:
            verdict, text = _look(entry)
        else:
            verdict, text = _fetch(entry, folder / entry.lfn, check)
        if verdict == FETCHED:
            copied += entry.size or 0
        else:
            verdicts[verdict].append(entry.lfn)
            words.append(text)
    if words:
        code = "INPUT_MISSING" if verdicts[MISSING] else "INPUT_CORRUPT" if verdicts[CORRUPT] else "STAGEIN_FAILED"
        raise Failure(code, "; ".join(words), missing=tuple(verdicts[MISSING]), corrupt=tuple(verdicts[CORRUPT]))
    return copied


def _look(entry: Input) -> tuple[str, str]:
    if any(path.exists() for path in entry.sources):
        return FETCHED, ""
    return MISSING, f"{entry.lfn}: at no source"


def _fetch(entry: Input, target: Path, check: Callable[[], None]) -> tuple[str, str]:
    """Try the sources in order: (verdict, words).

    One damaged copy weighs more than missing ones, a storage in trouble more than both.
    """
    verdict, text = MISSING, f"{entry.lfn}: at no source"
    for path in entry.sources:
        try:
            copied = _copy_one(path, target, check)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            verdict, text = FAILED, f"{entry.lfn}: {problem.strerror or problem}"
            target.unlink(missing_ok=True)
            continue
        wrong = _difference(entry, copied)
        if wrong is None:
            return FETCHED, ""
        target.unlink(missing_ok=True)
        if verdict != FAILED:
            verdict, text = CORRUPT, f"{entry.lfn}: {wrong}"
    return verdict, text


def _copy_one(path: Path, target: Path, check: Callable[[], None]) -> Sum:
    source = open_regular(path)
    try:
        return copy(source, target, check)
    finally:
        os.close(source)


def _difference(entry: Input, copied: Sum) -> str | None:
    if entry.size is not None and copied.size != entry.size:
        return f"has {copied.size} bytes, registered are {entry.size}"
    if entry.checksum is not None and copied.checksum != entry.checksum:
        return f"has adler32 {copied.checksum}, registered is {entry.checksum}"
    return None
