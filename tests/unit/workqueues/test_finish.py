"""When a task is through and how it ends: the two decision tables, line by line."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.task.finish import DatasetCounts, completeness, final_status, goal_reached, is_through, ready_to_finish


def master(n: int = 10, ok: int = 0, bad: int = 0, **more: Any) -> DatasetCounts:
    """A master input of `n` files, of which `ok` are finished and `bad` given up; all others unused unless said otherwise."""
    counts: dict[str, Any] = {
        "type": "input",
        "status": "ready",
        "n_files": n,
        "n_files_to_be_used": n,
        "n_files_used": ok + bad,
        "n_files_finished": ok,
        "n_files_failed": bad,
    }
    return DatasetCounts(**{**counts, **more})


OUTPUT = DatasetCounts("output", "running", n_files=5, n_files_to_be_used=5)
SECONDARY = master(10, type="random_seed", master=False)


@pytest.mark.parametrize(
    ("status", "datasets", "target"),
    [
        ("running", [master(10, 10)], "prepared"),
        ("running", [master(10, 7, 3)], "prepared"),
        ("running", [master(10, 0, 10)], "prepared"),
        ("running", [master(10, 7, 2, n_files_used=10)], None),
        ("running", [master(10, 10), master(5, 4)], None),
        ("running", [master(10, 10), master(5, 4, excluded=True)], "prepared"),
        ("running", [master(10, 10), OUTPUT, SECONDARY], "prepared"),
        ("running", [master(10, 10, status="done")], "prepared"),
        ("running", [master(10, 10, mutable=True)], "defined"),
        ("running", [master(10, 4, n_files_to_be_used=4)], None),
        ("running", [master(0)], "prepared"),
        ("running", [], None),
        ("running", [OUTPUT], None),
        ("ready", [master(10, 10)], "prepared"),
        ("throttled", [master(10, 10)], "prepared"),
        ("scouting", [master(10, 4, n_files_to_be_used=4)], "scouted"),
        ("preprocessing", [master(1, 1, type="pseudo_input")], "registered"),
        ("preprocessing", [master(1, 0, 1, type="pseudo_input")], "prepared"),
        ("paused", [master(10, 10)], None),
        ("pending", [master(10, 10)], None),
    ],
)
def test_when_a_task_is_through(status: str, datasets: list[DatasetCounts], target: str | None) -> None:
    ready = ready_to_finish(status, datasets)
    assert ready.target == target
    assert ready.reason


@pytest.mark.parametrize(
    ("status", "counts", "parent", "end"),
    [
        ("tobroken", (10, 10), None, "broken"),
        ("aborting", (10, 10), None, "aborted"),
        ("prepared", (0, 0), None, "failed"),
        ("prepared", (10, 10), None, "done"),
        ("prepared", (10, 10), "done", "done"),
        ("prepared", (10, 10), "finished", "finished"),
        ("prepared", (10, 10), "running", "finished"),
        ("prepared", (10, 10), "failed", "failed"),
        ("prepared", (10, 10), "broken", "failed"),
        ("prepared", (10, 10), "aborted", "failed"),
        ("prepared", (10, 0), None, "failed"),
        ("prepared", (10, 0), "done", "failed"),
        ("prepared", (10, 9), None, "finished"),
        ("passed", (10, 1), None, "finished"),
    ],
)
def test_the_end_by_counts(status: str, counts: tuple[int, int], parent: str | None, end: str) -> None:
    n, ok = counts
    ending = final_status(status, [master(n, ok, n - ok), OUTPUT, SECONDARY], parent=parent)
    assert ending.status == end
    assert ending.reason


@pytest.mark.parametrize("activity", ["production", "analysis", "generic"])
def test_an_empty_input_is_never_done(activity: Any) -> None:
    assert final_status("prepared", [master(0)], activity=activity).status == "failed"
    assert final_status("passed", [master(0)], activity=activity, allow_empty_input=True).status == "finished"
    assert final_status("passed", [master(0, status="defined")], activity=activity, allow_empty_input=True).status == "failed"
    assert final_status("passed", [], activity=activity, allow_empty_input=True).status == "failed"


def test_a_parent_whose_output_may_still_grow_leaves_the_child_finished() -> None:
    assert final_status("prepared", [master(10, 10, mutable=True)], parent="done").status == "finished"


@pytest.mark.parametrize(
    ("exhausted", "status", "fail", "goal", "activity", "end"),
    [
        (True, "prepared", False, None, "production", "exhausted"),
        (True, "prepared", True, 900, "production", "exhausted"),
        (True, "prepared", False, None, "analysis", "finished"),
        (True, "prepared", True, 900, "generic", "finished"),
        (True, "prepared", False, 800, "production", "finished"),
        (True, "prepared", True, 800, "production", "finished"),
        (True, "passed", True, 900, "production", "failed"),
        (True, "passed", True, None, "analysis", "failed"),
        (True, "passed", True, 800, "production", "finished"),
        (True, "passed", False, 900, "production", "finished"),
        (False, "prepared", True, 900, "production", "failed"),
        (False, "prepared", True, None, "analysis", "failed"),
        (False, "passed", True, 801, "generic", "failed"),
        (False, "prepared", True, 800, "production", "finished"),
        (False, "prepared", False, 900, "production", "finished"),
    ],
)
def test_eight_of_ten_files(exhausted: bool, status: str, fail: bool, goal: int | None, activity: Any, end: str) -> None:
    ending = final_status(
        status, [master(10, 8, 2)], activity=activity, goal=goal, use_exhausted=exhausted, fail_goal_unreached=fail
    )
    assert ending.status == end


def test_a_goal_never_makes_a_partial_task_done() -> None:
    assert final_status("prepared", [master(10, 9, 1)], goal=500).status == "finished"


def test_completeness_is_judged_by_events_where_they_are_known() -> None:
    assert completeness([master(10, 5, n_events=1000, n_events_used=900)]) == 900
    assert completeness([master(10, 5)]) == 500
    assert completeness([]) == 0


def test_a_goal_is_reached_early_only_when_nothing_untried_is_left() -> None:
    files = [master(10, 9)]
    assert goal_reached(900, files, untried_files=0, output_events=0)
    assert not goal_reached(900, files, untried_files=1, output_events=0)
    assert not goal_reached(950, files, untried_files=0, output_events=0)
    assert not goal_reached(None, files, untried_files=0, output_events=0)
    events = [master(10, 9, n_events=1000)]
    assert goal_reached(900, events, untried_files=0, output_events=900)
    assert not goal_reached(900, events, untried_files=0, output_events=899)
    assert not goal_reached(900, [master(10, 9, mutable=True)], untried_files=0, output_events=0)


FILE = st.sampled_from(["finished", "failed", "lost", "missing", "broken", "ready", "partial"])
PARENTS = ["done", "finished", "failed", "aborted", "broken", "running", "pending", None, None, None]


def counted(files: list[str], status: str = "ready") -> DatasetCounts:
    """The counters that the ledger keeps of files in these states; each has 10 events, of which a partial one has 4 done."""
    n = Counter(files)
    gone = n["lost"] + n["missing"] + n["broken"]
    return DatasetCounts(
        "input",
        status,
        n_files=len(files),
        n_files_to_be_used=len(files) - gone,
        n_files_used=n["finished"] + n["failed"],
        n_files_finished=n["finished"],
        n_files_failed=n["failed"],
        n_files_missing=gone,
        n_events=10 * len(files),
        n_events_used=10 * n["finished"] + 4 * n["partial"],
    )


@given(
    st.lists(st.tuples(st.lists(FILE, max_size=6), st.booleans()), max_size=3),
    st.sampled_from(["prepared", "passed", "tobroken", "aborting"]),
    st.sampled_from(PARENTS),
    st.sampled_from(["production", "analysis", "generic"]),
    st.booleans(),
)
def test_the_end_and_its_sentence_follow_from_the_files(
    inputs: list[tuple[list[str], bool]], status: str, parent: str | None, activity: Any, allow_empty: bool
) -> None:
    datasets = [counted(files, "ready" if files or fed else "defined") for files, fed in inputs]
    end = final_status(status, datasets, activity=activity, parent=parent, allow_empty_input=allow_empty)
    files = Counter(state for of, _ in inputs for state in of)
    gone = files["lost"] + files["missing"] + files["broken"]
    if status in ("tobroken", "aborting"):
        assert end.status == {"tobroken": "broken", "aborting": "aborted"}[status]
        return
    whole = files["finished"] == files.total() > 0
    assert (end.status == "done") == (whole and parent in (None, "done"))
    if not files:
        known = bool(inputs) and all(fed for _, fed in inputs)
        assert end.status == ("finished" if allow_empty and known else "failed")
    elif not whole:
        assert end.status == ("finished" if files["finished"] or files["partial"] else "failed")
        numbers = {"given up": files["failed"], "lost or damaged": gone, "not used": files["ready"] + files["partial"]}
        told = {
            what: int(n) for n, what in re.findall(r"(\d+) (?:is|are|was|were) (given up|lost or damaged|not used)", end.reason)
        }
        assert told == {what: n for what, n in numbers.items() if n}
        assert f"{files.total()} file" in end.reason
    elif parent not in (None, "done"):
        assert end.status == ("failed" if parent in ("failed", "aborted", "broken") else "finished")
        assert end.reason.endswith(f"but its parent is {parent}")
    if ready_to_finish("running", datasets).target == "prepared":
        assert all(is_through(d) for d in datasets)
        assert not (files["ready"] or files["partial"])


@pytest.mark.parametrize(
    ("label", "activity"),
    [
        ("managed", "production"),
        ("test", "production"),
        ("user", "analysis"),
        ("panda", "analysis"),
        ("ptest", "generic"),
        ("install", "generic"),
        ("", "production"),
    ],
)
def test_the_activity_of_a_task_follows_its_label(label: str, activity: str) -> None:
    assert activity_of(label) == activity
