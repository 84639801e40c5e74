"""Whether a task has scouts, what they need next, and what follows once they have ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workqueues.config_keys  # noqa: F401 - declares the keys
from broker_site.foundation.gdpconfig.values import Config
from workqueues.rules.jobs.measured_needs import JobFigures
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.rules.task.scouts import ScoutCounts, ScoutedTask, expected_jobs, next_step, verdict, worth_while

CONFIG = Config().component("dbproxy")
TASK = ScoutedTask("production", SplitRules(), ScoutCounts(0, 10, 0, True), [JobFigures(3600, cpu_s=3000)] * 10, 5000, 3)


def outcome(task: ScoutedTask = TASK, **config: Any) -> str:
    return verdict(task, {**CONFIG, **config}).outcome


@pytest.mark.parametrize(
    ("rule", "files", "events", "size", "numbered", "jobs"),
    [
        ("", 0, 0, 0, False, 0),
        ("NE=100", 10, 10_000, 0, False, 100),
        ("NE=100", 10, 0, 0, False, 1),  # nobody counted its events
        ("TE=300", 10, 1000, 0, False, 4),
        ("NF=3", 10, 0, 0, False, 4),
        ("", 40, 0, 0, True, 40),
        ("", 1000, 0, 0, False, 5),  # 200 files a job
        ("MF=10", 1000, 0, 0, False, 100),
        ("", 1000, 0, 2 * 10**12, False, 100),  # 20 GB a job
        ("NG=2", 1000, 0, 2 * 10**12, False, 1000),  # one file at least
    ],
)
def test_expected_jobs(rule: str, files: int, events: int, size: int, numbered: bool, jobs: int) -> None:
    assert expected_jobs(parse(rule), files, events, size, 200, numbered=numbered) == jobs


def test_scouts_are_worth_while_from_twice_as_many_jobs_on() -> None:
    assert [worth_while(parse(rule), 20) for rule in ("", "NU=10", "NU=11", "NU=1")] == [True, True, False, True]


@pytest.mark.parametrize(
    ("counts", "more", "measured", "end"),
    [
        (ScoutCounts(0, 0, 0, True), 10, False, False),
        (ScoutCounts(10, 0, 0, True), 0, False, False),
        (ScoutCounts(3, 4, 0, True), 3, False, False),
        (ScoutCounts(5, 5, 0, True), 0, True, False),
        (ScoutCounts(0, 10, 0, True), 0, True, True),
        (ScoutCounts(1, 10, 4, True), 0, True, False),
        (ScoutCounts(0, 3, 29, True), 7, False, False),
        (ScoutCounts(0, 3, 30, True), 0, False, True),  # as many failures as ten files have tries
        (ScoutCounts(0, 3, 5, False), 0, False, True),  # nothing is left of which scouts could be made
        (ScoutCounts(0, 0, 0, False), 0, False, True),
    ],
)
def test_the_next_step(counts: ScoutCounts, more: int, measured: bool, end: bool) -> None:
    assert next_step(counts, SplitRules(), 3) == (more, measured, end)


@given(st.builds(ScoutCounts, st.integers(0, 50), st.integers(0, 50), st.integers(0, 500), st.booleans()), st.integers(0, 50))
def test_scouting_never_stands_still(counts: ScoutCounts, max_attempt: int) -> None:
    step = next_step(counts, SplitRules(), max_attempt)
    assert counts.live or step.more or step.end
    assert not (step.end and (counts.live or step.more))


def test_broken_only_by_failures() -> None:
    assert outcome(replace(TASK, counts=ScoutCounts(0, 0, 30, True))) == "broken"
    assert outcome(replace(TASK, counts=ScoutCounts(0, 0, 0, False), figures=[])) == "avalanche"


def test_the_rate_of_success() -> None:
    few = replace(TASK, activity="analysis", counts=ScoutCounts(0, 4, 15, True))  # 4 of 4 + 15 / 3
    assert outcome(few) == "broken"
    assert outcome(replace(few, activity="production")) == "avalanche"
    assert outcome(replace(few, rules=parse("SS=4"))) == "avalanche"
    assert outcome(few, SCOUT_MIN_OK_RATE_EXHAUSTED=0.4) == "exhausted"
    assert outcome(few, SCOUT_MIN_OK_RATE_EXHAUSTED=0.45) == "broken"
    assert outcome(replace(few, counts=ScoutCounts(0, 10, 2, True))) == "avalanche"  # less than a file's tries


def test_wrong_definitions_of_production() -> None:
    wrong = replace(TASK, asked_cpu_time=100, cpu_time=201)
    assert outcome(wrong) == "exhausted"
    assert outcome(replace(wrong, cpu_time=200)) == "avalanche"
    assert outcome(replace(wrong, asked_cpu_time=None)) == "avalanche"
    assert outcome(replace(wrong, activity="analysis")) == "avalanche"
    assert outcome(wrong, SCOUT_WRONG_CPUTIME_THRESHOLD=0) == "avalanche"


def test_many_short_jobs_of_a_user() -> None:
    short = replace(TASK, activity="analysis", figures=[JobFigures(239)] * 6 + [JobFigures(240)] * 4, expected=1001)
    assert outcome(short) == "exhausted"
    assert outcome(replace(short, expected=1000)) == "avalanche"
    assert outcome(replace(short, figures=short.figures[1:])) == "avalanche"
    assert outcome(replace(short, activity="production")) == "avalanche"


def test_low_and_too_high_use_of_cores() -> None:
    lazy = replace(TASK, rules=parse("MC=90"))  # 83 %
    assert outcome(lazy) == "exhausted"
    assert outcome(replace(lazy, rules=parse("MC=80"))) == "avalanche"
    assert outcome(replace(lazy, io_intensity=900.0), SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED=800) == "avalanche"
    assert outcome(replace(lazy, figures=[JobFigures(3600)])) == "avalanche", "not measured"
    part = {"SCOUT_LOW_CPU_EFFICIENCY": 90, "SCOUT_NUM_CPU_INEFFICIENT": 8}
    assert outcome(TASK, **part) == "exhausted"
    assert outcome(replace(TASK, expected=20), **part) == "avalanche"
    greedy = replace(TASK, figures=[*TASK.figures, JobFigures(100, 2, cpu_s=401)])
    assert outcome(greedy) == "exhausted"
    assert outcome(greedy, SCOUT_CPU_ABUSE=0) == "avalanche"


def test_more_memory_than_is_liked() -> None:
    hungry = replace(TASK, asked_ram=2000, ram=5000)
    assert outcome(hungry) == "avalanche", "off by default"
    assert outcome(hungry, SCOUT_RAM_THR_EXHAUSTED=4000) == "exhausted"
    assert outcome(replace(hungry, asked_ram=4500), SCOUT_RAM_THR_EXHAUSTED=4000) == "avalanche"
