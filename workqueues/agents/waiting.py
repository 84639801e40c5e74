"""How long the agents let a task rest that cannot go on: the rule with the configuration of the moment."""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from workqueues.models import Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.task.pending import wait_s


def rest_s(task: Task) -> float:
    """Seconds until the pending task is tried again."""
    config = gdpconfig.component("watchdog", vo=task.vo)
    return wait_s(task.current_priority, activity_of(task.prod_source_label), config)
