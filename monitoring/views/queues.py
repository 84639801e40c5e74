"""The page of one queue: what it is, what is there, and why it gets no work."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponseBase

from brokerage.queries.why_empty import MOST, why_empty_of
from monitoring.queries.database import alias
from monitoring.queries.queue import find_queue, queue_facts
from monitoring.views.page import page, scope_of, show


@page("grid:read")
def queue(request: HttpRequest, name: str) -> HttpResponseBase:
    """One computing queue."""
    found = find_queue(name)
    if found is None:
        raise Http404(f"There is no queue {name[:60]}.")
    scope = scope_of(request, "decision:read")
    context = {
        "queue": found,
        "facts": queue_facts(found),
        "why": why_empty_of(found, None if scope.everything else sorted(scope.names), alias()),
        "most": MOST,
    }
    return show(request, "queue.html", "queues", context)
