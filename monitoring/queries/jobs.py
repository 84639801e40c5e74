"""Rows of the job list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.models import Job
from brokerage.rules.dispatch.settlement import first_line
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from monitoring.queries.database import alias

OPEN, NO_QUEUE = "open", "none"
"""Stand for the queue of a job that several may run, and of one that ended before it had one."""
BEFORE_PAYLOAD = JOB.live - JOB.delivering - ["running"]


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job in the list. `start_time`, `end_time`: of the payload, as its pilot reported at the end; `error_message`: the line
    of it that tells.
    """

    id: int
    task_id: int
    attempt_nr: int
    kind: str
    status: str
    sub_status: str
    computing_queue: str
    core_count: int
    priority: int
    created_at: datetime
    status_since: datetime
    start_time: datetime | None
    end_time: datetime | None
    ended_at: datetime | None
    max_rss_mb: float | None
    error_code: str
    error_message: str

    @property
    def waits(self) -> bool:
        """Whether no payload has begun."""
        return self.status in BEFORE_PAYLOAD

    @property
    def wait_s(self) -> float | None:
        """Seconds from creation to the start of the payload, or to now while the job waits."""
        until = self.start_time or (self.status_since if self.status == "running" else clock.now() if self.waits else None)
        return max((until - self.created_at).total_seconds(), 0.0) if until else None

    @property
    def run_s(self) -> float | None:
        if self.start_time is None or self.end_time is None:
            return None
        return max((self.end_time - self.start_time).total_seconds(), 0.0)


def visible_jobs(scope: VoScope) -> QuerySet[Job]:
    """All jobs of the VOs in the scope, to filter further; by the VO in their description, which has an index of the list."""
    return Job.objects.using(alias()).filter(scope.q("spec__vo"))


_COLUMNS = {
    "computing_queue__name": "computing_queue",
    "spec__created_at": "created_at",
    "result__start_time": "start_time",
    "result__end_time": "end_time",
    "result__error_code": "error_code",
    "result__error_message": "error_message",
}
_OF_RESULT = ("start_time", "end_time", "error_code", "error_message", "metrics")
_SAME = ("id", "task_id", "attempt_nr", "status", "sub_status", "core_count", "priority", "status_since", "ended_at")


def job_rows(jobs: QuerySet[Job]) -> list[JobRow]:
    """The rows of a bounded query, in its order; one statement."""
    return [_row(row) for row in jobs.values(*_SAME, "kind", *_COLUMNS, "result__metrics")]


def row_of(job: Job) -> JobRow:
    """The row of a job that was read with its specification, result and queue."""
    spec, result = getattr(job, "spec", None), getattr(job, "result", None)
    return _row(
        {
            **{name: getattr(job, name) for name in (*_SAME, "kind")},
            "computing_queue__name": job.computing_queue.name if job.computing_queue else None,
            "spec__created_at": spec.created_at if spec else None,
            **{f"result__{name}": getattr(result, name, None) for name in _OF_RESULT},
        }
    )


def memory_of(metrics: Mapping[str, Any] | None) -> float | None:
    """The most memory that the payload had, MB, as its pilot measured it; None where that is not told, or is no number."""
    rss = (metrics or {}).get("max_rss_mb")
    return float(rss) if isinstance(rss, int | float) and not isinstance(rss, bool) else None


def _row(row: dict[str, Any]) -> JobRow:
    values = {field: row[column] for column, field in _COLUMNS.items()}
    for text in ("error_code", "error_message"):
        values[text] = first_line(values[text] or "")  # a job that has not ended has no result row
    values["computing_queue"] = values["computing_queue"] or (OPEN if row["ended_at"] is None else NO_QUEUE)
    return JobRow(
        **{name: row[name] for name in _SAME},
        kind=JobKind(row["kind"]).label,
        **values,
        max_rss_mb=memory_of(row["result__metrics"]),
    )
