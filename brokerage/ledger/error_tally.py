"""Ends of jobs by the fingerprint of their error, and the list of fingerprints (decision L3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from brokerage.ledger.tally_groups import NO_GROUP, Group
from brokerage.models import ErrorFingerprint
from brokerage.rules.dispatch.error_fingerprint import ANYTHING, EndError, Fingerprint, fingerprint
from brokerage.rules.facts.rollups import Family
from brokerage.states import JOB

MOST_FINGERPRINTS = 20_000
"""From so many on, new ones are counted without code and message: whoever writes messages must not fill the tables."""

# Of a fingerprint that is known all jobs have the same words, so any of their messages stands for all.
_ENDS = f"""
WITH changed AS MATERIALIZED ({{batch}})
SELECT date_trunc('minute', c.at), c.new, coalesce(t.vo, ''), coalesce(q.name, ''),
    coalesce(t.user_name, ''), r.fingerprint, min(r.reported_status),
    min(r.error_code), min(r.exit_code), min(r.error_message), min(c.job_id), min(c.at), count(*),
    coalesce(array_agg(DISTINCT j.task_id) FILTER (WHERE j.task_id IS NOT NULL), '{{{{}}}}')
FROM changed c JOIN brokerage_jobresult r ON r.job_id = c.job_id JOIN brokerage_job j ON j.id = c.job_id
    LEFT JOIN workqueues_task t ON t.id = j.task_id LEFT JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
WHERE c.new IN ({JOB.unsuccessful.sql})
GROUP BY 1, 2, 3, 4, 5, 6,
    CASE WHEN r.fingerprint IS NULL THEN (r.reported_status, r.error_code, r.exit_code, r.error_message) END
"""


class _End(NamedTuple):
    """Ends of one owner's jobs in a minute at a queue with one error."""

    minute: datetime
    what: str
    vo: str
    queue: str
    user_name: str
    stored: int | None
    reported: str
    code: str
    exit_code: int | None
    message: str
    job_id: int
    at: datetime
    n: int
    tasks: Sequence[int]

    @property
    def error(self) -> Fingerprint:
        return fingerprint(EndError(self.reported, self.code, self.exit_code, self.message))


class ErrorCounts(NamedTuple):
    """How many jobs ended with which error, and the minutes in which those of a task did, the first and the last."""

    counts: Mapping[tuple[datetime, str, Group], int]
    tasks: Mapping[tuple[Group, int], tuple[datetime, datetime]]


def count_errors(batch: str, values: Mapping[str, Any]) -> ErrorCounts:
    """How many jobs ended with which error, among the changes that the statement `batch` gives; new fingerprints are noted."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDS.format(batch=batch), values)
        ends = [_End(*row) for row in cursor.fetchall()]
    if not ends:
        return ErrorCounts({}, {})
    by_id: dict[int, list[_End]] = defaultdict(list)
    for end in ends:
        by_id[end.error.id if end.stored is None else end.stored].append(end)
    kept = _noted(by_id)
    counts: dict[tuple[datetime, str, Group], int] = defaultdict(int)
    minutes: dict[tuple[Group, int], list[datetime]] = defaultdict(list)
    for id_, same in by_id.items():
        for end in same:
            group = NO_GROUP._replace(family=Family.ERROR.value, vo=end.vo, fingerprint=kept[id_])
            counts[end.minute, end.what, group] += end.n
            counts[end.minute, end.what, group._replace(family=Family.ERROR_AT.value, queue=end.queue)] += end.n
            of_owner = group._replace(family=Family.ERROR_OF.value, user_name=end.user_name)
            counts[end.minute, end.what, of_owner] += end.n
            for task_id in end.tasks:
                minutes[of_owner, task_id].append(end.minute)
    return ErrorCounts(dict(counts), {task: (min(at), max(at)) for task, at in minutes.items()})


def _noted(by_id: Mapping[int, list[_End]]) -> dict[int, int]:
    """Fingerprint -> the one under which its ends are counted; each of these is in the list."""
    known = set(ErrorFingerprint.objects.filter(id__in=by_id).values_list("id", flat=True))
    kept = {id_: id_ for id_ in known}
    new = [id_ for id_ in by_id if id_ not in known]
    if not new:
        return kept
    room = MOST_FINGERPRINTS - ErrorFingerprint.objects.count()
    rows = []
    for place, id_ in enumerate(new):
        first = min(by_id[id_], key=lambda end: (end.at, end.job_id))
        error = first.error if place < room else Fingerprint(first.error.component, ANYTHING, 0, ANYTHING)
        kept[id_] = id_ if place < room else error.id
        rows.append(_row(kept[id_], error, first))
    ErrorFingerprint.objects.bulk_create(_once(rows), ignore_conflicts=True)
    return kept


def _row(id_: int, error: Fingerprint, first: _End) -> ErrorFingerprint:
    return ErrorFingerprint(
        id=id_,
        component=error.component,
        code=error.code,
        exit_code=error.exit_code,
        message=error.message,
        first_seen=first.at,
        sample_job_id=first.job_id,
    )


def _once(rows: Iterable[ErrorFingerprint]) -> list[ErrorFingerprint]:
    return list({row.id: row for row in reversed(list(rows))}.values())
