"""How the jobs of a task spread over the chosen queues."""

from __future__ import annotations

from collections import Counter

import pytest

from broker_site.kernel.dice import dice
from brokerage.rules.placement import Place, block_of, draw, spread
from tests.unit.brokerage.grids import CONFIG


def test_jobs_spread_in_proportion_to_the_weights() -> None:
    counts: Counter[str] = Counter()
    for seed in range(400):
        drawn = draw([Place("A", 3.0), Place("B", 1.0), Place("C", 0.0)], dice(seed))
        assert drawn is not None
        counts[drawn.name] += 1
    assert counts["A"] == pytest.approx(300, abs=30)
    assert counts["C"] == 0


def test_each_block_lowers_the_weight_so_that_all_queues_get_work() -> None:
    assert Place("A", 6.0, queued=1).filled(2) == Place("A", 3.0, queued=3)
    blocks = spread([Place("A", 5.0), Place("B", 2.0), Place("C", 1.0)], 40, 2, dice("task", 1))
    assert sum(jobs for _, jobs in blocks) == 40
    assert {name for name, _ in blocks} == {"A", "B", "C"}


def test_the_same_seed_gives_the_same_blocks() -> None:
    places = [Place("A", 5.0), Place("B", 2.0)]
    assert spread(places, 50, 3, dice(7, 1)) == spread(places, 50, 3, dice(7, 1))
    assert len({tuple(spread(places, 50, 3, dice(7, n))) for n in range(20)}) > 1


def test_full_and_barred_queues_are_passed_over() -> None:
    full, roomy = Place("A", 9.0, queued=20, cap=20), Place("B", 1.0)
    assert draw([full, roomy], dice(1)) == roomy
    assert draw([full], dice(1)) is None
    assert draw([roomy], dice(1), barred="B") is None
    assert spread([Place("A", 1.0, queued=18, cap=20)], 50, 25, dice(1)) == [("A", 25)]


def test_blocks_of_scouts_are_small() -> None:
    assert (block_of(True, CONFIG), block_of(False, CONFIG)) == (2, 25)
