"""What a reader is told about a decision."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings

from brokerage.policies.analysis import Analysis
from brokerage.policies.generic import Generic
from brokerage.policies.nucleus import Nucleus
from brokerage.policies.production import Production
from brokerage.rules.decision.declare import BrokeragePolicy, Policy
from brokerage.rules.decision.pipeline import decide
from brokerage.rules.decision.record import Record, decode, encode
from brokerage.rules.explain.explanation import explain
from brokerage.rules.explain.why_not import why_not
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.snapshot import BLOCKED, Queues
from tests.unit.brokerage.grids import CONFIG, ask, asks, grids, piloted

GRID = piloted(
    [
        {"name": "CLOSED", "status": "offline", "maxrss": 1000},
        {"name": "FULL", "space_gb": 10},
        {"name": "GOOD", "running": 9, "activated": 4},
        {"name": "SMALL", "maxrss": 1000},
    ]
)
ASK = ask(ram_count=2000, ram_unit="MB")


def stored(asked: Ask, table: Queues) -> Record:
    return decode(encode(decide(Generic, asked, table, CONFIG, "1"), Generic))


def test_the_story_of_an_assignment() -> None:
    told = explain(stored(ASK, GRID), Generic, ASK, GRID, CONFIG)
    assert told.verdict == "1 of 4 queues taken; the best is GOOD with the weight 2"
    assert [(step.criterion, step.skipped, step.left) for step in told.funnel] == [
        ("-status", 1, 3),
        ("-disk", 1, 2),
        ("-lowmemory", 1, 1),
    ]
    assert told.chosen[0].factors == {"running_over_waiting": 2.0}
    assert [(skip.name, skip.criterion, skip.kind) for skip in told.skipped] == [
        ("CLOSED", "-status", "persistent"),
        ("FULL", "-disk", "temporary"),
        ("SMALL", "-lowmemory", "persistent"),
    ]
    assert told.matrix is not None
    status, space, memory = (told.criteria.index("-status"), 5, told.criteria.index("-lowmemory"))
    assert (told.matrix["CLOSED"][status], told.matrix["CLOSED"][memory]) == ("P", "p")
    assert told.matrix["FULL"][space] == "T"
    assert set(told.matrix["GOOD"]) == {"."}


def test_a_pending_task_is_told_until_when_and_what_the_closest_queue_lacks() -> None:
    asked = ask(ram_count=2100, ram_unit="MB", site=None, included_sites=("SMALL", "CLOSED"))
    told = explain(stored(asked, GRID), Generic, asked, GRID, CONFIG, datetime(2026, 11, 21, 12, 0, tzinfo=UTC))
    assert told.verdict == (
        "Pending until 12:20:00 UTC: none of 4 queues can ever take it; the closest is SMALL: "
        "a job needs 2100 MB, a slot gives 1000 MB (-lowmemory)"
    )
    assert [skip.numbers["need_mb"] for skip in told.lacks] == [2100]


def test_when_waiting_can_help_the_verdict_does_not_say_that_none_fits() -> None:
    table = piloted([{"name": "FULL", "space_gb": 150}])
    told = explain(stored(ask(), table), Generic, ask(), table, CONFIG)
    assert told.verdict == (
        "Pending for 20 min: the only queue does not pass now; the closest is FULL: "
        "its output storage has 150 GB free, 200 GB are wanted (-disk)"
    )


def test_no_queue_at_all_is_said() -> None:
    none = piloted([])
    assert explain(stored(ask(), none), Generic, ask(), none, CONFIG).verdict == "Pending for 20 min: there is no queue at all"


@pytest.mark.parametrize("gone", ["snapshot", "policy"])
def test_what_the_record_alone_says_is_left_when_the_rest_is_gone(gone: str) -> None:
    other = piloted([{"name": "OTHER"}])

    class Newer(BrokeragePolicy):
        candidates, select, otherwise = Generic.candidates, Generic.select, Generic.otherwise
        filters = Generic.filters[1:]

    told = explain(stored(ASK, GRID), Newer if gone == "policy" else Generic, ASK, other if gone == "snapshot" else GRID, CONFIG)
    assert not told.detailed
    assert told.funnel[0].criterion == "-status"
    assert told.chosen[0].name == "GOOD"
    assert told.skipped == ()


def test_why_not_shows_every_check_of_one_queue_with_its_numbers() -> None:
    told = why_not(stored(ASK, GRID), Generic, ASK, GRID, CONFIG, "CLOSED")
    assert told.first is not None
    assert told.first.criterion == "-status"
    assert not told.chosen
    failed = {check.criterion: check.reason for check in told.checks if not check.passed}
    assert failed == {"-status": "its status is offline, not online", "-lowmemory": "a job needs 2000 MB, a slot gives 1000 MB"}
    walltime = next(check for check in told.checks if check.criterion == "-shortwalltime")
    assert walltime.numbers["maxtime"] == 0
    chosen = why_not(stored(ASK, GRID), Generic, ASK, GRID, CONFIG, "GOOD")
    assert (chosen.chosen, chosen.weight, chosen.first) == (True, 2.0, None)


def test_why_not_refuses_what_it_cannot_tell() -> None:
    with pytest.raises(KeyError):
        why_not(stored(ASK, GRID), Generic, ASK, GRID, CONFIG, "NOWHERE")
    with pytest.raises(ValueError, match="another"):
        why_not(stored(ASK, GRID), Generic, ASK, piloted([{"name": "GOOD"}]), CONFIG, "GOOD")


@settings(max_examples=40)
@given(asks, grids)
def test_every_decision_can_be_told_as_json(asked: Ask, rows: list[dict[str, Any]]) -> None:
    table = piloted(rows)
    record = stored(asked, table)
    told = explain(record, Generic, asked, table, CONFIG)
    json.dumps(told.to_document(), allow_nan=False)
    assert len(told.skipped) + len(told.chosen) == told.candidates
    assert sum(step.skipped for step in told.funnel) == len(told.skipped)
    for name in table.index:
        json.dumps(why_not(record, Generic, asked, table, CONFIG, name).to_document(), allow_nan=False)


def test_the_funnel_says_what_each_criterion_alone_would_win() -> None:
    told = explain(stored(ASK, GRID), Generic, ASK, GRID, CONFIG)
    assert [(step.criterion, step.skipped, step.failed, step.alone) for step in told.funnel] == [
        ("-status", 1, 1, 0),
        ("-disk", 1, 1, 1),
        ("-lowmemory", 1, 2, 1),
    ]
    assert told.funnel[0].about == "The status is online, unless the task itself names the queue."
    assert told.further == ()
    assert told.config["STORAGE_MIN_FREE_SIZE"] == CONFIG["STORAGE_MIN_FREE_SIZE"]


def test_a_hopeless_task_names_what_lasts_first_and_the_rest_by_name() -> None:
    table = piloted([{"name": "FULL", "space_gb": 150, "maxrss": 1000}, {"name": "OFF", "status": "offline", "maxrss": 900}])
    told = explain(stored(ASK, table), Generic, ASK, table, CONFIG)
    assert told.hopeless
    assert told.verdict == (
        "Pending for 20 min: none of 2 queues can ever take it; the closest is FULL: "
        "a job needs 2000 MB, a slot gives 1000 MB (-lowmemory), and it fails -disk"
    )


def test_what_lasts_is_told_first_also_where_another_queue_may_take_it_one_day() -> None:
    table = piloted([{"name": "FULL", "space_gb": 150, "maxrss": 1000}, {"name": "OFF", "status": "offline"}])
    told = explain(stored(ASK, table), Generic, ASK, table, CONFIG)
    assert told.verdict == (
        "Pending for 20 min: 0 of 2 queues pass now; the closest is FULL: "
        "a job needs 2000 MB, a slot gives 1000 MB (-lowmemory), and it fails -disk"
    )


def test_none_ever_is_only_said_where_the_task_or_a_queue_must_be_changed() -> None:
    away: list[dict[str, Any]] = [
        {"name": "OFF", "status": "offline"},
        {"name": "BLOCKED", "closeness": BLOCKED},
        {"name": "SMALL", "maxrss": 1000},
    ]
    asked = ask(ram_count=2000, ram_unit="MB", nucleus="N", core_count=1)
    table = piloted(away)
    told = explain(decode(encode(decide(Production, asked, table, CONFIG, "1"), Production)), Production, asked, table, CONFIG)
    assert not told.hopeless
    assert "0 of 3 queues pass now; the closest is" in told.verdict


@pytest.mark.parametrize("policy", [Production, Analysis, Generic, Nucleus])
def test_what_people_monitoring_and_data_bring_back_never_makes_never(policy: Policy) -> None:
    lasting = {policy.judged[i].label for i in policy.lasting.tolist()}
    passing = {"status", "link_unusable", "nopilot", "locality", "non_local", "fileunavailable", "blacklist", "insize", "innum"}
    assert not lasting & (passing | {"hospital", "local_quota", "over_pledged", "overloaded_vp", "diskIO", "closed", "badsite"})
    assert lasting & {"lowmemory", "match"}


def test_what_would_change_a_verdict_comes_with_the_value_that_would_just_do() -> None:
    checks = why_not(stored(ASK, GRID), Generic, ASK, GRID, CONFIG, "SMALL").checks
    memory = next(check for check in checks if check.criterion == "-lowmemory")
    assert (memory.need, memory.limit) == (2000, 1000)
    first, *others = memory.depends_on
    assert (first.where, first.name, first.value, first.edit, first.enough) == (
        "queue",
        "maxrss",
        1000,
        "queue.SMALL.maxrss",
        2000,
    )
    assert ("task", "ramCount", 2000) in [(r.where, r.name, r.value) for r in others]
    assert all(check.depends_on == () for check in checks if check.passed)


def test_a_limit_of_the_configuration_and_what_only_time_changes_are_told_apart() -> None:
    checks = why_not(stored(ASK, GRID), Generic, ASK, GRID, CONFIG, "FULL").checks
    (space,) = (check for check in checks if not check.passed)
    assert [(r.where, r.name, r.edit) for r in space.depends_on] == [
        ("configuration", "STORAGE_MIN_FREE_SIZE", "config.STORAGE_MIN_FREE_SIZE"),
        ("moment", "space_gb", ""),
        ("moment", "space_origin", ""),
    ]
    assert space.depends_on[0].value == CONFIG["STORAGE_MIN_FREE_SIZE"]
