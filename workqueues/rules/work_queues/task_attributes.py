"""The attributes of a task that criteria of work queues and shares may name (decision C2).

They are columns of the task table under the names that task parameters have; case does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_COLUMNS = (
    "task_name", "user_name", "working_group", "country_group", "vo", "prod_source_label", "task_type", "processing_type",
    "request_type", "campaign", "req_id", "ticket_id", "gshare", "resource_type", "task_priority", "current_priority",
    "architecture", "trans_uses", "trans_home", "trans_path", "container_name", "core_count", "ram_count", "ram_unit",
    "base_ram_count", "base_walltime", "cpu_time", "cpu_time_unit", "out_disk_count", "work_disk_count", "io_intensity",
    "disk_io", "cloud", "site", "nucleus", "event_service", "goal", "parent_tid",
)  # fmt: skip

ATTRIBUTES: Mapping[str, str] = MappingProxyType({column.replace("_", ""): column for column in _COLUMNS})
"""Name in lower case -> column."""


def spelled(attribute: str) -> str:
    """An attribute as task parameters write it: processing_type is processingType."""
    head, *rest = ATTRIBUTES[attribute].split("_")
    return head + "".join(word.capitalize() for word in rest)


def attributes_of(columns: Mapping[str, Any]) -> dict[str, Any]:
    """What criteria see of a task's columns; an empty text is not set."""
    return {name: None if (value := columns.get(column)) == "" else value for name, column in ATTRIBUTES.items()}
