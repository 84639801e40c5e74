"""How long jobs may stay and be silent."""

from __future__ import annotations

import pytest

from broker_site.foundation.gdpconfig.keys import KEYS
from broker_site.foundation.gdpconfig.values import Config
from brokerage.config_keys import SERVER
from brokerage.rules.dispatch.timeout_table import ALL_KINDS, ENDINGS, RULES, kinds_alike, rules_of
from brokerage.rules.dispatch.timeouts import QueueFacts, inactive, limit_s, silence_s, suspended
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.grid.queue_columns import switches_in
from brokerage.states import JOB

LIMITS = Config().component("job_timeout", app=SERVER)
WATCHER = Config().component("watcher", app=SERVER)
HOUR = 3600.0
QUEUE = QueueFacts()
IDLE = QueueFacts(idle_s=2 * HOUR + 1)


@pytest.mark.parametrize("priority", [0, 1000])
@pytest.mark.parametrize("kind", JobKind)
@pytest.mark.parametrize("state", JOB.live)
def test_every_state_of_every_kind_of_live_job_has_a_limit(state: str, kind: JobKind, priority: int) -> None:
    rank = "high" if priority else "low"
    assert [rule for rule in rules_of(state, kind) if rule.priority in ("any", rank) and not rule.inactive]
    limit = limit_s(state, priority, QUEUE, LIMITS, kind)
    assert limit is not None
    assert limit > 0


def test_every_key_of_a_limit_is_declared_and_every_declared_one_is_in_the_table() -> None:
    used = {("watcher" if rule.since == "sign of life" else "job_timeout", rule.limit) for rule in RULES}
    declared = {(key.component, key.name) for key in KEYS if key.app == SERVER and key.component in ("job_timeout", "watcher")}
    assert declared - used == {("job_timeout", "INACTIVE_AFTER"), ("job_timeout", "HIGH_PRIORITY")}
    assert used <= declared


def test_a_job_that_stays_too_long_in_a_state_ends_one_way_whatever_the_rule() -> None:
    ways = {(rule.state, rule.ending) for rule in RULES if rule.since == "state"}
    assert dict(ways) == ENDINGS
    assert len(ways) == len(ENDINGS)
    assert all(state in JOB.sources(end) for state, end in ENDINGS.items())


@pytest.mark.parametrize("state", JOB.live)
def test_each_kind_stands_once_among_those_with_the_same_rules(state: str) -> None:
    assert sorted(kind for kinds in kinds_alike(state) for kind in kinds) == sorted(ALL_KINDS)


@pytest.mark.parametrize("kind", JobKind)
def test_no_kind_is_spared_where_a_queue_is_inactive(kind: JobKind) -> None:
    assert limit_s("activated", 800, IDLE, LIMITS, kind) == 4 * HOUR


@pytest.mark.parametrize("state", sorted(JOB.final))
def test_a_final_state_has_none(state: str) -> None:
    assert limit_s(state, 500, QUEUE, LIMITS) is None
    assert silence_s(state, "x", "managed", QUEUE, WATCHER) is None


@pytest.mark.parametrize(
    ("state", "priority", "queue", "hours"),
    [
        ("activated", 799, IDLE, 48),
        ("activated", 800, IDLE, 4),
        ("starting", 800, IDLE, 4),
        ("assigned", 800, IDLE, 12),
        ("activated", 800, QueueFacts(idle_s=2 * HOUR), 48),
        ("activated", 800, QueueFacts(idle_s=None), 48),
        ("holding", 799, QUEUE, 48),
        ("holding", 800, QUEUE, 3),
        ("transferring", 799, QUEUE, 144),
        ("transferring", 800, QUEUE, 48),
        ("transferring", 799, QueueFacts(transtimehi=1, transtimelo=3), 72),
        ("transferring", 800, QueueFacts(transtimehi=1, transtimelo=3), 24),
    ],
)
def test_limits_by_priority_and_queue(state: str, priority: int, queue: QueueFacts, hours: float) -> None:
    assert limit_s(state, priority, queue, LIMITS) == hours * HOUR


@pytest.mark.parametrize("queue", [QueueFacts(status="paused"), QueueFacts(catchall="useJumbo, disableReassign,x=1")])
def test_a_suspended_queue_has_no_rule(queue: QueueFacts) -> None:
    assert suspended(queue)
    assert all(limit_s(state, 900, queue, LIMITS) is None for state in JOB.states)
    assert silence_s("running", None, "managed", queue, WATCHER) is None


def test_a_task_may_suspend_the_rules_for_its_jobs() -> None:
    assert suspended(QUEUE, disable_reassign=True)
    assert not suspended(QUEUE)


def test_switches_are_compared_exactly() -> None:
    assert switches_in("a, b=2 ,disableReassignNot") == {"a": "", "b": "2", "disableReassignNot": ""}
    assert not suspended(QueueFacts(catchall="disableReassignNot"))
    assert switches_in("") == {}


def test_a_queue_is_inactive_after_two_hours_without_a_start() -> None:
    assert inactive(IDLE, LIMITS)
    assert not inactive(QueueFacts(idle_s=2 * HOUR), LIMITS)


@pytest.mark.parametrize(
    ("state", "sub_status", "label", "workflow", "hours"),
    [
        ("running", None, "managed", "", 2),
        ("starting", None, "managed", "other", 3),
        ("running", None, "user", "other", 5),
        ("running", None, "managed", "push", 6),
        ("transferring", "staging_out", "managed", "push", 6),
        ("transferring", None, "managed", "push", None),
        ("activated", None, "managed", "push", None),
    ],
)
def test_silence_by_workflow(state: str, sub_status: str | None, label: str, workflow: str, hours: float | None) -> None:
    values = {"push": 6, "production": 3, "analysis": 5} if workflow else {}
    config = {**WATCHER, **{f"HEARTBEAT_TIMEOUT_{name}": found * HOUR for name, found in values.items()}}
    limit = silence_s(state, sub_status, label, QueueFacts(workflow=workflow), config)
    assert limit == (None if hours is None else hours * HOUR)
