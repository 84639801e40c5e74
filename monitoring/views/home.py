"""The home page: is the system well, and what waits."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase

from monitoring.queries.agents import agent_rows
from monitoring.queries.counts import MOST_LIVE, RECENT, job_counts, longest_waiting, task_counts
from monitoring.queries.queues import queue_rows
from monitoring.views.page import page, scope_of, show


@page("task:read")
def home(request: HttpRequest) -> HttpResponseBase:
    """Tasks and jobs by state, agents, queues, and the tasks that have waited for longest."""
    scope = scope_of(request)
    agents, queues = agent_rows(), queue_rows()
    context = {
        "tasks": task_counts(scope),
        "jobs": job_counts(scope),
        "recent": RECENT,
        "most_live": MOST_LIVE,
        "agents": agents,
        "unwell": [agent for agent in agents if agent.health != "well"],
        "queues": queues,
        "queues_online": sum(queue.status == "online" for queue in queues),
        "pilots": sum(queue.pilots for queue in queues),
        "waiting": longest_waiting(scope),
    }
    return show(request, "home.html", "home", context)
