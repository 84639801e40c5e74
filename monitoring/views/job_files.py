"""The log of a job, and its outputs to fetch, as far as the server reaches the storage where they are."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from brokerage.models import Job
from brokerage.states import JOB
from monitoring.queries.job import find_job, job_outputs
from monitoring.stored_files import Stream, Unreadable, content, log_streams
from monitoring.views.page import page, scope_of, show
from workqueues.states import LOG_TYPES, OUTPUT_FILE


@page("job:read")
def job_log(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """What the job and its pilot wrote: from its log on storage, else the end that came with the report."""
    job = _visible_job(request, job_id)
    logs = [output for output in job_outputs(job_id, type__in=LOG_TYPES, status__in=OUTPUT_FILE.stored) if output.copies]
    log_end = job.result.log_end if hasattr(job, "result") else ""
    streams, fault = list[Stream](), ""
    if logs:
        try:
            streams = log_streams(logs[0])
        except Unreadable as problem:
            fault = str(problem)
    elif log_end:
        streams = [Stream("The end of the log, which came with the report", log_end)]
    context = {"job": job, "log": logs[0] if logs else None, "streams": streams, "fault": fault, "final": job.status in JOB.final}
    return show(request, "job_log.html", "jobs", context)


@page("job:read")
def job_output(request: HttpRequest, job_id: int, file_id: int) -> HttpResponseBase:
    """One output as a file to save."""
    _visible_job(request, job_id)
    output = next(iter(job_outputs(job_id, id=file_id)), None)
    if output is None:
        raise Http404(f"Job {job_id} has no output {file_id}.")
    try:
        answer = HttpResponse(content(output), content_type="application/octet-stream")
    except Unreadable as problem:
        advice = f"It is registered at {', '.join(f'{c.storage}: {c.path}' for c in output.copies)}." if output.copies else ""
        context: dict[str, Any] = {"title": "This file cannot be passed on", "cause": str(problem), "advice": advice}
        return render(request, "error.html", context, status=503)
    answer["Content-Disposition"] = f'attachment; filename="{output.lfn}"'
    answer["Cache-Control"] = "private, no-store"
    return answer


def _visible_job(request: HttpRequest, job_id: int) -> Job:
    job = find_job(job_id, scope_of(request, "job:read"))
    if job is None:
        raise Http404(f"There is no job {job_id}, or it belongs to a VO that you cannot look into.")
    return job
