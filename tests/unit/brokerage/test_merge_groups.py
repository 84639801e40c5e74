"""Which files a merge job gets, and what it asks of a slot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.placement.merge_groups import (
    MOST_FILES_IN_ALL,
    MergeLimits,
    PremergedFile,
    PremergedJob,
    merge_groups,
    merge_slot,
    scratch_mb,
)
from workqueues.rules.jobs.split_rule import parse

GB = 10**9


def job(id_: int, size: int = 1000, events: int = 10, streams: tuple[str, ...] = ("OUTPUT0", "LOG0")) -> PremergedJob:
    files = [PremergedFile(100 * id_ + i, i, stream, f"{stream}.{id_}", size, events) for i, stream in enumerate(streams)]
    return PremergedJob(id_, files)


def ids(groups: list[list[PremergedJob]]) -> list[list[int]]:
    return [[one.id for one in group] for group in groups]


@pytest.mark.parametrize(
    ("rule", "jobs", "expected"),
    [
        ("MO=1", [job(i) for i in range(120)], [50, 50, 20]),
        ("MO=1,ZF=2", [job(i) for i in range(5)], [2, 2, 1]),
        ("MO=1,ZF=80", [job(i) for i in range(100)], [80, 20]),
        ("MO=1,ZM=3", [job(i) for i in range(7)], [3, 3, 1]),
        ("MO=1,ZE=25", [job(i) for i in range(5)], [2, 2, 1]),
        ("MO=1,ZE=5", [job(i) for i in range(2)], [1, 1]),
        ("MO=1,ZG=1", [job(i, size=4 * GB // 10) for i in range(5)], [2, 2, 1]),
        ("MO=1", [job(i, size=2 * GB) for i in range(5)], [2, 2, 1]),
        ("MO=1", [job(1, size=9 * GB), job(2)], [1, 1]),
        ("MO=1", [], []),
    ],
)
def test_limits_close_a_merge_job(rule: str, jobs: list[PremergedJob], expected: list[int]) -> None:
    assert [len(group) for group in merge_groups(jobs, MergeLimits.of(parse(rule), 0))] == expected


def test_the_largest_output_counts_not_the_sum_of_all() -> None:
    jobs = [job(i, size=GB, streams=("OUTPUT0", "OUTPUT1", "OUTPUT2", "LOG0")) for i in range(5)]
    assert len(merge_groups(jobs, MergeLimits())) == 1


def test_scratch_space_of_the_queue_binds() -> None:
    jobs = [job(i, size=GB, streams=("OUTPUT0",)) for i in range(4)]
    assert ids(merge_groups(jobs, MergeLimits(disk_mb=5000))) == [[0, 1], [2, 3]]


JOBS = st.lists(
    st.tuples(st.integers(0, 6 * GB), st.integers(0, 100), st.integers(1, 4)).map(
        lambda drawn: (drawn[0], drawn[1], tuple(f"OUTPUT{i}" for i in range(drawn[2])))
    ),
    max_size=60,
)


@given(JOBS, st.integers(1, 60), st.integers(1, 10), st.none() | st.integers(1, 500))
def test_every_job_is_merged_once_whole_in_order_and_within_the_limits(
    drawn: list[tuple[int, int, tuple[str, ...]]], files: int, gb: int, events: int | None
) -> None:
    jobs = [job(i, size, n, streams) for i, (size, n, streams) in enumerate(drawn)]
    limits = MergeLimits(files, gb * GB, events)
    groups = merge_groups(jobs, limits)
    assert [one for group in groups for one in group] == jobs
    for group in groups:
        if len(group) == 1:
            continue
        of_stream = [file for one in group for file in one.files]
        for stream in {file.stream for file in of_stream}:
            mine = [file for file in of_stream if file.stream == stream]
            assert len(mine) <= files
            assert sum(file.size for file in mine) <= gb * GB
        assert events is None or sum(max(file.n_events for file in one.files) for one in group) <= events
        assert len(of_stream) <= MOST_FILES_IN_ALL


@pytest.mark.parametrize(
    ("cores", "ram", "maxrss", "expected"),
    [(0, 0, 0.0, (1, 2000)), (0, 0, 1000.0, (1, 1000)), (4, 3000, 8000.0, (4, 3000)), (0, 500, 8000.0, (1, 2000))],
)
def test_a_merge_job_asks_for_one_core_and_2000_mb_unless_the_task_says_more(
    cores: int, ram: int, maxrss: float, expected: tuple[int, int]
) -> None:
    slot = merge_slot(10**9, cores=cores, ram_mb=ram, maxrss=maxrss, maxwdir=0)
    assert (slot.core_count, slot.ram_mb) == expected
    assert slot.disk_mb >= scratch_mb(10**9)
    assert slot.walltime_s == 0
