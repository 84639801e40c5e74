"""Cutting jobs slowly and plainly: grow a job by one file at a time and look at every limit anew each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from workqueues.rules.jobs.job_size import Budget
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.protocol import Files, JobLimits, Secondary

Part = tuple[int, int, int]
"""A piece, its first event that a job takes, and the one behind the last, counted from the start of the piece."""


@dataclass
class OracleJob:
    """The parts of pieces and the positions in each secondary dataset that a job takes."""

    parts: list[Part]
    others: list[list[int]]


@dataclass
class OracleSplit:
    """Jobs, parts that were dropped, and what comes next: the piece and its events that are taken."""

    jobs: list[OracleJob] = field(default_factory=list)
    dropped: list[Part] = field(default_factory=list)
    at: int = 0
    skip: int = 0
    why: str = ""
    """Why it stops before the end: waits, hard, short."""


class Missing(Exception):
    """A secondary dataset has too few files; whether it gets no more is the argument."""


def exact(number: float) -> Fraction:
    return Fraction(str(number))


def slow_split(files: Files, rules: SplitRules, limits: JobLimits, secondaries: Sequence[Secondary], events: bool) -> OracleSplit:
    """All jobs."""
    found, at = OracleSplit(), [each.at for each in secondaries]
    while found.at < len(files):
        parts, others, why = _job(files, rules, limits, secondaries, at, (found.at, found.skip), events)
        if why:
            found.why = why
            break
        last, _, upto = parts[-1]
        if rules.skip_short_output and _short(files, rules, limits, parts, events):
            found.dropped += parts
        else:
            found.jobs.append(OracleJob(parts, others))
            at = [_behind(each, rules, files, a, taken) for each, a, taken in zip(secondaries, at, others, strict=True)]
        cut = events and upto < files.n_events[last]
        found.at, found.skip = (last, upto) if cut else (last + 1, 0)
    return found


def _job(
    files: Files,
    rules: SplitRules,
    limits: JobLimits,
    secondaries: Sequence[Secondary],
    at: list[int],
    start: tuple[int, int],
    events: bool,
) -> tuple[list[Part], list[list[int]], str]:
    """The next job, or why there is none."""
    steps = list(_steps(files, rules, start, events))
    asked = (rules.files_per_job and not rules.respect_lb) or (events and (rules.events_per_job or rules.target_events))
    taken, others, stopped = steps[0], None, ""
    for n, step in enumerate(steps):
        if n and len(step) > _ceiling(rules, limits):
            stopped = "soft"
            break
        try:
            deal = [_deal(each, rules, files, step, a, events) for each, a in zip(secondaries, at, strict=True)]
        except Missing as missing:
            if n == 0 or asked or not missing.args[0]:
                return [], [], "short"
            stopped = "short"
            break
        soft, hard = _broken(files, rules, limits, secondaries, step, deal, events)
        if n and (soft or hard):
            stopped = "soft" if soft else "hard"
            break
        if hard:
            return [], [], "hard"
        taken, others = step, deal
        if soft:
            stopped = "soft"
            break
    assert others is not None
    short = rules.skip_short_output and _short(files, rules, limits, taken, events)
    if stopped == "hard" and short:
        return [], [], "hard"
    if not files.complete and taken[-1][0] == len(files) - 1 and _open(files, rules, limits, taken, events, bool(stopped)):
        return [], [], "waits"
    return taken, others, ""


def _steps(files: Files, rules: SplitRules, start: tuple[int, int], events: bool) -> Iterator[list[Part]]:
    """Ever larger jobs, as far as what may stand in one job goes."""
    at, skip = start
    parts: list[Part] = []
    units = 0
    asked = _asked(files, rules, at) if events else 0
    for i in range(at, len(files)):
        if i > at and not _together(files, rules, i, events):
            return
        known = files.n_events[i] if events else 0
        first = skip if i == at else 0
        have = sum(b - a for _, a, b in parts)
        upto = min(known, first + asked - have) if asked and known else known
        parts = [*parts, (i, first, upto)]
        if not _in_unit(files, rules, i):
            units += 1
            if units > 1 and rules.respect_lb and len({files.lumi_blocks[k] for k, _, _ in parts}) > 1:
                return
            yield parts
        if events and asked and (upto < known or have + upto - first == asked):
            return
        if events and rules.target_events:
            return


def _asked(files: Files, rules: SplitRules, at: int) -> int:
    if rules.target_events:
        total = files.totals[at]
        return ceil(Fraction(total, max(ceil(Fraction(total, rules.target_events)), 1)))
    return rules.events_per_job or 0


def _together(files: Files, rules: SplitRules, i: int, events: bool) -> bool:
    """Whether a piece may be in the job of the one before."""
    if rules.boundary in (1, 2, 4) and files.boundaries[i] != files.boundaries[i - 1]:
        return False
    if rules.respect_lb and rules.boundary < 3 and files.lumi_blocks[i] != files.lumi_blocks[i - 1]:
        return False
    if events:
        before = i - 1
        ends = files.firsts[before] + files.n_events[before] == files.totals[before]
        return files.firsts[i] == 0 and ends and bool(files.n_events[i]) == bool(files.n_events[before])
    return True


def _in_unit(files: Files, rules: SplitRules, i: int) -> bool:
    """Whether the next file has the same boundary, which is not split."""
    ids = files.boundaries
    return rules.boundary >= 3 and i + 1 < len(files) and ids[i] is not None and ids[i] == ids[i + 1]


def _ceiling(rules: SplitRules, limits: JobLimits) -> int:
    return min(rules.files_per_job or rules.max_files_per_job or limits.max_files, limits.max_inputs)


def _broken(
    files: Files,
    rules: SplitRules,
    limits: JobLimits,
    secondaries: Sequence[Secondary],
    parts: list[Part],
    deal: list[list[int]],
    events: bool,
) -> tuple[bool, bool]:
    """Whether a soft limit is broken, and whether a hard one is."""
    size = sum(files.sizes[i] for i, _, _ in parts)
    size += sum(each.files.sizes[k] for each, taken in zip(secondaries, deal, strict=True) for k in taken)
    n = sum(b - a for _, a, b in parts) if events else sum(files.n_events[i] for i, _, _ in parts)
    inputs = len(parts) + sum(len(taken) for taken in deal)

    def breaks(budget: Budget) -> bool:
        cost, most = exact(budget.per_byte) * size + exact(budget.per_event) * n, exact(budget.most)
        return cost >= most if budget.below else cost > most

    soft = inputs > limits.max_inputs
    soft = soft or any(breaks(budget) for budget in limits.budgets if not budget.hard)
    return soft, any(breaks(budget) for budget in limits.budgets if budget.hard)


def _reached(files: Files, rules: SplitRules, limits: JobLimits, parts: list[Part], events: bool) -> bool:
    asked = rules.events_per_job or 0
    n = sum(b - a for _, a, b in parts)
    return events and 0 < asked <= n


def _short(files: Files, rules: SplitRules, limits: JobLimits, parts: list[Part], events: bool) -> bool:
    by_file = bool(rules.files_per_job) and not rules.respect_lb
    by_event = events and bool(rules.events_per_job) and not rules.target_events
    if by_file and len(parts) >= _ceiling(rules, limits):
        return False
    if by_event and (_reached(files, rules, limits, parts, events) or not files.n_events[parts[0][0]]):
        return False
    return by_file or by_event


def _open(files: Files, rules: SplitRules, limits: JobLimits, parts: list[Part], events: bool, stopped: bool) -> bool:
    """Whether the job at the end could be larger with files that come later."""
    last, _, upto = parts[-1]
    if events and upto < files.n_events[last]:
        return False
    if rules.boundary >= 3 and files.boundaries[-1] is not None:
        return True
    full = stopped or len(parts) >= _ceiling(rules, limits) or _reached(files, rules, limits, parts, events)
    return not full and not (events and rules.target_events)


def _bound(secondary: Secondary, rules: SplitRules) -> bool:
    return rules.boundary > 0 and any(each is not None for each in secondary.files.boundaries)


def _deal(secondary: Secondary, rules: SplitRules, files: Files, parts: list[Part], at: int, events: bool) -> list[int]:
    """Positions in a secondary dataset that a job takes."""
    rule, total = secondary.rule, len(secondary.files)
    n = sum(b - a for _, a, b in parts) if events else sum(files.n_events[i] for i, _, _ in parts)
    if _bound(secondary, rules):
        ids = {files.boundaries[i] for i, _, _ in parts}
        of_ids = [k for k in range(total) if secondary.files.boundaries[k] in ids]
        if of_ids and of_ids != list(range(of_ids[0], of_ids[-1] + 1)):
            raise Missing(True)
        left = [k for k in of_ids if k >= at] if of_ids and rule.tracked and of_ids[0] <= at <= of_ids[-1] + 1 else of_ids
        if rules.boundary >= 3 or rule.nosplit:
            return left
        return _first(secondary, left, len(parts), n)[0]
    if rule.nosplit and total:
        return list(range(total))
    if rule.repeat and total:
        return _first(secondary, [(at + k) % total for k in range(total)], len(parts), n)[0]
    taken, enough = _first(secondary, list(range(at, total)), len(parts), n)
    if not enough and rule.reusable and total:
        taken, enough = _first(secondary, list(range(total)), len(parts), n)[0], True
    if not enough:
        raise Missing(secondary.files.complete)
    return taken


def _first(secondary: Secondary, line: list[int], n_files: int, n_events: int) -> tuple[list[int], bool]:
    """The first of these positions, as many as the rule wants, and whether they are enough."""
    rule, taken = secondary.rule, list[int]()

    def enough() -> bool:
        if rule.files_per_job is not None:
            return len(taken) >= rule.files_per_job
        if rule.event_ratio is not None and n_events:
            return sum(secondary.files.n_events[k] for k in taken) >= exact(rule.event_ratio) * n_events
        return len(taken) >= exact(rule.ratio) * n_files

    for k in line:
        if enough():
            break
        taken.append(k)
    return taken, enough()


def _behind(secondary: Secondary, rules: SplitRules, files: Files, at: int, taken: list[int]) -> int:
    """Where the next job goes on."""
    rule = secondary.rule
    if not taken or rule.nosplit or (_bound(secondary, rules) and not rule.tracked):
        return at
    behind = taken[-1] + 1
    return behind % len(secondary.files) if rule.repeat else behind
