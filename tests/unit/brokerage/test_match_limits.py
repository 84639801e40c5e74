"""Running limits and delays between matches: each holds on its own; settings that cannot be meant are told with their place."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.dispatch.match_limits import (
    Delay,
    Gauge,
    Limited,
    SiteRules,
    after_match,
    delay_fault,
    held,
    matched,
    rules_of,
    running_fault,
    wait_s,
)

VO = "vo"
LABEL = "prod_source_label"


def values_held(
    rules: SiteRules, gauges: dict[Limited, Gauge], ces: Collection[str] = (), now: float = 0.0
) -> dict[str, set[str]]:
    found = held(rules.at(ces), rules, gauges, now)
    return {attribute: set(values) for attribute, values in found.values.items()}


def test_two_attributes_at_their_limits_hold_back_each_alone() -> None:
    rules = rules_of("ALPHA", {"ALPHA": {VO: {"atlas": 5}, LABEL: {"user": 3}}}, {})
    full = {Limited(VO, "atlas"): Gauge(5), Limited(LABEL, "user"): Gauge(3)}
    assert values_held(rules, full) == {VO: {"atlas"}, LABEL: {"user"}}
    assert values_held(rules, {**full, Limited(VO, "atlas"): Gauge(4)}) == {LABEL: {"user"}}


def test_several_values_of_an_attribute_hold_back_each_alone() -> None:
    rules = rules_of("ALPHA", {"ALPHA": {VO: {"atlas": 5, "cms": 2, "lhcb": 1}}}, {})
    assert values_held(rules, {Limited(VO, "atlas"): Gauge(5), Limited(VO, "cms"): Gauge(2)}) == {VO: {"atlas", "cms"}}


def test_a_limit_of_nothing_holds_though_nothing_was_counted() -> None:
    assert values_held(rules_of("ALPHA", {"ALPHA": {VO: {"atlas": 0, "cms": 1}}}, {}), {}) == {VO: {"atlas"}}


def test_limits_of_a_ce_look_at_the_jobs_of_that_ce() -> None:
    rules = rules_of("ALPHA", {"ALPHA": {VO: {"atlas": 100}, "CEs": {"ce1": {VO: {"atlas": 2}}}}}, {})
    busy_site = {Limited(VO, "atlas"): Gauge(50), Limited(VO, "atlas", "ce1"): Gauge(1)}
    assert values_held(rules, busy_site, ["ce1"]) == {}
    busy_ce = {Limited(VO, "atlas"): Gauge(50), Limited(VO, "atlas", "ce1"): Gauge(2)}
    assert values_held(rules, busy_ce, ["ce1"]) == {VO: {"atlas"}}
    assert values_held(rules, busy_ce, ["ce2"]) == {}
    assert values_held(rules, busy_ce, ["ce1", "ce2"]) == {VO: {"atlas"}}, "one of several is enough"
    assert values_held(rules, busy_ce) == {}


def test_matches_since_the_count_are_added() -> None:
    rules = rules_of("ALPHA", {"ALPHA": {VO: {"atlas": 5}}}, {})
    gauges = {Limited(VO, "atlas"): Gauge(running=4)}
    assert values_held(rules, gauges) == {}
    gauges |= matched(rules.on((), {VO: frozenset({"atlas"})}), rules, gauges, 0.0)
    assert values_held(rules, gauges) == {VO: {"atlas"}}


def test_a_site_that_is_not_named_has_no_limits() -> None:
    rules = rules_of("BETA", {"ALPHA": {VO: {"atlas": 0}}}, {"ALPHA": {VO: {"atlas": 10}}})
    assert not rules
    assert values_held(rules, {}) == {}


def test_a_delay_says_how_long_it_lasts() -> None:
    rules = rules_of("ALPHA", {}, {"ALPHA": {VO: {"atlas": 10, "cms": {"interval": 0.5, "burst": 2}}}})
    both = rules.on((), {VO: frozenset({"atlas", "cms"})})
    gauges = matched(both, rules, {}, 100.0)
    assert values_held(rules, gauges, now=100.0) == {VO: {"atlas"}}, "the other may have two at once"
    gauges = matched(both, rules, gauges, 100.0)
    found = held(rules.at(()), rules, gauges, 100.0)
    assert found.waits_s[Limited(VO, "cms")] == pytest.approx(0.5)
    assert "vo cms: the next match in 0.5 s" in dict(found.why).values()
    assert values_held(rules, gauges, now=120.0) == {}


delays = st.builds(Delay, st.floats(0.01, 100), st.integers(1, 10))


@given(delays, st.lists(st.floats(0, 50), min_size=1, max_size=60))
def test_matches_never_come_faster_than_a_delay_says(delay: Delay, pauses: list[float]) -> None:
    now, free_at, times = 1000.0, 0.0, []
    for pause in pauses:
        now += pause
        if not wait_s(free_at, now, delay):
            free_at = after_match(free_at, now, delay)
            times.append(now)
    for first in range(len(times)):
        for n, at in enumerate(times[first:], 1):
            assert n <= delay.burst + (at - times[first]) / delay.interval_s + 1e-6


@given(delays, st.floats(0, 1e9), st.floats(1e9, 2e9))
def test_who_waits_as_long_as_told_may_match(delay: Delay, earlier: float, now: float) -> None:
    free_at = earlier
    for _ in range(delay.burst + 3):
        free_at = after_match(free_at, now, delay)
    rest = wait_s(free_at, now, delay)
    assert rest > 0
    assert wait_s(free_at, now + rest, delay) == pytest.approx(0, abs=1e-3)


named = st.sampled_from(["a", "b", "c"])
counted = st.dictionaries(
    st.builds(Limited, st.sampled_from([VO, LABEL]), named, st.sampled_from(["", "ce", "other"])), st.integers(0, 4)
)


@given(
    counted,
    counted,
    st.dictionaries(st.sampled_from([VO, LABEL]), st.frozensets(named, min_size=1)),
    st.frozensets(st.sampled_from(["ce", "other"])),
)
def test_a_job_passes_exactly_where_each_of_its_limits_by_itself_lets_it_pass(
    most: dict[Limited, int], counts: dict[Limited, int], job: dict[str, frozenset[str]], ces: frozenset[str]
) -> None:
    rules = SiteRules(most, {})
    gauges = {limited: Gauge(n) for limited, n in counts.items()}
    mine = [limited for limited in most if limited.value in job.get(limited.attribute, ()) and limited.ce in {"", *ces}]
    passes = all(counts.get(limited, 0) < most[limited] for limited in mine)
    assert bool(held(rules.on(ces, job), rules, gauges, 0.0)) is not passes


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ([], "an object is expected"),
        ({"A": 3}, "A: an object of attributes"),
        ({"A": {VO: 3}}, "A.vo: an object of values"),
        ({"A": {"voo": {"x": 3}}}, "A.voo: no attribute that can be limited"),
        ({"A": {VO: {"atlas": -1}}}, "A.vo.atlas: a whole number"),
        ({"A": {VO: {"atlas": True}}}, "A.vo.atlas: a whole number"),
        ({"A": {VO: {"atlas": 1.5}}}, "A.vo.atlas: a whole number"),
        ({"A": {VO: {"x" * 129: 1}}}, "A.vo: a value has 1 to 128 characters"),
        ({"A": {VO: {"": 1}}}, "A.vo: a value has 1 to 128 characters"),
        ({"A": {"CEs": {"c" * 256: {}}}}, "A.CEs: the name of a computing element"),
        ({"A": {"CEs": []}}, "A.CEs: an object"),
        ({"A": {"CEs": {"ce1": 1}}}, "A.CEs.ce1: an object of attributes"),
        ({"A": {"CEs": {"ce1": {VO: {"atlas": "2"}}}}}, "A.CEs.ce1.vo.atlas: a whole number"),
        ({"A": {"CEs": {"ce1": {"CEs": {"ce2": {}}}}}}, "A.CEs.ce1.CEs: no attribute"),
    ],
)
def test_running_limits_that_cannot_be_meant_are_told(setting: Any, told: str) -> None:
    assert told in str(running_fault(setting))


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (3, "an object is expected"),
        ({"A": {VO: {"atlas": 0}}}, "A.vo.atlas: the interval must be seconds above 0"),
        ({"A": {VO: {"atlas": "10"}}}, "the interval must be seconds"),
        ({"A": {VO: {"atlas": {"burst": 3}}}}, "the interval must be seconds"),
        ({"A": {VO: {"atlas": {"interval": 1, "burst": 0}}}}, "the burst must be a whole number"),
        ({"A": {VO: {"atlas": {"interval": 1, "bursts": 2}}}}, "bursts is unknown"),
        ({"A": {"CEs": {"ce1": {VO: {"atlas": 3}}}}}, "A.CEs: no attribute"),
    ],
)
def test_delays_that_cannot_be_meant_are_told(setting: Any, told: str) -> None:
    assert told in str(delay_fault(setting))


def test_settings_that_can_be_meant_have_no_fault() -> None:
    assert running_fault({}) is None
    assert running_fault({"A": {VO: {"atlas": 0}, "CEs": {"ce1": {LABEL: {"user": 2}}}}}) is None
    assert delay_fault({"A": {VO: {"atlas": 0.2, "cms": {"interval": 3, "burst": 7}}}}) is None


def test_a_job_has_to_pass_the_limits_of_its_values_at_the_site_and_at_the_ces_of_its_pilot() -> None:
    of_ces = {"ce1": {VO: {"atlas": 1}}, "ce2": {VO: {"atlas": 2}}}
    rules = rules_of("ALPHA", {"ALPHA": {VO: {"atlas": 5, "cms": 4}, LABEL: {"user": 3}, "CEs": of_ces}}, {})
    atlas = {VO: frozenset({"atlas"}), LABEL: frozenset({"user", "managed"}), "owner": frozenset({"ada"})}
    here = [Limited(LABEL, "user"), Limited(VO, "atlas")]
    assert rules.on((), atlas) == here
    assert rules.on(["ce2", "ce3"], atlas) == [*here, Limited(VO, "atlas", "ce2")]
    assert rules.on(["ce2"], {VO: frozenset({"lhcb"})}) == []
