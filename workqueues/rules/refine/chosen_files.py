"""Which files of its inputs a task uses at all: only those that an item names, and none that other tasks have used. Pure.

Source: facts on task parameters 2.1 (skipFilesUsedBy, useInFilesWithNewAttemptNr), 2.2 (files); facts on workflows 7.3; decision
D15. Not here: how much of the rest it uses, and in which order (`input_files`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.refine.types import DatasetPlan

Files = Sequence[NewFile]


_ATTEMPT = re.compile(r"(?<=.)\.([1-9]\d?)$")


def attempt_of(lfn: str) -> tuple[str, int]:
    """The name of a file without its attempt number, and that: one or two digits behind the last dot; 0 without one."""
    found = _ATTEMPT.search(lfn)
    return (lfn[: found.start()], int(found[1])) if found else (lfn, 0)


def chosen_files(
    catalogued: Mapping[str, Files],
    inputs: Sequence[DatasetPlan],
    used: Mapping[str, Collection[str]],
    taken: Collection[str] | None = None,
) -> dict[str, Files]:
    """The files of the catalogue by dataset that the task uses; `used`: those that other tasks had, which it leaves out.

    `taken`, where newer attempts stand for the files that are named: those that the task has already, for which none does.
    """
    named: dict[str, Collection[str]] = {p.name: frozenset(p.files) for p in inputs}
    if taken is not None:
        for plans in _named_together(inputs):
            newest = _newest(catalogued, plans, taken)
            named |= {p.name: frozenset(lfn for name, lfn in newest.values() if name == p.name) for p in plans}
    return {p.name: _chosen(catalogued[p.name], named[p.name] if p.files else None, used.get(p.name, ())) for p in inputs}


def _chosen(files: Files, named: Collection[str] | None, used: Collection[str]) -> Files:
    if named is None and not used:
        return files
    return [f for f in files if (named is None or f.lfn in named) and f.lfn not in used]


def absent_files(
    catalogued: Mapping[str, Files], inputs: Sequence[DatasetPlan], known: Collection[str], *, newer: bool = False
) -> dict[str, str]:
    """Files that an item names and that none of its datasets has, each with one of these; `known`: datasets that are not looked
    at, since files may come to them, or have come before. `newer`: a newer attempt of a file will do.
    """
    absent: dict[str, str] = {}
    for plans in _named_together(inputs):
        if any(p.name in known for p in plans):
            continue
        there = {f.lfn for p in plans for f in catalogued[p.name]}
        newest = _newest(catalogued, plans, ()) if newer else {}
        absent |= {lfn: plans[0].name for lfn in plans[0].files if lfn not in there and attempt_of(lfn)[0] not in newest}
    return absent


def _named_together(inputs: Sequence[DatasetPlan]) -> Iterable[Sequence[DatasetPlan]]:
    """The datasets of each item that names files."""
    streams: dict[str, list[DatasetPlan]] = defaultdict(list)
    for p in inputs:
        if p.files:
            streams[p.stream_name].append(p)
    return streams.values()


def _newest(catalogued: Mapping[str, Files], plans: Sequence[DatasetPlan], taken: Collection[str]) -> dict[str, tuple[str, str]]:
    """Name without attempt -> dataset and name of the file that stands for it: the newest attempt, not older than the one that is
    named, of all datasets of the item; the one that the task has `taken` where there is one.
    """
    wanted: dict[str, int] = {}
    for base, attempt in map(attempt_of, plans[0].files):
        wanted[base] = min(attempt, wanted.get(base, attempt))
    had = {attempt_of(lfn)[0] for lfn in taken}
    best: dict[str, tuple[int, str, str]] = {}
    for p in plans:
        for file in catalogued[p.name]:
            base, attempt = attempt_of(file.lfn)
            allowed = base in wanted and (file.lfn in taken if base in had else attempt >= wanted[base])
            if allowed and (base not in best or attempt > best[base][0]):
                best[base] = (attempt, p.name, file.lfn)
    return {base: (name, lfn) for base, (_, name, lfn) in best.items()}
