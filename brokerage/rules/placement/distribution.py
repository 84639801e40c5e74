"""Which of the chosen queues gets the next block of jobs, and which jobs these are (facts on the brokerage 8.1; decisions B13,
B19).

A queue is drawn in proportion to its weight among those that still have room; what a queue is given counts as queued there and
lowers its weight, so that the blocks of one task spread as the weights say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random
from types import MappingProxyType

from brokerage.rules.facts.ask import Config
from brokerage.rules.facts.job_kind import JobKind
from workqueues.splitters.protocol import Dropped, Files, JobLimits, JobPlan, Secondary, Split

MOST_USES = 500_000
"""Files that jobs made at once read, from which on no more jobs are: each reads all of a secondary dataset that is not split."""


@dataclass(frozen=True, slots=True)
class ChosenQueue:
    """One chosen queue: its weight, jobs queued there, and how many more it may get in this round; `inf` = no limit.

    `untouched`: no job is there, in any state, of any share. `last`: it gets jobs only when the others have no more room.
    """

    name: str
    weight: float
    queued: int = 0
    room: float = inf
    untouched: bool = False
    last: bool = False

    def filled(self, jobs: int) -> ChosenQueue:
        """The queue after it was given so many jobs: more queued, less room, and a weight that is lower in proportion."""
        queued = self.queued + jobs
        weight = self.weight * (self.queued + 1) / (queued + 1)
        return replace(self, queued=queued, weight=weight, room=self.room - jobs, untouched=self.untouched and not jobs)


def block_of(kind: JobKind, config: Config) -> int:
    """How many jobs of this kind go to one queue at most before the next is drawn. `config`: component jobbroker."""
    return int(config["SCOUTS_PER_BLOCK" if kind is JobKind.SCOUT else "JOBS_PER_BLOCK"])


def draw(queues: Sequence[ChosenQueue], dice: Random) -> ChosenQueue | None:
    """A queue with room, drawn in proportion to the weights, of the last ones when no other has any; None when none has room."""
    roomy = [queue for queue in queues if queue.room >= 1 and queue.weight > 0]
    roomy = [queue for queue in roomy if not queue.last] or roomy
    if not roomy:
        return None
    left = dice.random() * sum(queue.weight for queue in roomy)
    for queue in roomy:
        left -= queue.weight
        if left < 0:
            return queue
    return roomy[-1]


@dataclass(frozen=True, slots=True)
class Block:
    """Jobs for one queue; they name positions in the pieces of the whole chunk."""

    queue: str
    jobs: tuple[JobPlan, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Blocks in the order of drawing, and why no more jobs were made.

    `dropped`: events that no job takes, by the task's own rules.
    """

    blocks: tuple[Block, ...]
    reason: str = ""
    dropped: tuple[Dropped, ...] = ()


@dataclass(slots=True)
class _PieceCursor:
    """How far the pieces of a chunk are cut: the position of the next one, and how many of its events are taken.

    `per_job`: pieces that a job takes, as far as is known.
    """

    files: Files
    secondaries: Sequence[Secondary]
    per_job: int
    at: int = 0
    skip: int = 0

    def take(self, cut: Cut, limits: JobLimits, most: int, elsewhere: Collection[int] = ()) -> Split:
        """The next jobs within these limits, by a window that is made larger where it is too small for a single job; none behind
        the first that has a piece which is better taken `elsewhere` (positions).
        """
        reach = most * self.per_job + 1
        while True:
            window = self.files.window(self.at, self.at + reach, self.skip)
            split = cut(window, limits, most, self.secondaries)
            if elsewhere and (stop := self._stop(split, elsewhere)):
                split = cut(window, limits, stop, self.secondaries)
            if split.jobs or split.unfit or self.at + reach >= len(self.files):
                self.per_job = max((job.n_files for job in split.jobs), default=self.per_job)
                return self._moved(window, split)
            reach *= 4

    def _stop(self, split: Split, elsewhere: Collection[int]) -> int:
        """The number of jobs before the first, but for the very first one, with a piece that is better taken elsewhere; 0 where
        there is none.
        """
        for n, job in enumerate(split.jobs):
            if n and any(self.at + i in elsewhere for i in range(job.start, job.stop)):
                return n
        return 0

    def _moved(self, window: Files, split: Split) -> Split:
        """Go on behind the jobs: they and what is dropped, with positions in the whole chunk."""
        at, skip = self.at, self.skip
        jobs = tuple(
            job._replace(
                start=job.start + at,
                stop=job.stop + at,
                skip=job.skip + skip if job.start == 0 else job.skip,
                upto=job.upto + skip if job.stop == 1 and job.upto else job.upto,
            )
            for job in split.jobs
        )
        dropped = tuple(
            d._replace(position=d.position + at)
            if d.position
            else Dropped(at, d.skip + skip, d.upto + skip if d.upto else 0, d.reason)
            for d in split.dropped
        )
        moved = len(window) - split.left
        self.at, self.skip = at + moved, split.skip if moved else skip + split.skip
        self.secondaries = split.secondaries
        return replace(split, jobs=jobs, dropped=dropped)


