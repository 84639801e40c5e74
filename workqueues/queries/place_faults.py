"""System check of where tasks can go: work queues and shares that cannot be read (`manage.py check --database default`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from workqueues.models import GlobalShare
from workqueues.queries.shares import bad_patterns
from workqueues.queries.work_queues import WorkQueues


def check_places(app_configs: Any = None, databases: Sequence[str] | None = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """workqueues.W001: a work queue or share takes no tasks. The others go on."""
    if not databases:
        return []
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes("workqueues")):
        return []  # the tables are not yet as the models say: `migrate` checks before it migrates
    hint = "Mend it in the administration; tasks that it would take go to others meanwhile."
    queues = [f"work queue {name}: {fault}" for name, fault in WorkQueues.load().faults.items()]
    shares = [f"share {name}: {fault}" for name, fault in bad_patterns(GlobalShare.objects.all())]
    return [checks.Warning(f"{fault}; it takes no tasks", hint=hint, id="workqueues.W001") for fault in (*queues, *shares)]
