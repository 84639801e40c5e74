"""Jobs of a task that have not ended."""

from __future__ import annotations

from brokerage.models import Job
from brokerage.rules.settlement import Seen


def live_jobs(task_id: int) -> list[Seen]:
    """Every job of the task that is in no final state, by id."""
    rows = Job.objects.filter(task_id=task_id, ended_at=None).order_by("id").values_list("id", "epoch", "status")
    return [Seen(*row) for row in rows]
