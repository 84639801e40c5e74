"""The last asks at a queue, and those that passed a job by, as JSON; the pages of both show the same."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse

from brokerage.models import ComputingQueue
from brokerage.queries.job_standing import job_standing
from brokerage.queries.last_asks import AsksAtQueue, asks_at
from monitoring.queries.database import alias
from monitoring.queries.job import find_job
from monitoring.queries.queues import find_queue
from monitoring.views.page import page, scope_of


def visible_asks(request: HttpRequest, queue: ComputingQueue) -> AsksAtQueue:
    """The last asks at a queue, with what they say of jobs that the visitor may look into."""
    scope = scope_of(request, "job:read")
    return asks_at(queue, None if scope.everything else scope.names, alias())


@page("grid:read", ())
def queue_asks_data(request: HttpRequest, name: str) -> HttpResponseBase:
    """The last asks at a queue and their counts."""
    queue = find_queue(name)
    if queue is None:
        raise Http404(f"There is no queue {name[:60]}.")
    return JsonResponse(visible_asks(request, queue).to_document())


@page("job:read", ())
def job_waiting_data(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """Where a job stands that waits, and which asks passed it by."""
    scope = scope_of(request, "job:read")
    job = find_job(job_id, scope)
    standing = job_standing(job, None if scope.everything else scope.names, alias()) if job is not None else None
    if standing is None:
        raise Http404(f"There is no job {job_id} that waits, or it belongs to a VO that you cannot look into.")
    return JsonResponse(standing.to_document())