Cut = Callable[[Files, JobLimits, int, Sequence[Secondary]], Split]
"""Cuts pieces into at most so many jobs within the limits of a queue."""


NOWHERE: Mapping[int, str] = MappingProxyType({})


def _next_queue(
    untouched: list[str], queues: Sequence[ChosenQueue], failed_at: str, dice: Random
) -> tuple[ChosenQueue | None, bool]:
    """The queue for the next jobs, and whether no job is there, so that it gets one first; it is untouched no more.

    The one at which the next piece failed comes last.
    """
    by_name = {queue.name: queue for queue in queues}
    first = [name for name in untouched if name != failed_at and name in by_name]
    chosen = by_name[first[-1]] if first else None
    queue = chosen or draw([q for q in queues if q.name != failed_at], dice) or draw(queues, dice)
    if queue is not None and queue.name in untouched:
        untouched.remove(queue.name)
    return queue, chosen is not None


def lay_out(
    files: Files,
    secondaries: Sequence[Secondary],
    cut: Cut,
    limits_at: Callable[[str], JobLimits],
    queues: Sequence[ChosenQueue],
    most: int,
    block: int,
    dice: Random,
    per_job: int = 20,
    failed_at: Mapping[int, str] = NOWHERE,
) -> Layout:
    """Jobs cut from the pieces within the limits of the queue that each block of them is drawn for, at most so many.

    `per_job`: pieces that a job probably takes; a block that would need more of them may have fewer jobs. `failed_at`: the queue
    at which the last try of a piece failed, by position: another one is drawn for it where one has room.

    Queues without any job get the first jobs, one each in random order: they start at once and show soon how they run (facts on
    the brokerage 8.1, queues without weight). All others are drawn by weight, and no queue gets more than it has room for. A
    queue for which nothing can be cut is barred until another took some.
    """
    by_name = {queue.name: queue for queue in queues}
    untouched = [queue.name for queue in queues if queue.untouched and queue.room >= 1]
    dice.shuffle(untouched)
    cursor, blocks, dropped = _PieceCursor(files, secondaries, per_job), list[Block](), list[Dropped]()
    barred: set[str] = set()
    failures = {name: {i for i, at in failed_at.items() if at == name} for name in set(failed_at.values())}
    reason, made, uses = "", 0, 0
    while made < most and cursor.at < len(files) and uses < MOST_USES:
        queue, first = _next_queue(
            untouched, [q for q in by_name.values() if q.name not in barred], failed_at.get(cursor.at, ""), dice
        )
        if queue is None:
            break
        other = bool(failed_at) and any(q.name != queue.name and q.room >= 1 and q.weight > 0 for q in by_name.values())
        elsewhere = failures.get(queue.name, ()) if other else ()
        wanted = 1 if first else int(min(block, most - made, queue.room))
        split = cursor.take(cut, limits_at(queue.name), wanted, elsewhere)
        reason = split.reason
        dropped += split.dropped
        if not split.jobs:
            if not (split.unfit or split.dropped):
                break
            barred |= {queue.name} if split.unfit else set()
            continue
        blocks.append(Block(queue.name, split.jobs))
        barred.clear()
        made += len(split.jobs)
        uses += sum(job.n_files + sum(portion.n for portion in job.others) for job in split.jobs)
        by_name[queue.name] = queue.filled(len(split.jobs))
    return Layout(tuple(blocks), reason, tuple(dropped))
