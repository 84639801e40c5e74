"""How far one job goes: the longest run of neighbouring pieces that every limit allows, with its part of the secondary datasets.

Source: facts on splitting 8.2; decision F3: all limits bind together. A job is never less than its least: one file, one whole
boundary where these are not split, of cut events what nEventsPerJob takes of one file. Hard budgets hold for that one too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.costs import Line
from workqueues.splitters.protocol import Dropped, Files, JobLimits, JobPlan, Portion, Split
from workqueues.splitters.secondaries import Shortage, Stocks

AS_MANY = "as many jobs as were asked for"


@dataclass(frozen=True, slots=True)
class Ground:
    """The pieces as they are to be cut.

    `sizes`, `events`: their running sums. `ends`: of runs out of which no job goes. `units`: ends of what is in one job as a
    whole; None: every piece. `chunks`: events of a job of each piece, where jobs have events of one piece only.
    """

    pieces: Files
    sizes: list[int]
    events: list[int]
    ends: list[int]
    units: list[int] | None = None
    chunks: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one job may take: master files, files of all datasets, budgets; and what is asked for, as nothing less will do.

    `asked_files`, `asked_events`: 0 = not asked. `drops_short`: jobs with less than that are dropped (skipShortOutput).
    """

    max_files: int
    max_inputs: int
    lines: Sequence[Line]
    asked_files: int = 0
    asked_events: int = 0
    drops_short: bool = False

    def allow(self, start: int, stop: int) -> bool:
        """Whether pieces from `start` up to `stop` keep all budgets."""
        return all(line.reach(start) >= stop for line in self.lines)


class Cut(NamedTuple):
    """A job: where it ends, and what it takes; `full` where a limit ends it, so that it takes nothing of what comes behind."""

    stop: int
    upto: int
    n_events: int
    size: int
    full: bool = False
    others: tuple[Portion, ...] = ()


class LimitExcess(NamedTuple):
    """A limit that a job would break, in words; `hard`: also where it cannot be smaller."""

    reason: str
    hard: bool = False


class NoJob(NamedTuple):
    """Why no job is made of what comes next; `unfit`: it breaks a hard budget."""

    reason: str
    unfit: bool = False


