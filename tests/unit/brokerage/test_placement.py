"""How the jobs of a task spread over the chosen queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from broker_site.foundation.kernel.dice import dice
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.placement.distribution import ChosenQueue, Layout, block_of, draw, lay_out
from tests.unit.brokerage.grids import CONFIG
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.job_size import Budget
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.choice import SPLITTERS, splitter_name
from workqueues.splitters.protocol import Files, JobLimits, Secondary, Split


def test_jobs_spread_in_proportion_to_the_weights() -> None:
    counts: Counter[str] = Counter()
    for seed in range(400):
        drawn = draw([ChosenQueue("A", 3.0), ChosenQueue("B", 1.0), ChosenQueue("C", 0.0)], dice(seed))
        assert drawn is not None
        counts[drawn.name] += 1
    assert counts["A"] == pytest.approx(300, abs=30)
    assert counts["C"] == 0


def laid(places: list[ChosenQueue], n_files: int = 100, most: int = 50, block: int = 25, seed: object = 1, **more: Any) -> Layout:
    """Files of 1 GB and 100 events, two a job unless `rules` or `limits_at` say otherwise."""
    files = Files(list(range(n_files)), [10**9] * n_files, [100] * n_files, complete=True)
    limits_at = more.get("limits_at") or (lambda _: JobLimits())
    rules = more.get("rules") or SplitRules(files_per_job=2)

    def cut(part: Files, limits: JobLimits, upto: int, others: Sequence[Secondary]) -> Split:
        return SPLITTERS[splitter_name("input", rules)].cut(part, rules, limits, upto, others)

    failed_at = more.get("failed_at", {})
    return lay_out(files, more.get("secondaries", ()), cut, limits_at, places, most, block, dice("task", seed), 3, failed_at)


def counts(layout: Layout) -> list[tuple[str, int]]:
    return [(block.queue, len(block.jobs)) for block in layout.blocks]


def test_each_block_lowers_the_weight_so_that_all_queues_get_work() -> None:
    assert ChosenQueue("A", 6.0, queued=1).filled(2) == ChosenQueue("A", 3.0, queued=3)
    blocks = counts(laid([ChosenQueue("A", 5.0, 1), ChosenQueue("B", 2.0, 1), ChosenQueue("C", 1.0, 1)], most=40, block=2))
    assert sum(jobs for _, jobs in blocks) == 40
    assert {name for name, _ in blocks} == {"A", "B", "C"}


def test_the_same_seed_gives_the_same_blocks() -> None:
    places = [ChosenQueue("A", 5.0, 1), ChosenQueue("B", 2.0, 1)]
    assert laid(places, block=3, seed=3) == laid(places, block=3, seed=3)
    assert len({tuple(counts(laid(places, block=3, seed=n))) for n in range(20)}) > 1


def test_full_queues_are_passed_over() -> None:
    full, roomy = ChosenQueue("A", 9.0, queued=20, room=0), ChosenQueue("B", 1.0)
    assert draw([full, roomy], dice(1)) == roomy
    assert draw([full], dice(1)) is None


def test_the_last_queues_get_jobs_only_when_the_others_have_no_more_room() -> None:
    first, last = ChosenQueue("A", 0.1, room=3), ChosenQueue("B", 9.0, room=2, last=True)
    assert counts(laid([first, last], block=2)) == [("A", 2), ("A", 1), ("B", 2)]
    assert draw([first.filled(3), last], dice(1)) == last


def test_a_block_is_no_larger_than_the_room_of_its_queue() -> None:
    assert counts(laid([ChosenQueue("A", 1.0, queued=18, room=2)])) == [("A", 2)]
    blocks = counts(laid([ChosenQueue("one slot", 50.0, room=1), ChosenQueue("ten slots", 1.0, room=10)]))
    assert sorted(blocks) == [("one slot", 1), ("ten slots", 10)]


def test_only_queues_without_any_job_get_one_each_before_the_others() -> None:
    """Defect E5: a queue of little weight with no job queued came before one of much weight for every job of a small task."""
    light = [ChosenQueue(f"light{n}", 0.05) for n in range(9)]
    blocks = [counts(laid([ChosenQueue("heavy", 2100.0, 1), *light], most=5, seed=seed)) for seed in range(50)]
    assert sum(jobs for each in blocks for name, jobs in each if name == "heavy") > 240
    untouched = [ChosenQueue("idle", 0.1, untouched=True), ChosenQueue("calm", 0.1, untouched=True)]
    assert sorted(counts(laid([ChosenQueue("busy", 9.0, queued=5), *untouched]))[:2]) == [("calm", 1), ("idle", 1)]


def test_what_failed_at_a_queue_goes_to_another_one_where_one_has_room() -> None:
    failed_at = {i: "ABC"[i % 5] for i in range(100) if i % 5 < 3}
    one_file = SplitRules(files_per_job=1)
    for seed in range(20):
        places = [ChosenQueue("A", 9.0, 3), ChosenQueue("B", 1.0), ChosenQueue("C", 1.0, 1)]
        layout = laid(places, most=100, rules=one_file, seed=seed, failed_at=failed_at)
        jobs = [(block.queue, job.start) for block in layout.blocks for job in block.jobs]
        assert [start for _, start in jobs] == list(range(100))
        assert [start for queue, start in jobs if failed_at.get(start) == queue] == []
    alone = laid([ChosenQueue("A", 9.0, 3)], most=100, rules=one_file, failed_at=failed_at)
    assert sum(jobs for _, jobs in counts(alone)) == 100


def test_every_file_is_in_one_job_in_order_whatever_the_limits_of_the_queues() -> None:
    disk = {"small": 3.5e9, "large": 7.5e9}
    layout = laid(
        [ChosenQueue("small", 1.0, 1), ChosenQueue("large", 1.0, 1)],
        rules=SplitRules(),
        limits_at=lambda name: JobLimits(budgets=(Budget(1.0, 0.0, disk[name], hard=True),)),
    )
    ends = [(block.queue, job.start, job.stop, job.size) for block in layout.blocks for job in block.jobs]
    assert [start for _, start, _, _ in ends] == [0, *(stop for _, _, stop, _ in ends[:-1])]
    assert ends[-1][2] == 100
    assert all(size <= disk[name] for name, _, _, size in ends)
    assert {size // 10**9 for name, *_, size in ends[:-1] if name == "large"} == {7}


def test_a_queue_where_not_even_the_smallest_job_fits_gets_none() -> None:
    disk = {"tiny": 0.5e9, "large": 7.5e9}
    layout = laid(
        [ChosenQueue("tiny", 100.0, 1), ChosenQueue("large", 1.0, 1)],
        limits_at=lambda name: JobLimits(budgets=(Budget(1.0, 0.0, disk[name], hard=True),)),
    )
    assert {block.queue for block in layout.blocks} == {"large"}
    nowhere = laid([ChosenQueue("tiny", 1.0)], limits_at=lambda _: JobLimits(budgets=(Budget(1.0, 0.0, 1.0, hard=True),)))
    assert not nowhere.blocks
    assert nowhere.reason


def test_events_are_cut_across_blocks_without_a_gap() -> None:
    layout = laid(
        [ChosenQueue("A", 1.0), ChosenQueue("B", 1.0)], n_files=10, most=100, block=3, rules=SplitRules(events_per_job=70)
    )
    jobs = [job for block in layout.blocks for job in block.jobs]
    begins = [100 * job.start + job.skip for job in jobs]
    assert begins == [70 * n for n in range(15)]
    assert [job.n_events for job in jobs] == [70] * 14 + [20]
    assert all(100 * (job.stop - 1) + (job.upto or 100) == b + job.n_events for job, b in zip(jobs, begins, strict=True))


def test_blocks_of_scouts_are_small() -> None:
    assert [block_of(kind, CONFIG) for kind in (JobKind.SCOUT, JobKind.NORMAL, JobKind.MERGE)] == [2, 25, 25]


def test_jobs_that_all_read_very_many_files_are_made_a_part_at_a_time() -> None:
    background = Secondary(read_attributes("nosplit"), Files(list(range(900)), [1] * 900, [1] * 900))
    layout = laid(
        [ChosenQueue("A", 1.0, 1)], n_files=5000, most=5000, rules=SplitRules(files_per_job=1), secondaries=(background,)
    )
    uses = sum(1 + job.others[0].n for block in layout.blocks for job in block.jobs)
    assert 500_000 <= uses < 530_000
