"""What holds for every way of cutting jobs: a plain oracle says the same, nothing is lost, limits hold, blocks change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.splitting import OracleJob, OracleSplit, Part, slow_split
from workqueues.rules.jobs.dataset_attributes import Attributes
from workqueues.rules.jobs.job_size import Budget
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.by_events import by_events
from workqueues.splitters.by_files import by_files
from workqueues.splitters.protocol import Files, JobLimits, JobPlan, Secondary, Split

COUNTS = st.none() | st.integers(1, 6)
BUDGETS = st.builds(
    Budget,
    st.sampled_from([0.0, 1.0, 1.1, 2.5]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(0, 60).map(float),
    st.booleans(),
    st.booleans(),
)
LIMITS = st.builds(JobLimits, st.integers(1, 8), st.integers(2, 25), st.lists(BUDGETS, max_size=3).map(tuple))


@st.composite
def columns(draw: st.DrawFn, complete: bool | None = None, pieces: bool = False) -> Files:
    """Some files, or pieces of files, of a dataset; those of one boundary and lumi block together."""
    n = draw(st.integers(0, 14))
    sizes = draw(st.lists(st.integers(0, 15), min_size=n, max_size=n))
    totals = draw(st.lists(st.integers(0, 30) if pieces else st.integers(0, 12), min_size=n, max_size=n))
    firsts, events = [0] * n, list(totals)
    if pieces:
        for i, total in enumerate(totals):
            if total > 1 and draw(st.integers(0, 3)) == 0:
                firsts[i] = draw(st.integers(0, total - 1))
                events[i] = draw(st.integers(1, total - firsts[i]))
    groups = [sorted(draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))) for _ in range(2)]
    boundaries, lumi_blocks = ([None if each == 3 else each for each in group] for group in groups)
    done = draw(st.booleans()) if complete is None else complete
    return Files(range(n), sizes, events, firsts, totals, boundaries, lumi_blocks, done)


@st.composite
def secondaries(draw: st.DrawFn) -> list[Secondary]:
    """Up to two secondary datasets of some kind."""
    found = []
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(["repeat", "nosplit", "reusable", "many_time", "ratio"]))
        rule: dict[str, Any] = {kind: True} if kind != "ratio" else {}
        rule["ratio"] = draw(st.sampled_from([0.1, 0.3, 1.0, 2.0, 2.5]))
        rule["event_ratio"] = draw(st.sampled_from([None, None, 0.2, 1.0]))
        rule["files_per_job"] = draw(st.sampled_from([None, None, 1, 3]))
        n = draw(st.integers(0, 20))
        even = st.just(2) if kind == "reusable" else st.integers(0, 5)
        sizes, events = (draw(st.lists(even, min_size=n, max_size=n)) for _ in range(2))
        ids = sorted(draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)))
        boundaries: Sequence[int | None] = draw(st.sampled_from([[], [None] * n, ids]))
        files = Files(range(n), sizes, events, boundaries=boundaries, complete=draw(st.booleans()))
        found.append(Secondary(Attributes(**rule), files, draw(st.integers(0, n))))
    return found


FILE_RULES = st.builds(
    SplitRules,
    files_per_job=COUNTS,
    max_files_per_job=COUNTS,
    boundary=st.integers(0, 4),
    respect_lb=st.booleans(),
    skip_short_output=st.booleans(),
)
EVENT_RULES = st.builds(
    SplitRules,
    files_per_job=COUNTS,
    max_files_per_job=COUNTS,
    events_per_job=st.integers(1, 40),
    boundary=st.integers(0, 2),
    respect_lb=st.booleans(),
    skip_short_output=st.booleans(),
)
EVEN_RULES = st.builds(SplitRules, target_events=st.integers(1, 20), skip_short_output=st.booleans())


def parts(job: JobPlan, files: Files, events: bool) -> list[Part]:
    """What a job takes of each piece."""
    stops = [files.n_events[i] if events else 0 for i in range(job.start, job.stop)]
    stops[-1] = job.upto or stops[-1]
    return [(i, job.skip if i == job.start else 0, stop) for i, stop in zip(range(job.start, job.stop), stops, strict=True)]


def told(split: Split, files: Files, given: Sequence[Secondary], events: bool) -> OracleSplit:
    """A split in the words of the oracle."""
    found = OracleSplit(at=len(files) - split.left, skip=split.skip)
    for job in split:
        others = [
            [(portion.start + k) % max(len(each.files), 1) for k in range(portion.n)]
            for portion, each in zip(job.others, given, strict=True)
        ]
        found.jobs.append(OracleJob(parts(job, files, events), others))
    known = files.n_events if events else [0] * len(files)
    found.dropped = [(each.position, each.skip, each.upto or known[each.position]) for each in split.dropped]
    return found


def compare(split: Split, files: Files, rules: SplitRules, limits: JobLimits, given: Sequence[Secondary], events: bool) -> None:
    slow = slow_split(files, rules, limits, given, events)
    assert split.unfit == (slow.why == "hard")
    assert bool(split.reason) == bool(slow.why) == bool(split.left)
    slow.why = ""
    assert told(split, files, given, events) == slow
    for job in split:
        inputs = [files.sizes[i] for i in range(job.start, job.stop)]
        for portion, each in zip(job.others, given, strict=True):
            inputs += [each.files.sizes[(portion.start + k) % len(each.files)] for k in range(portion.n)]
        assert job.size == sum(inputs)
        for budget in limits.budgets:
            cost = budget.per_byte * job.size + budget.per_event * job.n_events
            assert not budget.hard or cost < budget.most + 1e-9 - budget.below * 2e-9


@given(columns(), FILE_RULES, LIMITS, secondaries())
def test_files_are_cut_as_one_would_by_hand(files: Files, rules: SplitRules, limits: JobLimits, given: list[Secondary]) -> None:
    compare(by_files(files, rules, limits, None, given), files, rules, limits, given, events=False)


@given(columns(), FILE_RULES, LIMITS)
def test_files_without_others_are_cut_as_one_would_by_hand(files: Files, rules: SplitRules, limits: JobLimits) -> None:
    compare(by_files(files, rules, limits), files, rules, limits, [], events=False)


@given(columns(pieces=True), EVENT_RULES | EVEN_RULES, LIMITS, secondaries())
def test_events_are_cut_as_one_would_by_hand(files: Files, rules: SplitRules, limits: JobLimits, given: list[Secondary]) -> None:
    compare(by_events(files, rules, limits, None, given), files, rules, limits, given, events=True)


@given(columns(pieces=True), EVENT_RULES | EVEN_RULES, LIMITS, st.none() | st.integers(0, 6))
def test_every_event_is_in_one_job_or_left_or_dropped_with_a_reason(
    files: Files, rules: SplitRules, limits: JobLimits, most: int | None
) -> None:
    split = by_events(files, rules, limits, most)
    assert split == by_events(files, rules, limits, most)
    at = len(files) - split.left
    found = [part for job in split for part in parts(job, files, events=True)]
    found += [(each.position, each.skip, each.upto or files.n_events[each.position]) for each in split.dropped]
    if split.skip:
        found.append((at, split.skip, split.skip))
    assert all(each.reason for each in split.dropped)
    assert split.left == 0 or split.reason
    events = sorted((i, event) for i, first, stop in found for event in range(first, stop))
    whole = [(i, event) for i in range(at) for event in range(files.n_events[i])]
    assert events == whole + [(at, event) for event in range(split.skip)]
    assert {i for i, _, _ in found} >= set(range(at))
    assert most is None or len(split.jobs) <= most


@given(columns(), FILE_RULES, LIMITS, secondaries(), st.integers(1, 3), st.integers(1, 20))
def test_files_cut_block_by_block_give_the_same_jobs(
    files: Files, rules: SplitRules, limits: JobLimits, given: list[Secondary], block: int, window: int
) -> None:
    assert in_blocks(by_files, files, rules, limits, given, block, window) == [
        (files.ids[job.start], files.ids[job.stop - 1], job.n_events, job.size, 0, 0, job.others)
        for job in by_files(files, rules, limits, None, given)
    ]


@given(columns(pieces=True), EVENT_RULES | EVEN_RULES, LIMITS, secondaries(), st.integers(1, 3), st.integers(1, 20))
def test_events_cut_block_by_block_give_the_same_jobs(
    files: Files, rules: SplitRules, limits: JobLimits, given: list[Secondary], block: int, window: int
) -> None:
    assert in_blocks(by_events, files, rules, limits, given, block, window) == [
        (*ids(files, job), job.n_events, job.size, *first_and_last(files, job), job.others)
        for job in by_events(files, rules, limits, None, given)
    ]


def ids(files: Files, job: JobPlan) -> tuple[int, int]:
    return files.ids[job.start], files.ids[job.stop - 1]


def first_and_last(files: Files, job: JobPlan) -> tuple[int, int]:
    """The first event of a job in its first file, and the one behind its last in its last."""
    last = job.stop - 1
    return files.firsts[job.start] + job.skip, files.firsts[last] + (job.upto or files.n_events[last])


def in_blocks(
    splitter: Any, files: Files, rules: SplitRules, limits: JobLimits, given: Sequence[Secondary], block: int, window: int
) -> list[tuple[Any, ...]]:
    """Jobs cut a few at a time out of windows, which grow where they hold too little for one job."""
    found: list[tuple[Any, ...]] = []
    at, skip, width = 0, 0, window
    while at < len(files):
        seen = files.window(at, at + width, skip)
        split = splitter(seen, rules, limits, block, given)
        for job in split:
            span = first_and_last(seen, job) if splitter is by_events else (0, 0)
            found.append((*ids(seen, job), job.n_events, job.size, *span, job.others))
        behind = at + len(seen) - split.left, split.skip + (skip if split.left == len(seen) else 0)
        if behind == (at, skip) and (width >= len(files) or split.unfit):
            break
        width = window if behind != (at, skip) else 2 * width
        (at, skip), given = behind, split.secondaries
    return found