class Cutter:
    def __init__(self, ground: Ground, bounds: Bounds, stocks: Stocks) -> None:
        self._ground, self._bounds, self._stocks = ground, bounds, stocks
        self._n = len(ground.pieces)

    def split(self, most: int | None, behind: int = 0) -> Split:
        """Jobs until the pieces end, there are as many as were asked for, or none can be made; `behind` more pieces are left."""
        jobs: list[JobPlan] = []
        dropped: list[Dropped] = []
        at, skip, refusal = 0, 0, NoJob(AS_MANY if behind else "")
        while at < self._n:
            cut = NoJob(AS_MANY) if most is not None and len(jobs) >= most else self._next(at, skip)
            if isinstance(cut, NoJob):
                refusal = cut
                break
            if self._bounds.drops_short and (reason := self._short(at, cut)):
                dropped += _dropped_parts(at, skip, cut, reason)
            else:
                jobs.append(JobPlan(at, cut.stop, cut.n_events, cut.size, skip, cut.upto, cut.others))
                self._stocks.take(cut.others)
            at, skip = (cut.stop - 1, cut.upto) if cut.upto else (cut.stop, 0)
        left = self._n - at + behind
        return Split(tuple(jobs), left, refusal.reason, self._stocks.secondaries(), skip, tuple(dropped), refusal.unfit)

    def _next(self, at: int, skip: int) -> Cut | NoJob:
        """The job that begins behind the first `skip` events of the piece at `at`."""
        want = self._largest_cut(at, skip)
        tried = self._tried(at, want)
        cut = tried if isinstance(tried, Cut) else self._smaller(at, skip, want, tried)
        if isinstance(cut, Cut) and cut.stop == self._n and self._waits(cut):
            return waiting(self._bounds)
        return cut

    def _waits(self, last: Cut) -> bool:
        """Whether the job at the end might be larger with files that come later."""
        if self._ground.pieces.complete:
            return False
        boundaries = self._ground.pieces.boundaries
        return not last.full or (self._ground.units is not None and boundaries[-1] is not None)

    def _largest_cut(self, at: int, skip: int) -> Cut:
        """The job as far as its run, its number of files and its events go, whatever it costs."""
        ground, bounds = self._ground, self._bounds
        stop = min(ground.ends[bisect_right(ground.ends, at)], at + bounds.max_files)
        if ground.units is not None:
            stop = ground.units[max(bisect_right(ground.units, stop) - 1, bisect_right(ground.units, at))]
        asked = ground.chunks[at] if ground.chunks else bounds.asked_events
        target = ground.events[at] + skip + asked
        if asked and ground.events[stop] > target:
            stop = bisect_left(ground.events, target, at + 1, stop)
            if ground.events[stop] > target:
                upto = target - ground.events[stop - 1]
                return Cut(stop, upto, asked, ground.sizes[stop] - ground.sizes[at], True)
        cut = self._whole(at, skip, stop)
        full = bool(ground.chunks) or 0 < asked <= cut.n_events or stop - at >= bounds.max_files
        return cut._replace(full=full)

    def _whole(self, at: int, skip: int, stop: int) -> Cut:
        ground = self._ground
        return Cut(stop, 0, ground.events[stop] - ground.events[at] - skip, ground.sizes[stop] - ground.sizes[at])

    def _tried(self, at: int, cut: Cut, least: bool = False) -> Cut | Shortage | LimitExcess:
        """The job with its part of the secondary datasets where no limit is broken; the `least` job must keep hard ones only."""
        bounds = self._bounds
        if self._stocks:
            others = self._stocks.deal(at, cut.stop, cut.n_events)
            if isinstance(others, Shortage):
                return others
            cut = cut._replace(size=cut.size + self._stocks.size(others), others=others)
            if not least and cut.stop - at + sum(portion.n for portion in others) > bounds.max_inputs:
                return LimitExcess("files")
        for line in bounds.lines:
            if (line.hard or not least) and not line.allows(cut.size, cut.n_events):
                return LimitExcess(line.what, line.hard)
        return cut

    def _smaller(self, at: int, skip: int, want: Cut, why: Shortage | LimitExcess) -> Cut | NoJob:
        """The largest job below the wanted one, which `why` forbids; the least one where no limit leaves room for any."""
        stops = self._stops(at, want.stop)
        high = bisect_right(stops, min((line.reach(at, skip) for line in self._bounds.lines), default=want.stop))
        if high < len(stops) and not isinstance(tried := self._tried(at, self._whole(at, skip, stops[high])), Cut):
            why = tried
        best: Cut | None = None
        low, middle = -1, high - 1
        while high - low > 1:
            tried = self._tried(at, self._whole(at, skip, stops[middle]))
            if isinstance(tried, Cut):
                best, low = tried, middle
            else:
                why, high = tried, middle
            middle = (low + high) // 2
        if best is None:
            least = self._tried(at, self._whole(at, skip, stops[0]) if stops else want, least=True)
            if not isinstance(least, Cut):
                return _no_job(least)
            best = least
        return _no_job(why) if self._forbids(at, why, best) else best._replace(full=True)

    def _stops(self, at: int, stop: int) -> Sequence[int]:
        units = self._ground.units
        return range(at + 1, stop) if units is None else units[bisect_right(units, at) : bisect_left(units, stop)]

    def _forbids(self, at: int, why: Shortage | LimitExcess, best: Cut) -> bool:
        """Whether no job is made at all, rather than the one that is smaller because of `why`.

        Where a size is asked for, files of secondary datasets that lack are waited for; and a job that only this queue makes
        short is not dropped.
        """
        bounds = self._bounds
        if isinstance(why, Shortage):
            return bool(bounds.asked_files or bounds.asked_events or self._ground.chunks) or not why.for_good
        return why.hard and bounds.drops_short and bool(self._short(at, best))

    def _short(self, at: int, cut: Cut) -> str:
        """Why a job is less than asked for; nothing where it is not."""
        n, files, events = cut.stop - at, self._bounds.asked_files, self._bounds.asked_events
        if (files and n >= files) or (events and (cut.n_events >= events or not cut.n_events)):
            return ""
        if events:
            return f"skipShortOutput: {cut.n_events} events are fewer than the {events} of a job"
        return f"skipShortOutput: {n} files are fewer than the {files} of a job" if files else ""


def bounds_of(rules: SplitRules, limits: JobLimits, lines: Sequence[Line], by_event: bool = False) -> Bounds:
    """What one job may take by the rules of its task and the limits of a queue; soft limits come before hard ones."""
    ceiling = ceiling_of(rules, limits)
    return Bounds(
        ceiling,
        limits.max_inputs,
        sorted(lines, key=lambda line: line.hard),
        ceiling if rules.files_per_job and not rules.respect_lb else 0,
        (rules.events_per_job or 0) if by_event and not rules.target_events else 0,
        rules.skip_short_output,
    )


def ceiling_of(rules: SplitRules, limits: JobLimits) -> int:
    """Most files of the master in one job: nFilesPerJob, else nMaxFilesPerJob, else the limit's; never more than its inputs."""
    return min(rules.files_per_job or rules.max_files_per_job or limits.max_files, limits.max_inputs)


def first_pieces(files: Files, most: int | None, ceiling: int) -> Files:
    """All pieces that so many jobs can reach, of at most `ceiling` pieces each."""
    return files if most is None or most * ceiling >= len(files) else files.window(0, max(most, 0) * ceiling)


def waiting(bounds: Bounds) -> NoJob:
    """The last job might be larger with files that come later."""
    asked = f"{bounds.asked_events} events" if bounds.asked_events else f"{bounds.max_files}"
    return NoJob(f"the last files wait for more: a job takes {asked}")


def too_large(limit: LimitExcess) -> NoJob:
    """A hard budget forbids even the smallest job."""
    return NoJob(f"the smallest job would take more {limit.reason} than there is", unfit=True)


def _no_job(why: Shortage | LimitExcess) -> NoJob:
    return NoJob(why.reason) if isinstance(why, Shortage) else too_large(why)


def _dropped_parts(at: int, skip: int, cut: Cut, reason: str) -> Iterator[Dropped]:
    """The parts of pieces that a job would have taken."""
    for i in range(at, cut.stop):
        yield Dropped(i, skip if i == at else 0, cut.upto if i == cut.stop - 1 else 0, reason)
