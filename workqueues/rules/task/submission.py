"""What is known of a task from the moment it is submitted. Not here: what refining makes of its parameters (`refine`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def first_columns(params: Mapping[str, Any], owner: str, parent_id: int | None = None) -> dict[str, Any]:
    """Columns of the row of a task before it is refined, by accepted parameters; it belongs to `owner`."""
    priority = params.get("taskPriority") or 0
    current = params.get("currentPriority")
    return {
        "task_name": params["taskName"],
        "user_name": owner,
        "vo": params["vo"],
        "prod_source_label": params["prodSourceLabel"],
        "task_type": params.get("taskType") or "anal",
        "processing_type": params.get("processingType") or "",
        "working_group": params.get("workingGroup") or "",
        "campaign": params.get("campaign") or "",
        "task_priority": priority,
        "current_priority": priority if current is None else current,
        "parent_tid": parent_id,
    }
