"""Jobs that have not ended, of a task and at each queue; and all that belongs to one job.

REST and the page of a job read it here, with one set of names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Count

from brokerage.models import Job, JobChange, JobRetryHistory
from brokerage.models.job import MERGE_RELATION
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from workqueues.models import File


def live_jobs(task_id: int) -> list[JobVersion]:
    """Every job of the task that is in no final state, by id."""
    rows = Job.objects.filter(task_id=task_id, ended_at=None).order_by("id").values_list("id", "epoch", "status")
    return [JobVersion(*row) for row in rows]


def live_merges(task_id: int) -> frozenset[int]:
    """Those that merge what others of the task made."""
    return frozenset(Job.objects.filter(task_id=task_id, ended_at=None, kind=JobKind.MERGE).values_list("id", flat=True))


class StepResult(NamedTuple):
    """What the job of a preprocessing step told: values by name."""

    job_id: int
    values: Mapping[str, Any]


def step_result(task_id: int) -> StepResult:
    """Of the last one of the task that has finished."""
    finished = Job.objects.filter(task_id=task_id, kind=JobKind.PREPROCESS, status="finished").order_by("-id")
    job_id, values = finished.values_list("id", "result__metadata")[0]
    return StepResult(job_id, values or {})


def failure_rate(task_id: int) -> int | None:
    """Percent of the jobs of a task that failed, among those that finished or failed; None where there are none."""
    ended = Job.objects.filter(task_id=task_id, status__in=JOB.reported)
    counts = dict(ended.values_list("status").annotate(n=Count("id")).order_by())
    total = sum(counts.values())
    return round(100 * counts.get("failed", 0) / total) if total else None


def job_counts() -> dict[int, dict[str, int]]:
    """Jobs that have not ended and have a queue: computing queue -> status -> number."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT computing_queue_id, CASE status WHEN 'sent' THEN 'starting' ELSE status END, count(*) FROM brokerage_job
            WHERE ended_at IS NULL AND computing_queue_id IS NOT NULL GROUP BY 1, 2
            """
        )
        counts: dict[int, dict[str, int]] = defaultdict(dict)
        for queue, status, n in cursor.fetchall():
            counts[queue][status] = n
        return counts


@dataclass(frozen=True, slots=True)
class InputOfJob:
    """One use of a file by the job, or of events of it. `use`: live, used or returned; `file_status`: the file as it is now.

    Where jobs share the file by events: those that this job has, from `first_event` to `last_event`, counted from 0 in the file,
    and the state of their range; None where it has the file whole. `n_events`: of the whole file. Not `tracked`: the file is
    not used up, other jobs have it too.
    """

    file_id: int
    lfn: str
    dataset_id: int
    dataset_name: str
    type: str
    fsize: int | None
    checksum: str
    n_events: int | None
    file_status: str
    tracked: bool
    attempt_nr: int
    use: str
    event_range_id: int | None = None
    first_event: int | None = None
    last_event: int | None = None
    range_status: str = ""

    @property
    def n_own_events(self) -> int | None:
        """Events that the job has of the file."""
        if self.first_event is None or self.last_event is None:
            return self.n_events
        return self.last_event - self.first_event + 1


@dataclass(frozen=True, slots=True)
class PartsOfJob:
    """What belongs to a job beside its own rows. `merges`: jobs whose outputs it merges; `merged_by`: what merges its own.
    `open_to`: the queues to which it is open.
    """

    job_inputs: list[InputOfJob]
    outputs: list[File]
    history: list[JobChange]
    retry_of: list[int]
    retried_by: list[int]
    merges: list[int]
    merged_by: list[int]
    open_to: list[str]


def parts_of_job(job_id: int) -> PartsOfJob:
    """Read what belongs to a job: six queries at most, whatever it has."""
    before = list(JobRetryHistory.objects.filter(new_job_id=job_id).values_list("old_job_id", "relation_type"))
    after = list(JobRetryHistory.objects.filter(old_job_id=job_id).values_list("new_job_id", "relation_type"))
    return PartsOfJob(
        job_inputs=inputs_of_job(job_id),
        outputs=list(File.objects.filter(out_job_id=job_id).order_by("id")),
        history=list(JobChange.objects.filter(job_id=job_id).order_by("id")),
        retry_of=sorted({id_ for id_, relation in before if relation != MERGE_RELATION}),
        retried_by=sorted({id_ for id_, relation in after if relation != MERGE_RELATION}),
        merges=sorted({id_ for id_, relation in before if relation == MERGE_RELATION}),
        merged_by=sorted({id_ for id_, relation in after if relation == MERGE_RELATION}),
        open_to=open_to(job_id),
    )


_OPEN_TO = """
SELECT q.name FROM brokerage_job j JOIN brokerage_taskqueue t ON t.id = j.task_queue_id AND t.computing_queue_id IS NULL
    JOIN brokerage_requirementplace p ON p.requirement_set_id = t.requirement_set_id
    JOIN brokerage_computingqueue q ON q.id = p.computing_queue_id
WHERE j.id = %s AND j.computing_queue_id IS NULL AND j.ended_at IS NULL ORDER BY q.name
"""


def open_to(job_id: int, *, using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Names of the queues to which a job is open; none of one that has a queue, or has ended."""
    with connections[using].cursor() as cursor:
        cursor.execute(_OPEN_TO, [job_id])
        return [name for (name,) in cursor.fetchall()]


_INPUTS = """
SELECT f.id, f.lfn, f.dataset_id, d.dataset_name, f.type, f.fsize, f.checksum, f.n_events, f.status, i.tracked, i.attempt_nr,
    i.status, i.event_range_id, r.def_min_event_id, r.def_max_event_id, coalesce(r.status, '')
FROM (SELECT * FROM brokerage_jobinput WHERE job_id = %s ORDER BY id LIMIT %s) AS i
    JOIN workqueues_file f ON f.id = i.file_id JOIN workqueues_dataset d ON d.id = f.dataset_id
    LEFT JOIN workqueues_eventrange r ON r.id = i.event_range_id
ORDER BY i.id
"""


def inputs_of_job(job_id: int, *, using: str = DEFAULT_DB_ALIAS, most: int | None = None) -> list[InputOfJob]:
    """The first `most` inputs of a job; one statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(_INPUTS, [job_id, most])
        return [InputOfJob(*row) for row in cursor.fetchall()]
