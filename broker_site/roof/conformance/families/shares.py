"""Families about work queues, shares and the throttler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broker_site.roof.conformance.registry import Answer, Given, family
from workqueues.rules.shares.tree import Node, entitlements, order
from workqueues.rules.throttle.throttler import Counts, Limits, throttled
from workqueues.rules.work_queues.criteria import parse, read_variables
from workqueues.rules.work_queues.mapping import Queue, choose
from workqueues.rules.work_queues.queue_shares import QueueShare, percentages


@family("work_queue_mapping", given="order task", expect="queue")
def work_queue_mapping(given: Given) -> Answer:
    """The queue that takes a task."""
    queues = [
        Queue(queue["name"], queue.get("order"), parse(queue.get("criteria"), read_variables(queue.get("variables"))))
        for queue in given["order"]
    ]
    return {"queue": choose(queues, {name.lower(): value for name, value in given["task"].items()}).queue}


@family("work_queue_shares", given="queues", expect="*")
def work_queue_shares(given: Given) -> Answer:
    """The percentage of each queue."""
    return percentages(
        [QueueShare(**{name: value for name, value in queue.items() if value is not None}) for queue in given["queues"]]
    )


@family("global_share_order", given="tree executing", expect="order")
def global_share_order(given: Given) -> Answer:
    """The leaves in the order in which they are served."""
    return {"order": order(_tree(given["tree"]), given["executing"])}


@family("global_share_entitlement", given="tree total demand", expect="*")
def global_share_entitlement(given: Given) -> Answer:
    """What each leaf may use."""
    return entitlements(_tree(given["tree"]), given["total"], given["demand"])


@family("throttler", given="n_running n_queued [limit] [cap]", expect="decision max_jobs lock")
def throttler(given: Given) -> Answer:
    """The verdict on a unit whose queued jobs are all activated."""
    verdict = throttled(
        Counts(running=given["n_running"], activated=given["n_queued"]), Limits(lower=given.get("limit"), cap=given.get("cap"))
    )
    return {"decision": verdict.decision, "max_jobs": verdict.max_jobs, "lock": verdict.lock}


def _tree(nodes: Sequence[Mapping[str, Any]]) -> tuple[Node, ...]:
    return tuple(Node(node["name"], node["value"], _tree(node.get("children") or ())) for node in nodes)
