"""How files become jobs: whole jobs, the last smaller one, limits, and that no file is forgotten or used twice."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.jobs.job_size import Budget, job_size_gb, size_budgets
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.by_files import by_files, pseudo
from workqueues.splitters.choice import splitter_name
from workqueues.splitters.protocol import Files, JobLimits, JobPlan

ANYWHERE = JobLimits()


def most_bytes(n: int, max_files: int = 200) -> JobLimits:
    """A limit of bytes."""
    return JobLimits(max_files, budgets=(Budget(1, 0, n),))


def sizes_of(files: Files, rules: SplitRules, limits: JobLimits = ANYWHERE, most: int | None = None) -> list[int]:
    return [job.n_files for job in by_files(files, rules, limits, most)]


@pytest.mark.parametrize(
    ("n", "complete", "jobs", "left"),
    [
        (6, True, [2, 2, 2], 0),
        (7, True, [2, 2, 2, 1], 0),
        (7, False, [2, 2, 2], 1),
        (1, False, [], 1),
        (0, True, [], 0),
        (0, False, [], 0),
    ],
)
def test_two_files_a_job(n: int, complete: bool, jobs: list[int], left: int) -> None:
    split = by_files(Files(range(n), complete=complete), SplitRules(files_per_job=2), ANYWHERE)
    assert ([job.n_files for job in split], split.left) == (jobs, left)
    assert bool(split.reason) == bool(left)


def test_without_a_number_the_ceilings_hold() -> None:
    assert sizes_of(Files(range(450)), SplitRules()) == [200, 200, 50]
    assert sizes_of(Files(range(450)), SplitRules(max_files_per_job=300)) == [300, 150]
    assert sizes_of(Files(range(450)), SplitRules(), JobLimits(max_files=400)) == [400, 50]


def test_bytes_bound_a_job_but_one_file_always_goes() -> None:
    files = Files(range(6), sizes=[3, 3, 3, 9, 1, 1])
    assert sizes_of(files, SplitRules(), most_bytes(6)) == [2, 1, 1, 2]


def test_the_number_of_files_that_the_task_sets_replaces_the_queues_and_is_cut_by_bytes() -> None:
    files = Files(range(4), sizes=[9, 9, 9, 9])
    assert sizes_of(files, SplitRules(files_per_job=2), JobLimits(max_files=1)) == [2, 2]
    assert sizes_of(files, SplitRules(files_per_job=2), most_bytes(10)) == [1, 1, 1, 1]


def test_events_cost_too_and_all_budgets_bind_together() -> None:
    files = Files(range(6), sizes=[1] * 6, n_events=[10, 10, 30, 10, 10, 10])
    events = Budget(0, 1, 30)
    assert sizes_of(files, SplitRules(), JobLimits(budgets=(events,))) == [2, 1, 3]
    assert sizes_of(files, SplitRules(), JobLimits(budgets=(events, Budget(1, 0, 2)))) == [2, 1, 2, 1]


def test_less_than_is_less_than() -> None:
    files = Files(range(4), sizes=[5] * 4)
    assert sizes_of(files, SplitRules(), most_bytes(10)) == [2, 2]
    assert sizes_of(files, SplitRules(), JobLimits(budgets=(Budget(1, 0, 10, below=True),))) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("sizes", "complete", "jobs", "left"),
    [([2, 2, 2], False, [2], 1), ([2, 2, 2], True, [2, 1], 0), ([2, 2, 5], False, [2, 1], 0), ([5], False, [1], 0)],
)
def test_a_last_job_that_has_room_waits_for_more(sizes: list[int], complete: bool, jobs: list[int], left: int) -> None:
    split = by_files(Files(range(len(sizes)), sizes=sizes, complete=complete), SplitRules(), most_bytes(4))
    assert ([job.n_files for job in split], split.left) == (jobs, left)


def test_no_more_jobs_than_asked_for() -> None:
    split = by_files(Files(range(100)), SplitRules(files_per_job=3), ANYWHERE, most=4)
    assert (len(split.jobs), split.left) == (4, 88)


def test_a_job_knows_its_events_and_bytes() -> None:
    files = Files(range(3), sizes=[10, 20, 30], n_events=[1, 2, 3])
    assert by_files(files, SplitRules(files_per_job=2), ANYWHERE).jobs == (JobPlan(0, 2, 3, 30), JobPlan(2, 3, 3, 30))


def test_records_give_one_job_each() -> None:
    split = pseudo(Files([5, 6, 7], n_events=[250, 250, 100]), SplitRules(events_per_job=250), JobLimits(max_files=1), most=2)
    assert split.jobs == (JobPlan(0, 1, 250), JobPlan(1, 2, 250))
    assert split.left == 1
    assert pseudo(Files([5]), SplitRules(events_per_job=250), ANYWHERE).jobs == (JobPlan(0, 1, 250),)


def test_each_kind_of_master_has_its_splitter() -> None:
    assert splitter_name("input") == "by_files"
    assert splitter_name("pseudo_input") == "pseudo"
    assert splitter_name("input", SplitRules(events_per_job=10)) == "by_events"
    assert splitter_name("input", SplitRules(target_events=10)) == "by_events"
    assert splitter_name("input", SplitRules(events_per_job=10, boundary=4)) == "by_files"
    with pytest.raises(ValueError, match="no master"):
        splitter_name("output")


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        Files([1, 2], sizes=[1])


@given(
    sizes=st.lists(st.integers(0, 50), max_size=60),
    per_job=st.none() | st.integers(1, 10),
    most_files=st.none() | st.integers(1, 10),
    max_bytes=st.none() | st.integers(1, 100),
    complete=st.booleans(),
    most=st.none() | st.integers(0, 10),
)
def test_every_file_is_in_one_job_or_left_with_a_reason(
    sizes: list[int], per_job: int | None, most_files: int | None, max_bytes: int | None, complete: bool, most: int | None
) -> None:
    files = Files(range(len(sizes)), sizes=sizes, n_events=sizes, complete=complete)
    rules = SplitRules(files_per_job=per_job, max_files_per_job=most_files)
    limits = JobLimits(7) if max_bytes is None else most_bytes(max_bytes, 7)
    split = by_files(files, rules, limits, most)
    assert split == by_files(files, rules, limits, most)
    positions = [i for job in split for i in range(job.start, job.stop)]
    assert positions == list(range(len(sizes) - split.left))
    assert split.left == 0 or split.reason
    assert most is None or len(split.jobs) <= most
    ceiling = per_job or most_files or 7
    for job in split:
        assert 1 <= job.n_files <= ceiling
        assert job.size == job.n_events == sum(sizes[job.start : job.stop])
        assert max_bytes is None or job.n_files == 1 or job.size <= max_bytes
    if per_job and not complete and max_bytes is None:
        assert all(job.n_files == per_job for job in split)
    if complete and most is None:
        assert split.left == 0


@given(
    st.lists(st.integers(1, 40), max_size=30),
    st.integers(3, 60),
    st.sampled_from([0.0, 0.1, 0.5, 2.0]),
    st.sampled_from([0.0, 0.5, 4.0]),
)
def test_jobs_by_size_are_as_large_as_they_may_be(tenths: list[int], most: int, ratio: float, work: float) -> None:
    files = Files(range(len(tenths)), sizes=[n * 10**8 for n in tenths])
    split = by_files(files, SplitRules(), JobLimits(budgets=tuple(size_budgets(most, ratio, 0.0, work))))
    assert sum(job.n_files for job in split) == len(tenths)
    for job in split:
        assert job.n_files == 1 or job_size_gb(job.size / 1e9, ratio, work) < most + 1e-9
    for job, behind in pairwise(split):
        more = (job.size + files.sizes[behind.start]) / 1e9
        assert job_size_gb(more, ratio, work) >= most - 1e-9


def test_a_million_files_are_split() -> None:
    files = Files(range(1_000_000), sizes=[10**9] * 1_000_000, n_events=[1000] * 1_000_000)
    split = by_files(files, SplitRules(files_per_job=5), ANYWHERE)
    assert len(split.jobs) == 200_000
    assert sum(job.n_files for job in split) == 1_000_000
