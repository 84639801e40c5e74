"""How files become jobs: whole jobs, the last smaller one, limits, and that no file is forgotten or used twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_site.kernel.registry import UnknownName
from workqueues.rules.split_rule import SplitRules
from workqueues.splitters.by_files import by_files
from workqueues.splitters.choice import splitter_for
from workqueues.splitters.protocol import Files, JobPlan, QueueLimits
from workqueues.splitters.pseudo import pseudo

ANYWHERE = QueueLimits()


def sizes_of(files: Files, rules: SplitRules, limits: QueueLimits = ANYWHERE, most: int | None = None) -> list[int]:
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
    assert sizes_of(Files(range(450)), SplitRules(), QueueLimits(max_files=400)) == [400, 50]


def test_bytes_bound_a_job_but_one_file_always_goes() -> None:
    files = Files(range(6), sizes=[3, 3, 3, 9, 1, 1])
    assert sizes_of(files, SplitRules(), QueueLimits(max_bytes=6)) == [2, 1, 1, 2]


def test_the_number_of_files_that_the_task_sets_is_kept() -> None:
    files = Files(range(4), sizes=[9, 9, 9, 9])
    assert sizes_of(files, SplitRules(files_per_job=2), QueueLimits(max_files=1, max_bytes=10)) == [2, 2]


def test_no_more_jobs_than_asked_for() -> None:
    split = by_files(Files(range(100)), SplitRules(files_per_job=3), ANYWHERE, most=4)
    assert (len(split.jobs), split.left) == (4, 88)


def test_a_job_knows_its_events_and_bytes() -> None:
    files = Files(range(3), sizes=[10, 20, 30], n_events=[1, 2, 3])
    assert by_files(files, SplitRules(files_per_job=2), ANYWHERE).jobs == (JobPlan(0, 2, 3, 30), JobPlan(2, 3, 3, 30))


def test_records_give_one_job_each() -> None:
    split = pseudo(Files([5, 6, 7], n_events=[250, 250, 100]), SplitRules(events_per_job=250), QueueLimits(max_files=1), most=2)
    assert split.jobs == (JobPlan(0, 1, 250), JobPlan(1, 2, 250))
    assert split.left == 1
    assert pseudo(Files([5]), SplitRules(events_per_job=250), ANYWHERE).jobs == (JobPlan(0, 1, 250),)


def test_each_kind_of_master_has_its_splitter() -> None:
    assert splitter_for("input") is by_files
    assert splitter_for("pseudo_input") is pseudo
    with pytest.raises(UnknownName):
        splitter_for("output")


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
    limits = QueueLimits(max_files=7, max_bytes=max_bytes)
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
        assert per_job or max_bytes is None or job.n_files == 1 or job.size <= max_bytes
    if per_job and not complete:
        assert all(job.n_files == per_job for job in split)
    if complete and most is None:
        assert split.left == 0


def test_a_million_files_are_split() -> None:
    files = Files(range(1_000_000), sizes=[10**9] * 1_000_000, n_events=[1000] * 1_000_000)
    split = by_files(files, SplitRules(files_per_job=5), ANYWHERE)
    assert len(split.jobs) == 200_000
    assert sum(job.n_files for job in split) == 1_000_000
