"""The class of resources of a task whose needs change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation import gdpconfig
from workqueues.models import Task
from workqueues.rules.jobs.resource_type import resource_type


def resource_type_of(task: Task, columns: Mapping[str, Any]) -> str:
    """That of the task once it has these columns."""
    return resource_type(
        columns.get("core_count", task.core_count),
        columns.get("ram_count", task.ram_count),
        task.ram_unit or "MB",
        task.base_ram_count,
        compensation=gdpconfig.value("jobbroker", "MEMORY_COMPENSATION", vo=task.vo),
    )
