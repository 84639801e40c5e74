"""How many jobs of a share leave a queue where far more wait than run."""

from __future__ import annotations

from typing import Any

import pytest

from broker_site.foundation.gdpconfig.values import Config
from brokerage.config_keys import SERVER
from brokerage.rules.dispatch.fast_rebrokerage import ShareAtQueue, Thresholds, jobs_to_move, moves, thresholds

OVER = Thresholds(3, 0.3, 200)
MC = {("demo", "MC"): OVER}


@pytest.mark.parametrize(
    ("queued", "running", "total", "n"),
    [
        (400, 100, 1000, 100),
        (300, 100, 900, 0),
        (301, 100, 1000, 1),
        (400, 0, 1000, 100),
        (400, 0, 400, 200),
        (200, 0, 400, 0),
        (201, 0, 201, 1),
        (400, 100, 1333, 1),
        (400, 10, 1334, 0),
        (350, 10, 1001, 50),
        (1000, 10, 2001, 400),
        (1000, 0, 2999, 101),
    ],
)
def test_so_many_leave_as_are_above_all_three_thresholds(queued: int, running: int, total: int, n: int) -> None:
    assert jobs_to_move(queued, running, total, OVER) == n


def test_a_part_is_taken_as_it_is_written() -> None:
    """0.1 x 30 is 3.0000000000000004 for a computer that counts in binary: one job would stay that is above the threshold."""
    assert jobs_to_move(10, 0, 30, Thresholds(3, 0.1, 1)) == 7
    assert jobs_to_move(3, 0, 30, Thresholds(3, 0.1, 1)) == 0


def test_nothing_leaves_without_a_threshold_of_the_share_or_where_slots_are_declared() -> None:
    assert jobs_to_move(4000, 0, 4000, Thresholds(3, 0.3)) == 0
    assert jobs_to_move(4000, 0, 4000, Thresholds(3, 0.3, 0)) == 0
    assert jobs_to_move(4000, 0, 4000, OVER, has_slots=True) == 0


def at(queue_id: int, queued: int, running: int = 0, **more: Any) -> ShareAtQueue:
    return ShareAtQueue(queue_id, f"Q{queue_id}", "demo", "MC", queued, running, **more)


def test_a_share_is_judged_at_each_queue_against_all_that_waits_of_it() -> None:
    found = moves([at(1, 400, 100), at(2, 600, 50), at(3, 1000, 400)], MC)
    assert [(move.queue_id, move.n) for move in found] == []
    found = moves([at(1, 400, 100), at(2, 600, 50)], MC)
    assert [(move.queue_id, move.n) for move in found] == [(1, 100), (2, 300)]
    assert found[0].why == (
        "fast rebrokerage: 400 jobs of share MC waited at Q1 where 100 ran, of 1000 in all; more than 3 x 100, 0.3 x 1000 and 200"
    )


def test_queues_with_declared_slots_do_not_count_and_suspended_ones_do_but_keep_their_jobs() -> None:
    found = moves([at(1, 400), at(2, 3000, has_slots=True), at(3, 500, suspended=True)], MC)
    assert [(move.queue_id, move.n) for move in found] == [(1, 130)]


def test_thresholds_come_from_the_configuration_and_zero_there_means_the_default() -> None:
    config = dict(Config().component("rebroker", app=SERVER))
    assert thresholds("MC 16", config) == Thresholds(3, 0.3, None)
    assert thresholds("MC 16", {**config, "FAST_REBRO_THRESHOLD_NQUEUE_MC 16": 7}) == Thresholds(3, 0.3, 7)
