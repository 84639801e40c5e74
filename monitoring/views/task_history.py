"""The page of a task over time, with its JSON and CSV."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpRequest, HttpResponseBase

from monitoring.queries.task_history import MOST_ENDED, MOST_JOBS, TaskStep, task_history
from monitoring.tables.exports import json_answer, plain
from monitoring.views.details import visible_task
from monitoring.views.export import export
from monitoring.views.page import page, scope_of, show
from workqueues.states import TASK


@page("task:read", ())
def task_plots(request: HttpRequest, task_id: int, format: str = "html") -> HttpResponseBase:  # noqa: A002 - as in the address
    """How far the task came and when, when it may be done, its jobs by queue, run time and memory, and what happened."""
    task = visible_task(task_id, scope_of(request))
    found = task_history(task)
    if format == "csv":
        return export(request, TaskStep, found.steps, f"task-{task_id}")
    if format == "json":
        more = {
            "task": task_id,
            "status": task.status,
            "step_s": found.step_s,
            "jobs_last_hour": found.pace.last_hour,
            "estimate": asdict(found.estimate) if found.estimate else None,
            "why_no_estimate": found.why_no_estimate,
            "queues": [{"queue": row.queue, "jobs": dict(row.by_state)} for row in found.queues],
            "run_time": {"unit": found.run_time.unit, "bars": [asdict(bar) for bar in found.run_time.bars]},
            "memory": {"unit": found.memory.unit, "bars": [asdict(bar) for bar in found.memory.bars]},
            "timeline": [{name: plain(value) for name, value in asdict(one).items()} for one in found.happenings],
            "counted_every": found.every,
            "capped": found.capped,
            "as_of": found.as_of,
        }
        return json_answer(found.steps, more)
    context = {
        "task": task,
        "found": found,
        "final": task.status in TASK.final,
        "most_jobs": MOST_JOBS,
        "most_ended": MOST_ENDED,
        "as_of": found.as_of,
    }
    return show(request, "task_plots.html", "tasks", context)
