"""The page of one job."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponseBase

from brokerage.queries.whole_job import inputs_of_job
from brokerage.states import JOB
from monitoring.queries.changes import job_moves
from monitoring.queries.database import alias
from monitoring.queries.job import MOST_FILES, find_job, job_outputs, pilot_of, tries_of
from monitoring.queries.jobs import JobRow, job_rows, visible_jobs
from monitoring.views.page import page, scope_of, show


@page("job:read")
def job(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """One job: its states, files, pilot, needs, result and tries."""
    scope = scope_of(request, "job:read")
    found = find_job(job_id, scope)
    if found is None:
        raise Http404(f"There is no job {job_id}, or it belongs to a VO that you cannot look into.")
    context = {
        "job": found,
        "row": _row(found.id, job_rows(visible_jobs(scope).filter(id=job_id))),
        "spec": getattr(found, "spec", None),
        "result": getattr(found, "result", None),
        "final": found.status in JOB.final,
        "moves": job_moves(job_id),
        "inputs": inputs_of_job(job_id, using=alias(), most=MOST_FILES),
        "outputs": job_outputs(job_id),
        "pilot": pilot_of(found),
        "tries": tries_of(job_id),
    }
    return show(request, "job.html", "jobs", context)


def _row(job_id: int, rows: list[JobRow]) -> JobRow:
    if not rows:
        raise Http404(f"Job {job_id} has just been removed.")
    return rows[0]
