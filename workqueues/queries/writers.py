"""For whom a task writes, and what that user may do at this moment."""

from __future__ import annotations

from broker_site.foundation.access.authentication import roles_of
from broker_site.foundation.access.roles import PRODUCTION
from workqueues.models import Task
from workqueues.rules.refine import Writer


def writer_of(task: Task) -> Writer:
    """The owner of a task as the writer of its outputs."""
    return Writer(task.vo, task.user_name, PRODUCTION in roles_of(task.user_name, task.vo))
