"""Which unit work belongs to, and which limits hold for it: each key at its level, the narrowest that is set and not 0."""

from __future__ import annotations

from typing import Any

import pytest

import workqueues.config_keys  # noqa: F401 - declares the keys
from broker_site.foundation.gdpconfig import BadConfig, from_document
from workqueues.rules.throttle.limits import UnitLimit, UnitLimits, at_level, component_of, levels, limit, limits_of
from workqueues.rules.throttle.throttler import PRACTICE, Counts
from workqueues.rules.throttle.units import Group, Model, QueueOfUnit, Unit, unit_of

QUEUES = {
    1: QueueOfUnit("default"),
    2: QueueOfUnit("eventservice", "Resource", 10),
    3: QueueOfUnit("gpu", "Resource", 10),
    4: QueueOfUnit("part", "", 10),
    5: QueueOfUnit("sub", "", 5, 4),
}


@pytest.mark.parametrize(
    ("queue", "model", "unit"),
    [
        (1, "global", Unit("atlas", "managed", "MC 16", 0, "MCORE")),
        (0, "global", Unit("atlas", "managed", "MC 16", 0, "MCORE")),
        (5, "global", Unit("atlas", "managed", "MC 16", 0, "MCORE")),
        (3, "global", Unit("atlas", "managed", "gpu", 3, "MCORE")),
        (2, "global", Unit("atlas", "managed", "eventservice", 2, "")),
        (1, "work_queue", Unit("atlas", "managed", "default", 1, "MCORE")),
        (5, "work_queue", Unit("atlas", "managed", "part", 4, "MCORE")),
        (2, "work_queue", Unit("atlas", "managed", "eventservice", 2, "")),
        (99, "work_queue", Unit("atlas", "managed", "MC 16", 0, "MCORE")),
    ],
)
def test_work_belongs_to_one_unit(queue: int, model: Model, unit: Unit) -> None:
    assert unit_of(Group("atlas", "managed", "MC 16", queue, "MCORE"), model, QUEUES) == unit


def test_a_unit_is_named_by_what_it_is() -> None:
    assert str(Unit("atlas", "managed", "MC 16", 0, "MCORE")) == "share MC 16 MCORE"
    assert str(Unit("atlas", "managed", "eventservice", 2)) == "work queue eventservice"


@pytest.mark.parametrize(
    ("config", "resource_type", "found"),
    [
        ({}, "MCORE", UnitLimit(None, "", "MCORE")),
        ({"NQUEUELIMIT_MC 16": 7}, "MCORE", UnitLimit(7, "NQUEUELIMIT_MC 16", "")),
        ({"NQUEUELIMIT_MC 16": 7, "NQUEUELIMIT_MC 16_MCORE*": 6}, "MCORE", UnitLimit(6, "NQUEUELIMIT_MC 16_MCORE*", "MCORE*")),
        (
            {"NQUEUELIMIT_MC 16": 7, "NQUEUELIMIT_MC 16_MCORE*": 6},
            "MCORE_HIMEM",
            UnitLimit(6, "NQUEUELIMIT_MC 16_MCORE*", "MCORE*"),
        ),
        ({"NQUEUELIMIT_MC 16": 7, "NQUEUELIMIT_MC 16_MCORE*": 6}, "SCORE", UnitLimit(7, "NQUEUELIMIT_MC 16", "")),
        (
            {"NQUEUELIMIT_MC 16_MCORE": 5, "NQUEUELIMIT_MC 16_MCORE*": 6},
            "MCORE",
            UnitLimit(5, "NQUEUELIMIT_MC 16_MCORE", "MCORE"),
        ),
        (
            {"NQUEUELIMIT_MC 16_MCORE": 0, "NQUEUELIMIT_MC 16_MCORE*": 6},
            "MCORE",
            UnitLimit(6, "NQUEUELIMIT_MC 16_MCORE*", "MCORE*"),
        ),
        ({"NQUEUELIMIT_MC 16_MCORE": 5}, "MCORE_HIMEM", UnitLimit(None, "", "MCORE_HIMEM")),
        ({"NQUEUELIMIT_MC": 5}, "MCORE", UnitLimit(None, "", "MCORE")),
        ({"NQUEUECAP_MC 16": 5}, "MCORE", UnitLimit(None, "", "MCORE")),
        ({"NQUEUELIMIT_MC 16": 7, "NQUEUELIMIT_MC 16_MCORE": 6}, "", UnitLimit(7, "NQUEUELIMIT_MC 16", "")),
    ],
)
def test_the_narrowest_limit_that_is_set_holds(config: dict[str, int], resource_type: str, found: UnitLimit) -> None:
    assert limit(config, "NQUEUELIMIT", "MC 16", resource_type) == found


def test_the_keys_are_those_of_the_configuration_and_names_may_have_blanks() -> None:
    document: dict[str, Any] = {
        "prod_job_throttler": {
            "NQUEUELIMIT_MC 16_SCORE": 100,
            "NQUEUECAP_MC 16_MCORE*": 900,
            "NRUNNINGCAP_MC 16": 0,
            "THROTTLE_THRESHOLD": 3,
            "THROTTLE_WAITING_JOBS": True,
        }
    }
    config = from_document(document).component(component_of("managed"))
    found = UnitLimits.of(config, "MC 16", "MCORE")
    assert [one.value for one in found] == [None, 900, None]
    limits = limits_of(config, found, shortage=False, unthrottled=False)
    assert (limits.ratio, limits.cap, limits.running_cap, limits.practice) == (3, 900, None, frozenset({"waiting"}))
    assert limits_of(config, found, shortage=True, unthrottled=False).ratio == 2
    assert [component_of(label) for label in ("user", "panda", "ptest")] == ["anal_job_throttler"] * 2 + ["prod_job_throttler"]
    with pytest.raises(BadConfig):
        from_document({"prod_job_throttler": {"NQUEUELIMIT_MC": -1}})


def test_every_rule_of_practice_has_a_switch_that_is_off() -> None:
    config = from_document({}).component("prod_job_throttler")
    switched = {name: True for name, value in config.items() if value is False}
    assert limits_of(config, UnitLimits.of(config, "x", ""), shortage=False, unthrottled=False).practice == frozenset()
    every = limits_of({**config, **switched}, UnitLimits.of(config, "x", ""), shortage=False, unthrottled=False)
    assert every.practice == PRACTICE


def test_jobs_count_at_the_level_of_the_limit() -> None:
    jobs = {
        "SCORE": Counts(running=1, top_priority=5),
        "MCORE": Counts(running=10),
        "MCORE_HIMEM": Counts(running=100, walltime_s=9),
    }
    assert [at_level(level, jobs).running for level in ("SCORE", "MCORE", "MCORE*", "SCORE*", "", "GPU")] == [
        1,
        10,
        110,
        1,
        111,
        0,
    ]
    whole = at_level("", jobs)
    assert (whole.top_priority, whole.walltime_s) == (5, 9)
    assert levels("MCORE_HIMEM") == ["MCORE_HIMEM", "MCORE*", ""]
    assert levels("") == [""]
