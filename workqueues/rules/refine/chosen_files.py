"""Which files of its inputs a task uses at all: only those that an item names, and none that other tasks have used. Pure.

Source: facts on task parameters 2.1 (skipFilesUsedBy), 2.2 (files); decision D15. Not here: how much of the rest it uses, and in
which order (`input_files`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.refine.types import DatasetPlan

Files = Sequence[NewFile]


def chosen_files(
    catalogued: Mapping[str, Files], inputs: Sequence[DatasetPlan], used: Mapping[str, Collection[str]]
) -> dict[str, Files]:
    """The files of the catalogue by dataset that the task uses; `used`: those that other tasks had, which it leaves out."""
    return {p.name: _chosen(catalogued[p.name], frozenset(p.files), used.get(p.name, ())) for p in inputs}


def _chosen(files: Files, named: Collection[str], used: Collection[str]) -> Files:
    if not named and not used:
        return files
    return [f for f in files if (not named or f.lfn in named) and f.lfn not in used]


def absent_files(catalogued: Mapping[str, Files], inputs: Sequence[DatasetPlan], known: Collection[str]) -> dict[str, str]:
    """Files that an item names and that none of its datasets has, each with one of these; `known`: datasets that are not looked
    at, since files may come to them, or have come before.
    """
    streams: dict[str, list[DatasetPlan]] = defaultdict(list)
    for p in inputs:
        if p.files:
            streams[p.stream_name].append(p)
    absent: dict[str, str] = {}
    for plans in streams.values():
        if not any(p.name in known for p in plans):
            there = {f.lfn for p in plans for f in catalogued[p.name]}
            absent |= {lfn: plans[0].name for lfn in plans[0].files if lfn not in there}
    return absent
