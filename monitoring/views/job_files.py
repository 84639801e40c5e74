"""The log of a job, and its outputs to fetch, as far as the server reaches the storage where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render

from brokerage.models import Job
from brokerage.states import JOB
from monitoring.log_pieces import Pieces, end_with_report, legible
from monitoring.queries.job import OutputRow, find_job, job_outputs
from monitoring.stored_files import LARGEST, LARGEST_STREAM, TooLarge, Unreadable, content, log_pieces, signed_link, stream_of
from monitoring.views.page import page, scope_of, show
from workqueues.rules.jobs.log_streams import STREAMS
from workqueues.states import LOG_TYPES, OUTPUT_FILE

_LONGEST_NUMBER = 19


@page("job:read")
def job_log(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """What the job and its pilot wrote: from its log on storage, else the end that came with the report."""
    job = _visible_job(request, job_id)
    log, found, fault = _log_of(job, _begins(request))
    final, asked = job.status in JOB.final, request.GET.get("stream", "")
    missing = asked if found.streams and asked and asked not in {stream.name for stream in found.streams} else ""
    context = {
        "job": job, "log": log, "found": found, "fault": fault, "final": final, "missing": missing[:100], "asked": asked,
        "passed_on": LARGEST, "stream_passed_on": LARGEST_STREAM, "linked": bool(log and signed_link(log)),
        "moved": _moved(job, log),
    }  # fmt: skip
    return show(request, "job_log.html", "jobs", context, knows=("stream", "from"))


@page("job:read")
def job_log_text(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """One piece of one stream of the log as plain text, with its place in the stream in the headers."""
    job = _visible_job(request, job_id)
    name = request.GET.get("stream", "")
    log, found, fault = _log_of(job, _begins(request), name)
    if fault:
        return _plain(f"{' '.join(filter(None, ['The log cannot be shown.', fault, _moved(job, log)]))}\n", status=503)
    stream = next((stream for stream in found.streams if stream.name == name), None)
    if stream is None:
        names = ", ".join(legible(stream.name.encode("utf-8", "replace")) for stream in found.streams)
        return _plain(f"The log of job {job_id} has no such stream. It has: {names or 'none'}.\n", status=404)
    answer = _plain(stream.text)
    answer["X-Piece"] = f"bytes {stream.begin}-{stream.end} of {stream.size}"
    return answer


@page("job:read")
def job_log_file(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """One stream of the log whole, where it is a plain file: by an address at its storage server that is good for a minute, else
    passed on.
    """
    job, name = _visible_job(request, job_id), request.GET.get("stream", "")
    try:
        logs = _stored_logs(job)
        stream = stream_of(logs[0], name) if logs else None
        if stream is None:
            why = _moved(job, logs[0]) if logs and name in STREAMS else ""
            return _plain(f"It is no file of its own on storage; {why or 'the archive of the log may have it.'}\n", status=404)
        if "Authorization" not in request.headers and (link := signed_link(stream)):
            return _to_storage(link)
        answer = _plain(content(stream, LARGEST_STREAM))
    except Unreadable as problem:
        return _plain(f"This file cannot be passed on. {problem}\n", status=503)
    answer["Content-Disposition"] = f'attachment; filename="{stream.lfn}"'
    return answer


def _to_storage(link: str) -> HttpResponse:
    """To an address that is good for a minute and must not be kept."""
    answer = HttpResponseRedirect(link)
    answer["Cache-Control"] = "private, no-store"
    return answer


def _plain(text: str | bytes, status: int = 200) -> HttpResponse:
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8", status=status)
    answer["Cache-Control"] = "private, no-store"
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def _begins(request: HttpRequest) -> dict[str, int]:
    """Which piece of which stream the address asks for; a begin that is no number is none."""
    begin = request.GET.get("from", "")
    is_number = begin.isascii() and begin.isdigit() and len(begin) < _LONGEST_NUMBER
    return {request.GET.get("stream", ""): int(begin)} if is_number else {}


def _stored_logs(job: Job) -> list[OutputRow]:
    return [output for output in job_outputs(job.id, type__in=LOG_TYPES, status__in=OUTPUT_FILE.stored) if output.copies]


def _moved(job: Job, log: OutputRow | None) -> str:
    """Where the plain files of a log have gone that was brought away from where its job wrote it; empty where it was not."""
    wrote = job.storage if log is not None else ""
    if log is None or not wrote or wrote in {copy.storage for copy in log.copies}:
        return ""
    there = ", ".join(copy.storage for copy in log.copies)
    return (
        f"the job wrote its log at {wrote}, and the archive alone was brought to {there}: plain files of its streams went with "
        f"the copy at {wrote}. The archive has them."
    )


def _log_of(job: Job, begins: Mapping[str, int], only: str = "") -> tuple[OutputRow | None, Pieces, str]:
    """The log as an output where it is stored, what can be shown of it, and why nothing can."""
    if logs := _stored_logs(job):
        try:
            return logs[0], log_pieces(logs[0], begins, only), ""
        except Unreadable as problem:
            return logs[0], Pieces(), str(problem)
    log_end = job.result.log_end if hasattr(job, "result") else ""
    return None, Pieces([end_with_report(log_end)] if log_end else []), ""


@page("job:read")
def job_output(request: HttpRequest, job_id: int, file_id: int) -> HttpResponseBase:
    """One output as a file to save; a large one by an address at its storage server that is good for a minute."""
    _visible_job(request, job_id)
    output = next(iter(job_outputs(job_id, id=file_id)), None)
    if output is None:
        raise Http404(f"Job {job_id} has no output {file_id}.")
    answer: HttpResponse
    try:
        answer = HttpResponse(content(output), content_type="application/octet-stream")
    except Unreadable as problem:
        # A program with a token goes to no other server than ours; it is told where the file is.
        if isinstance(problem, TooLarge) and "Authorization" not in request.headers and (link := signed_link(output)):
            return _to_storage(link)
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
