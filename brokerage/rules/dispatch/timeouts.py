"""How long a job may stay in a state, and how long it may be silent (seed 000, timeout rules; facts on timeouts 4.1, 4.2).

Here: the limits, as seconds, from the table of rules (`timeout_table`), the configuration and the job's queue. Not here: what
happens to the job then (`brokerage.ledger`). States whose jobs a pilot holds have a lease besides;
it ends sooner, and a job whose lease is renewed is still bound by the limits here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker_site.foundation.gdpconfig.values import pick
from brokerage.rules.dispatch.timeout_table import TimeoutRule, rules_of
from brokerage.rules.facts.ask import Config
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.grid.queue_columns import switches_in
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


SUSPENSIONS = (
    "queue is paused",
    "queue has `disableReassign` in its `catchall`",
    "task has the parameter `disableReassign`",
)
"""What `suspended` looks at, for people who read the rules."""


def suspended(queue: QueueFacts, *, disable_reassign: bool = False) -> bool:
    """Whether no rule holds for jobs at the queue: it is paused, or `disableReassign` stands in its catchall (decision D4), or is
    a parameter of their task (`disable_reassign`).
    """
    return disable_reassign or queue.status == "paused" or "disableReassign" in switches_in(queue.catchall)


def as_one(queues: Sequence[QueueFacts]) -> QueueFacts:
    """The queues to which a job is open, as the limits see them (row X4): it may stay for as long as at any of them.

    Those where no rule holds are left out while there are others: they serve the job. It waits at an inactive queue only where
    all are inactive. Without any queue it has the limits of one of which nothing is known.
    """
    serving = [queue for queue in queues if not suspended(queue)]
    if not serving:
        return queues[0] if queues else QueueFacts()
    idle_s = [queue.idle_s for queue in serving if queue.idle_s is not None]
    return QueueFacts(idle_s=min(idle_s) if len(idle_s) == len(serving) else None)


def limit_s(state: str, priority: int, queue: QueueFacts, config: Config, kind: JobKind = JobKind.NORMAL) -> float | None:
    """Seconds that a job of this priority and kind may stay in `state` at the queue; None = no rule. `config`: component
    job_timeout.
    """
    if suspended(queue):
        return None
    rank = "high" if priority >= config["HIGH_PRIORITY"] else "low"
    limits = [
        _seconds(rule, queue, config)
        for rule in rules_of(state, kind)
        if rule.priority in ("any", rank) and (not rule.inactive or inactive(queue, config))
    ]
    return min((limit for limit in limits if limit is not None), default=None)


def _seconds(rule: TimeoutRule, queue: QueueFacts, config: Mapping[str, Any]) -> float | None:
    days = getattr(queue, rule.queue_days) if rule.queue_days else None
    limit = days * DAY_S if days else config.get(rule.limit)
    return None if limit is None else float(limit)


def inactive(queue: QueueFacts, config: Config) -> bool:
    """Whether the last job began too long ago; a queue where none is known to have begun is not inactive (facts 4.5)."""
    return queue.idle_s is not None and queue.idle_s > config["INACTIVE_AFTER"]


def silence_s(
    state: str, sub_status: str | None, label: str, queue: QueueFacts, config: Config, kind: JobKind = JobKind.NORMAL
) -> float | None:
    """Seconds that a job in `state` may be silent; None = no heartbeats are expected. `config`: component watcher.

    Running and starting jobs send heartbeats; transferring ones only where the queue's workflow has its own stage-out, which
    shows in a sub status.
    """
    rules = rules_of(state, kind, "sign of life")
    if suspended(queue) or not any(sub_status or not rule.staging for rule in rules):
        return None
    return lease_s(label, queue.workflow, config)


def lease_s(label: str, workflow: str, config: Config) -> float:
    """Seconds that a job may be silent at a queue of this workflow, which is the length of its lease.

    Without a value for the workflow that of analysis or production holds, by the label. `config`: component watcher.
    """
    if f"HEARTBEAT_TIMEOUT_{workflow}" not in config:
        workflow = "analysis" if activity_of(label) == "analysis" else "production"
    return float(pick(config, "HEARTBEAT_TIMEOUT_<workflow>", workflow=workflow))
