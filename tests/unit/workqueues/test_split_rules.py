"""What users get for each rule of splitting: events, boundaries, secondary datasets, and limits that queues set."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.job_size import Budget, disk_budgets, walltime_budget
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.by_events import by_events
from workqueues.splitters.by_files import by_files, pseudo
from workqueues.splitters.protocol import Files, JobLimits, Portion, Secondary, Split
from workqueues.splitters.secondaries import scaled

ANYWHERE = JobLimits()


def whole(*events: int, complete: bool = True) -> Files:
    """Whole files with so many events."""
    return Files(range(len(events)), n_events=events, firsts=[0] * len(events), totals=events, complete=complete)


def ranges(split: Split, files: Files) -> list[list[tuple[int, int, int]]]:
    """File, first and last event of everything that each job takes."""
    found = []
    for job in split:
        stops = [files.firsts[i] + files.n_events[i] for i in range(job.start, job.stop)]
        if job.upto:
            stops[-1] = files.firsts[job.stop - 1] + job.upto
        starts = [files.firsts[i] + (job.skip if i == job.start else 0) for i in range(job.start, job.stop)]
        found.append([(files.ids[job.start + k], first, stops[k] - 1) for k, first in enumerate(starts)])
    return found


def test_events_are_cut_across_the_ends_of_files() -> None:
    files = whole(150, 150, 100)
    split = by_events(files, SplitRules(events_per_job=100), ANYWHERE)
    assert ranges(split, files) == [[(0, 0, 99)], [(0, 100, 149), (1, 0, 49)], [(1, 50, 149)], [(2, 0, 99)]]
    assert [job.n_events for job in split] == [100] * 4


def test_a_job_has_neighbouring_events_only() -> None:
    files = Files([0, 1, 1, 2], n_events=[150, 30, 50, 100], firsts=[0, 0, 100, 0], totals=[150, 150, 150, 100])
    split = by_events(files, SplitRules(events_per_job=100), ANYWHERE)
    assert ranges(split, files) == [[(0, 0, 99)], [(0, 100, 149), (1, 0, 29)], [(1, 100, 149), (2, 0, 49)], [(2, 50, 99)]]
    behind_a_gap = Files([0, 1], n_events=[40, 50], firsts=[0, 10], totals=[50, 60])
    assert ranges(by_events(behind_a_gap, SplitRules(events_per_job=100), ANYWHERE), behind_a_gap) == [
        [(0, 0, 39)],
        [(1, 10, 59)],
    ]


def test_the_last_events_wait_for_more_while_files_may_come() -> None:
    split = by_events(whole(150, complete=False), SplitRules(events_per_job=100), ANYWHERE)
    assert (len(split.jobs), split.left, split.skip) == (1, 1, 100)
    assert "100 events" in split.reason


def test_cutting_goes_on_where_it_stopped() -> None:
    files = whole(250, 250)
    first = by_events(files, SplitRules(events_per_job=100), ANYWHERE, most=3)
    at = len(files) - first.left
    rest = files.window(at, 2, first.skip)
    assert (at, first.skip, rest.firsts, rest.n_events) == (1, 50, [50], [200])
    assert ranges(by_events(rest, SplitRules(events_per_job=100), ANYWHERE), rest) == [[(1, 50, 149)], [(1, 150, 249)]]


def test_files_bound_a_job_of_events() -> None:
    files = whole(40, 40, 40, 40)
    assert [job.n_events for job in by_events(files, SplitRules(events_per_job=100, files_per_job=2), ANYWHERE)] == [80, 80]
    assert [job.n_events for job in by_events(files, SplitRules(events_per_job=100), JobLimits(max_files=1))] == [40] * 4


def test_where_a_limit_binds_a_job_ends_at_the_end_of_a_file() -> None:
    limits = JobLimits(budgets=(Budget(0, 1, 70),))
    files = whole(150, 60)
    split = by_events(files, SplitRules(events_per_job=100), limits)
    assert ranges(split, files) == [[(0, 0, 99)], [(0, 100, 149)], [(1, 0, 59)]]
    small = by_events(whole(30, 3, 30), SplitRules(events_per_job=20), JobLimits(budgets=(Budget(0, 1, 15),)))
    assert [job.n_events for job in small] == [20, 13, 20, 10]


@pytest.mark.parametrize(
    ("n", "target", "sizes"), [(250, 100, [84, 84, 82]), (100, 100, [100]), (101, 100, [51, 50]), (5, 100, [5])]
)
def test_files_are_cut_into_even_parts_of_the_wanted_size(n: int, target: int, sizes: list[int]) -> None:
    split = by_events(whole(n, n, complete=False), SplitRules(target_events=target), ANYWHERE)
    assert [job.n_events for job in split] == sizes * 2


def test_the_rest_of_a_file_is_cut_as_the_file_was() -> None:
    files = Files([0], n_events=[84], firsts=[84], totals=[250])
    assert [job.n_events for job in by_events(files, SplitRules(target_events=100), ANYWHERE)] == [84]


def test_files_of_unknown_events_are_cut_by_files() -> None:
    files = whole(150, 0, 0, 0, 50)
    split = by_events(files, SplitRules(events_per_job=100, files_per_job=2), ANYWHERE)
    assert [(job.start, job.stop, job.n_events) for job in split] == [(0, 1, 100), (0, 1, 50), (1, 3, 0), (3, 4, 0), (4, 5, 50)]


def test_jobs_with_less_than_asked_for_are_dropped_where_the_task_says_so() -> None:
    split = by_events(whole(150, 30), SplitRules(events_per_job=100, skip_short_output=True), ANYWHERE)
    assert [job.n_events for job in split] == [100]
    assert [each[:3] for each in split.dropped] == [(0, 100, 0), (1, 0, 0)]
    assert "80 events" in split.dropped[0].reason
    files = by_files(Files(range(5)), SplitRules(files_per_job=2, skip_short_output=True), ANYWHERE)
    assert (len(files.jobs), files.left, [each.position for each in files.dropped]) == (2, 0, [4])


def test_a_job_that_only_this_queue_makes_short_is_not_dropped() -> None:
    limits = JobLimits(budgets=(Budget(0, 1, 80, hard=True),))
    split = by_events(whole(60, 60), SplitRules(events_per_job=100, skip_short_output=True), limits)
    assert (split.jobs, split.dropped, split.left, split.unfit) == ((), (), 2, True)


def test_a_job_keeps_within_one_lumi_block() -> None:
    files = Files(range(5), n_events=[40] * 5, firsts=[0] * 5, totals=[40] * 5, lumi_blocks=[1, 1, 1, 2, 2])
    assert [job.n_files for job in by_files(files, SplitRules(files_per_job=2, respect_lb=True), ANYWHERE)] == [2, 1, 2]
    assert [job.n_events for job in by_events(files, SplitRules(events_per_job=100, respect_lb=True), ANYWHERE)] == [100, 20, 80]


BOUNDARIES = [1, 1, 1, 2, 2, 3, None, None]


@pytest.mark.parametrize(
    ("mode", "limit", "jobs"),
    [
        (1, 2, [2, 1, 2, 1, 2]),
        (2, 2, [2, 1, 2, 1, 2]),
        (3, 5, [5, 3]),
        (3, 2, [3, 2, 2, 1]),
        (4, 5, [3, 2, 1, 2]),
        (4, 1, [3, 2, 1, 1, 1]),
    ],
)
def test_files_of_a_boundary(mode: int, limit: int, jobs: list[int]) -> None:
    files = Files(range(8), boundaries=BOUNDARIES)
    assert [job.n_files for job in by_files(files, SplitRules(boundary=mode), JobLimits(limit))] == jobs


def test_a_boundary_that_is_not_split_waits_until_its_files_are_there() -> None:
    files = Files(range(5), boundaries=[1, 1, 1, 2, 2], complete=False)
    split = by_files(files, SplitRules(boundary=4), ANYWHERE)
    assert ([job.n_files for job in split], split.left) == ([3], 2)


def test_hard_limits_hold_also_for_a_boundary_that_is_not_split() -> None:
    files = Files(range(3), sizes=[5] * 3, boundaries=[1, 1, 1])
    soft, hard = (JobLimits(budgets=(Budget(1, 0, 10, hard=hard),)) for hard in (False, True))
    assert [job.n_files for job in by_files(files, SplitRules(boundary=4), soft)] == [3]
    split = by_files(files, SplitRules(boundary=4), hard)
    assert (split.jobs, split.unfit) == ((), True)


def test_no_job_breaks_a_limit_of_the_queue() -> None:
    files = Files(range(4), sizes=[3, 3, 9, 1])
    split = by_files(files, SplitRules(), JobLimits(budgets=(Budget(1, 0, 6, hard=True, what="scratch disk"),)))
    assert ([job.n_files for job in split], split.left, split.unfit) == ([2], 2, True)
    assert "scratch disk" in split.reason


def test_scratch_disk_of_a_queue() -> None:
    files = Files(range(4), sizes=[10**9] * 4)
    copied = JobLimits(budgets=tuple(disk_budgets(4.0, 0.1, 0.0, 0.5, copies_input=True)))
    assert [job.n_files for job in by_files(files, SplitRules(), copied)] == [2, 2]
    read = JobLimits(budgets=tuple(disk_budgets(1.1, 0.3, 0.0, 0.5, copies_input=False)))
    assert [job.n_files for job in by_files(files, SplitRules(), read)] == [1, 1, 1, 1]
    assert list(disk_budgets(0.0, 0.1, 0.0, 0.5, copies_input=True)) == []
    none = by_files(files, SplitRules(), JobLimits(budgets=tuple(disk_budgets(1.0, 0.0, 0.0, 0.5, copies_input=False))))
    assert none.unfit


def test_walltime_of_a_queue() -> None:
    budget = walltime_budget(90.0, 10.0, 90.0, 600.0, 1600.0)
    assert budget is not None
    assert (budget.per_event, budget.most, budget.hard) == (10.0, 1000.0, True)
    files = Files(range(4), n_events=[40] * 4)
    assert [job.n_events for job in by_files(files, SplitRules(), JobLimits(budgets=(budget,)))] == [80, 80]
    assert walltime_budget(90.0, 10.0, 0.0, 600.0, 1600.0) is None
    assert walltime_budget(90.0, 10.0, 90.0, 600.0, 0.0) is None
    assert walltime_budget(0.0, 10.0, 90.0, 600.0, 1600.0) is None


def test_what_is_equal_is_not_less() -> None:
    tenth = Budget(1.1, 0.0, 3.3e9, below=True)
    assert [job.n_files for job in by_files(Files(range(3), sizes=[10**9] * 3), SplitRules(), JobLimits(budgets=(tenth,)))] == [
        2,
        1,
    ]


@pytest.mark.parametrize(
    ("ratio", "n", "wanted"), [(2, 5, 10), (0.3, 5, 2), (0.3, 10, 3), (1.1, 10, 11), (0.1, 1, 1), (2.5, 1, 3)]
)
def test_a_ratio_is_taken_at_its_digits(ratio: float, n: int, wanted: int) -> None:
    assert scaled(ratio, n) == wanted


def portions(attributes: str, n: int, at: int = 0, jobs: int = 3, n_events: Sequence[int] = ()) -> list[Portion]:
    """What each of three jobs of two files of ten events takes of a dataset of `n` files."""
    master = Files(range(2 * jobs), sizes=[1] * 2 * jobs, n_events=[10] * 2 * jobs)
    other = Secondary(read_attributes(attributes), Files(range(n), n_events=n_events), at, "others")
    return [job.others[0] for job in by_files(master, SplitRules(files_per_job=2), ANYWHERE, None, [other])]


def test_secondaries_are_dealt_out() -> None:
    assert portions("", 10) == [(0, 2), (2, 2), (4, 2)]
    assert portions("ratio=1.5", 9) == [(0, 3), (3, 3), (6, 3)]
    assert portions("nosplit,repeat", 4) == [(0, 4)] * 3
    assert portions("repeat", 3, at=2) == [(2, 2), (1, 2), (0, 2)]
    assert portions("repeat,ratio=2", 3) == [(0, 3)] * 3
    assert portions("ru", 5) == [(0, 2), (2, 2), (0, 2)]
    assert portions("np=1", 5) == [(0, 1), (1, 1), (2, 1)]
    assert portions("er=0.5", 9, n_events=[4, 4, 4, 9, 1, 20, 1, 1, 1]) == [(0, 3), (3, 2), (5, 1)]


def test_a_job_is_not_made_where_a_secondary_is_short_and_its_name_is_told() -> None:
    other = Secondary(read_attributes(""), Files(range(3)), 0, "minbias")
    split = by_files(Files(range(6)), SplitRules(files_per_job=2), ANYWHERE, None, [other])
    assert (len(split.jobs), split.left, split.unfit, split.secondaries[0].at) == (1, 4, False, 2)
    assert split.reason == "minbias has 1 files left, the next job takes 2"


@pytest.mark.parametrize(
    ("events", "told"),
    [(10, "minbias has 4 events left, the next job takes 5"), (0, "minbias has 0 files left, the next job takes 1")],
)
def test_a_secondary_that_is_short_of_events_says_how_many_it_has_and_how_many_are_needed(events: int, told: str) -> None:
    """Of the smallest job, on one file. Events are what counts where those of the master are known; else files are."""
    n = 4 if events else 2
    other = Secondary(read_attributes("er=0.5"), Files(range(n), n_events=[4] * n), 0, "minbias")
    split = by_files(Files(range(4), n_events=[events] * 4), SplitRules(files_per_job=2), ANYWHERE, None, [other])
    assert (len(split.jobs), split.reason) == (1, told)


@pytest.mark.parametrize(("complete", "jobs"), [(True, [2, 1]), (False, [2])])
def test_where_no_size_is_asked_for_the_last_secondary_files_make_a_smaller_job(complete: bool, jobs: list[int]) -> None:
    other = Secondary(read_attributes(""), Files(range(3), complete=complete), 0, "minbias")
    split = by_files(Files(range(6)), SplitRules(max_files_per_job=2), ANYWHERE, None, [other])
    assert [job.n_files for job in split] == jobs
    assert "minbias" in split.reason


def test_records_of_a_task_without_input_have_secondaries_too() -> None:
    other = Secondary(read_attributes("ratio=2,repeat"), Files(range(3), sizes=[5] * 3))
    split = pseudo(Files(range(3)), SplitRules(events_per_job=10), ANYWHERE, None, [other])
    assert [(job.n_events, job.size, job.others[0]) for job in split] == [(10, 10, (0, 2)), (10, 10, (2, 2)), (10, 10, (1, 2))]
    small = JobLimits(budgets=(Budget(1, 0, 9, hard=True, what="scratch disk"),))
    assert pseudo(Files(range(3)), SplitRules(), small, None, [other]).unfit


def test_bytes_and_files_of_secondaries_count() -> None:
    master = Files(range(4), sizes=[1] * 4)
    other = Secondary(read_attributes("ratio=2,repeat"), Files(range(8), sizes=[2] * 8))
    by_bytes = by_files(master, SplitRules(), JobLimits(budgets=(Budget(1, 0, 10),)), None, [other])
    assert [(job.n_files, job.size) for job in by_bytes] == [(2, 10), (2, 10)]
    by_inputs = by_files(master, SplitRules(), JobLimits(max_inputs=9), None, [other])
    assert [job.n_files for job in by_inputs] == [3, 1]


def test_only_secondary_files_of_the_boundaries_of_a_job() -> None:
    master = Files(range(5), boundaries=[1, 1, 1, 2, 2])
    other = Secondary(read_attributes(""), Files(range(6), boundaries=[1, 1, 2, 2, 2, 9]))
    assert [job.others[0] for job in by_files(master, SplitRules(boundary=4), ANYWHERE, None, [other])] == [(0, 2), (2, 3)]
    halves = by_files(master, SplitRules(boundary=1, files_per_job=2), ANYWHERE, None, [other])
    assert [(job.n_files, job.others[0]) for job in halves] == [(2, (0, 2)), (1, (2, 0)), (2, (2, 2))]
    free = Secondary(read_attributes("repeat"), Files(range(6)))
    assert [job.others[0] for job in by_files(master, SplitRules(boundary=4), ANYWHERE, None, [free])] == [(0, 3), (3, 2)]
