"""When jobs of users that wait are brokered anew, and when tasks are withheld from busy queues."""

from __future__ import annotations

import pytest

from brokerage.rules.dispatch.idle_jobs import why_anew
from brokerage.rules.dispatch.withholding import QueueAtData, io_limit, withheld

HOUR = 3600.0
REBROKER = {"ANALY_TIMEOUT": 12 * HOUR, "ANALY_TIMEOUT_HIGG": 4 * HOUR, "ANALY_TIMEOUT_<group>": None, "ANALY_QUIET": 3 * HOUR}


@pytest.mark.parametrize(
    ("hours", "moved", "status", "group", "anew"),
    [
        (12.0, False, "online", "", False),
        (12.1, False, "online", "", True),
        (12.1, True, "online", "", False),
        (12.1, False, "brokeroff", "OTHER", True),
        (4.1, False, "online", "OTHER", False),
        (4.1, False, "online", "HIGG", True),
        (3.1, True, "offline", "", True),
        (3.1, True, "test", "", True),
        (3.0, False, "offline", "", False),
    ],
)
def test_jobs_go_elsewhere_after_their_time_and_where_nothing_moves(
    hours: float, moved: bool, status: str, group: str, anew: bool
) -> None:
    assert bool(why_anew(hours * HOUR, moved, "Q", status, group, REBROKER)) == anew


BROKER = {"NQUEUELIMITSITE": 20, "NQUEUELIMITSITE_<gshare>": None, "NQUEUELIMITSITE_MC": 5}


def queue(name: str, queued: int = 0, running: int = 0, status: str = "online", reads: str = "A") -> QueueAtData:
    return QueueAtData(name, status, {reads}, queued, running)


@pytest.mark.parametrize(
    ("queues", "share", "held"),
    [
        ([queue("Q", 20)], "", False),
        ([queue("Q", 21)], "", True),
        ([queue("Q", 21, 11)], "", False),
        ([queue("Q", 6)], "MC", True),
        ([queue("Q", status="offline")], "", True),
        ([queue("Q", 99), queue("P")], "", False),
        ([queue("Q", 99), queue("P", reads="B")], "", True),
        ([queue("P", reads="B")], "", False),
        ([], "", False),
    ],
)
def test_a_task_is_withheld_while_no_queue_that_reads_its_input_is_free(
    queues: list[QueueAtData], share: str, held: bool
) -> None:
    assert bool(withheld([{"A"}], queues, share, BROKER)) == held


def test_all_datasets_must_be_readable_and_the_reason_names_the_queues() -> None:
    both = QueueAtData("BOTH", "offline", {"A", "B"})
    assert withheld([{"A"}, {"B", "C"}], [queue("Q", 99), both], "", BROKER) == (
        "its input is only at queues that are busy or take no jobs: BOTH"
    )
    assert withheld([], [both], "", BROKER) == ""
    busy = [queue(f"Q{i}", 99) for i in range(5)]
    assert withheld([{"A"}], busy, "", BROKER).endswith(": Q0, Q1, Q2 ...")


def test_tasks_with_little_io_are_never_withheld() -> None:
    assert io_limit("user", {"LIMIT_IOINTENSITY_<label>": 100.0, "LIMIT_IOINTENSITY_user": 10.0}) == 100.0
    assert io_limit("user", {"LIMIT_IOINTENSITY_<label>": 100.0, "LIMIT_IOINTENSITY_user": 500.0}) == 500.0
