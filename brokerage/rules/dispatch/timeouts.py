"""How long a job may stay in a state, and how long it may be silent (seed 000, timeout rules; facts on timeouts 4.1, 4.2).

Here: the limits, as seconds, from the configuration and the job's queue. Not here: from when time is counted, which is the
database's business, and what happens to the job then (`brokerage.ledger`). States whose jobs a pilot holds have a lease besides;
it ends sooner, and a job whose lease is renewed is still bound by the limits here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from broker_site.foundation.gdpconfig.values import pick
from brokerage.rules.facts.ask import Config
from brokerage.rules.grid.queue_columns import switches_in
from brokerage.states import JOB
from workqueues.rules.jobs.activity import activity_of

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """What the limits ask of a computing queue. `idle_s`: seconds since a job last began there, None where none is known."""

    status: str = "online"
    catchall: str = ""
    workflow: str = ""
    idle_s: float | None = None
    transtimehi: float | None = None
    transtimelo: float | None = None


def suspended(queue: QueueFacts) -> bool:
    """Whether no rule holds at the queue: it is paused, or `disableReassign` stands in its catchall (decision D4)."""
    return queue.status == "paused" or "disableReassign" in switches_in(queue.catchall)


def limit_s(state: str, priority: int, queue: QueueFacts, config: Config) -> float | None:
    """Seconds that a job of this priority may stay in `state` at the queue; None = no rule. `config`: component job_timeout."""
    if suspended(queue):
        return None
    high = priority >= config["HIGH_PRIORITY"]
    if state == "transferring":
        days = queue.transtimehi if high else queue.transtimelo
        return days * DAY_S if days else _value(config, "TIMEOUT_transferring_high" if high else "TIMEOUT_transferring")
    if state == "holding" and high:
        return _value(config, "TIMEOUT_holding_high")
    limit = _value(config, f"TIMEOUT_{state}")
    if state in JOB.inactive and high and inactive(queue, config) and limit is not None:
        return min(limit, float(config["TIMEOUT_inactive_high"]))
    return limit


def inactive(queue: QueueFacts, config: Config) -> bool:
    """Whether the last job began too long ago; a queue where none is known to have begun is not inactive (facts 4.5)."""
    return queue.idle_s is not None and queue.idle_s > config["INACTIVE_AFTER"]


def silence_s(state: str, sub_status: str | None, label: str, queue: QueueFacts, config: Config) -> float | None:
    """Seconds that a job in `state` may be silent; None = no heartbeats are expected. `config`: component watcher.

    Running and starting jobs send heartbeats; transferring ones only where the queue's workflow has its own stage-out, which
    shows in a sub status.
    """
    if suspended(queue) or not (state in JOB.heartbeat or (state == "transferring" and sub_status)):
        return None
    return lease_s(label, queue.workflow, config)


def lease_s(label: str, workflow: str, config: Config) -> float:
    """Seconds that a job may be silent at a queue of this workflow, which is the length of its lease.

    Without a value for the workflow that of analysis or production holds, by the label. `config`: component watcher.
    """
    if f"HEARTBEAT_TIMEOUT_{workflow}" not in config:
        workflow = "analysis" if activity_of(label) == "analysis" else "production"
    return float(pick(config, "HEARTBEAT_TIMEOUT_<workflow>", workflow=workflow))


def _value(config: Mapping[str, Any], key: str) -> float | None:
    value = config.get(key)
    return None if value is None else float(value)


ENDINGS: Mapping[str, Literal["closed", "failed"]] = {
    "pending": "closed",
    "defined": "closed",
    "waiting": "closed",
    "assigned": "closed",
    "throttled": "closed",
    "activated": "closed",
    "starting": "closed",
    "running": "closed",
    "sent": "failed",
    "holding": "failed",
    "transferring": "failed",
    "merging": "closed",
}
"""How a job ends that stayed too long in a state: closed is no failure of its inputs, failed is one (facts on timeouts 4.1)."""
