"""How long jobs may stay and be silent."""

from __future__ import annotations

import pytest

from broker_site.foundation.gdpconfig.values import Config
from brokerage.config_keys import SERVER
from brokerage.rules.dispatch.timeouts import QueueFacts, inactive, limit_s, silence_s, suspended
from brokerage.rules.grid.queue_columns import switches_in
from brokerage.states import JOB

LIMITS = Config().component("job_timeout", app=SERVER)
WATCHER = Config().component("watcher", app=SERVER)
HOUR = 3600.0
QUEUE = QueueFacts()
IDLE = QueueFacts(idle_s=2 * HOUR + 1)


@pytest.mark.parametrize("priority", [0, 1000])
@pytest.mark.parametrize("state", JOB.live)
def test_every_state_of_a_live_job_has_a_limit(state: str, priority: int) -> None:
    limit = limit_s(state, priority, QUEUE, LIMITS)
    assert limit is not None
    assert limit > 0


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
