"""Which files are merged together, and what the merge job asks of a slot: pure.

All files of one job stay together; limits close a merge job, and one job's files are always taken. Source: facts on workflows
7.1.9, on splitting 8.1 (column of merge jobs); row J8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from brokerage.rules.facts.ask import LEAST_MERGE_RAM_MB
from brokerage.rules.placement.slots import DISK_STEP_MB, RAM_STEP_MB, Slot, rounded_up
from workqueues.rules.jobs.split_rule import SplitRules

MOST_FILES, MOST_GB, MOST_FILES_IN_ALL = 50, 5, 1000
"""Files of a stream, GB of the largest stream, and files of all streams in a merge job, where the task says nothing."""
WORK_MB, OUTPUT_FACTOR = 500, 1.2
"""Scratch space of a merge job: its input, what it makes of that, and the rest."""
PRIORITY = 5000


class PremergedFile(NamedTuple):
    """A file that waits to be merged, with the stream that it goes to; `tries` to merge it before, and the memory, MB, that these
    have shown to be needed.
    """

    id: int
    dataset_id: int
    stream: str
    lfn: str
    size: int = 0
    n_events: int = 0
    tries: int = 0
    ram_mb: int = 0


class PremergedJob(NamedTuple):
    """A job whose files wait to be merged."""

    id: int
    files: Sequence[PremergedFile]


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """The most that a merge job gets: files and bytes of a stream, events (None: any), MB of scratch space (0: any)."""

    files: int = MOST_FILES
    size: float = MOST_GB * 1e9
    events: int | None = None
    disk_mb: float = 0

    @classmethod
    def of(cls, rules: SplitRules, maxwdir: float) -> MergeLimits:
        """Those of a task at a queue with so much scratch space."""
        most = rules.max_files_per_merge_job or max(MOST_FILES, rules.files_per_merge_job or 0)
        return cls(
            files=min(rules.files_per_merge_job or most, most),
            size=(rules.gb_per_merge_job or MOST_GB) * 1e9,
            events=rules.events_per_merge_job,
            disk_mb=maxwdir,
        )


def merge_groups(jobs: Iterable[PremergedJob], limits: MergeLimits) -> list[list[PremergedJob]]:
    """The jobs whose files are merged together, in their order."""
    groups: list[list[PremergedJob]] = []
    counts, sizes = Counter[str](), Counter[str]()
    events = 0
    for job in jobs:
        more = Counter(file.stream for file in job.files)
        larger = Counter[str]()
        for file in job.files:
            larger[file.stream] += file.size
        own = max((file.n_events for file in job.files), default=0)
        within = bool(groups) and (
            max((counts + more).values(), default=0) <= limits.files
            and (counts + more).total() <= MOST_FILES_IN_ALL
            and max((sizes + larger).values(), default=0) <= limits.size
            and (limits.events is None or events + own <= limits.events)
            and (not limits.disk_mb or scratch_mb((sizes + larger).total()) <= limits.disk_mb)
        )
        if not within:
            groups.append([])
            counts, sizes, events = Counter(), Counter(), 0
        groups[-1].append(job)
        counts, sizes, events = counts + more, sizes + larger, events + own
    return groups


def scratch_mb(size: int) -> float:
    """What a merge job of so many bytes of input needs on the node."""
    return (1 + OUTPUT_FACTOR) * size / 1e6 + WORK_MB


def merge_slot(size: int, *, cores: int, ram_mb: int, maxrss: float, maxwdir: float) -> Slot:
    """What a merge job of so many bytes of input asks of a slot at a queue with these limits (0: none).

    `cores` and `ram_mb` as the task says, 0 where it does not. It may run as long as the queue lets it.
    """
    memory = max(ram_mb, LEAST_MERGE_RAM_MB) if ram_mb else min(LEAST_MERGE_RAM_MB, maxrss or LEAST_MERGE_RAM_MB)
    disk = scratch_mb(size)
    disk = min(disk, maxwdir) if maxwdir else disk
    return Slot(cores or 1, rounded_up(memory, RAM_STEP_MB, maxrss), rounded_up(disk, DISK_STEP_MB, maxwdir), 0)
