"""Pilots: registered and seen; handing a job to one and keeping its lease, the hot path.

Each verb is one statement, so one transaction and one round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, connection

from broker_site.foundation.sql.prepared import Prepared
from brokerage.models import Pilot


@dataclass(frozen=True, slots=True)
class Lease:
    """A job that a pilot holds from now on, for `lease_s` seconds unless renewed; `epoch` fences everything it reports."""

    job_id: int
    epoch: int
    attempt_nr: int
    task_id: int
    lease_s: float


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The answer to a heartbeat: the job's state, whether it is to be killed, and how long the lease is from now (seconds)."""

    status: str
    kill: bool
    lease_s: float


_AGAIN = Prepared(
    "lease_again",
    "uuid, uuid",
    """
    UPDATE brokerage_job SET lease_until = now() + make_interval(secs => lease_s), last_seen = now()
    WHERE lease_holder = $1 AND lease_request = $2 AND status = 'sent' RETURNING id, epoch, attempt_nr, task_id, lease_s
    """,
)

_LEASE = Prepared(
    "lease",
    "int, uuid, uuid, float8",
    """
    WITH sent AS (
        UPDATE brokerage_job j
        SET status = 'sent', status_since = now(), epoch = j.epoch + 1, ready_priority = NULL, lease_holder = $2,
            lease_request = $3, lease_until = now() + make_interval(secs => $4), lease_s = $4, last_seen = now()
        WHERE j.id = (
            SELECT id FROM brokerage_job WHERE task_queue_id = $1 AND ready_priority IS NOT NULL
                AND NOT EXISTS (SELECT FROM brokerage_job WHERE lease_holder = $2 AND lease_request = $3)
            ORDER BY ready_priority, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
        RETURNING j.id, j.epoch, j.attempt_nr, j.task_id
    ), noted AS (
        INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who, why)
        SELECT id, 'activated', 'sent', epoch, 'pilot:' || $2, 'leased by a pilot' FROM sent
    )
    SELECT id, epoch, attempt_nr, task_id FROM sent
    """,
)

_RENEW = Prepared(
    "renew",
    "bigint, int",
    """
    UPDATE brokerage_job SET last_seen = now(), lease_until = now() + make_interval(secs => lease_s)
    WHERE id = $1 AND epoch = $2 AND lease_until IS NOT NULL RETURNING status, kill_requested, lease_s
    """,
)

_ADVANCE = Prepared(
    "advance",
    "bigint, int, text, text[], text",
    """
    WITH seen AS (
        SELECT id, status FROM brokerage_job WHERE id = $1 AND epoch = $2 AND status = ANY($4) FOR NO KEY UPDATE
    ), moved AS (
        UPDATE brokerage_job j SET status = $3, status_since = now(), last_seen = now(),
            lease_until = now() + make_interval(secs => j.lease_s)
        FROM seen WHERE j.id = seen.id RETURNING j.id, seen.status AS old, j.epoch, j.kill_requested, j.lease_s
    ), noted AS (
        INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who, why)
        SELECT id, old, $3, epoch, $5, 'pilot reports ' || $3 FROM moved
    )
    SELECT kill_requested, lease_s FROM moved
    """,
)


def lease_again(pilot: UUID, request: UUID) -> Lease | None:
    """The job that this very ask got before, if its answer was lost and the job is still only sent."""
    for job_id, epoch, attempt_nr, task_id, lease_s in _AGAIN.run(pilot, request):
        return Lease(job_id, epoch, attempt_nr, task_id, lease_s)
    return None


def lease(task_queues: Iterable[int], pilot: UUID, request: UUID, lease_s: float) -> Lease | None:
    """Give the pilot the first ready job of the first of `task_queues` that has one.

    None when none has, or when this very ask got a job before (`lease_again`): one ask never gets two.
    """
    holder, ask = str(pilot), str(request)
    try:
        for task_queue in task_queues:
            for job_id, epoch, attempt_nr, task_id in _LEASE.run(task_queue, holder, ask, lease_s):
                return Lease(job_id, epoch, attempt_nr, task_id, lease_s)
    except IntegrityError:
        return None  # the same ask has just got its job through another process
    return None


def renew(job_id: int, epoch: int) -> LeaseState | None:
    """Prolong the lease; None when it is over (another epoch, or the job ended)."""
    for status, kill, lease_s in _RENEW.run(job_id, epoch):
        return LeaseState(status, kill, lease_s)
    return None


def advance(job_id: int, epoch: int, status: str, sources: Sequence[str], who: str) -> LeaseState | None:
    """Prolong the lease and move the job to `status` (starting, running) from one of `sources`.

    None when it is in none of them.
    """
    for kill, lease_s in _ADVANCE.run(job_id, epoch, status, list(sources), who):
        return LeaseState(status, kill, lease_s)
    return None


SEEN_EVERY_S = 30
"""How exact the last sign of life of an idle pilot is; less often means fewer writes."""


def register(pilot: Pilot) -> None:
    pilot.save(force_insert=True)


def note_seen(pilot_id: UUID) -> None:
    """Note that the pilot asked, at most every SEEN_EVERY_S."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE brokerage_pilot SET last_seen = now() WHERE id = %s AND last_seen < now() - make_interval(secs => %s)",
            [pilot_id, SEEN_EVERY_S],
        )


def note_start(job_id: int) -> None:
    """Note that a job began to run at its queue, at most once a minute per queue."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE brokerage_computingqueue SET last_start = now()
            WHERE id = (SELECT computing_queue_id FROM brokerage_job WHERE id = %s)
              AND (last_start IS NULL OR last_start < now() - interval '1 minute')
            """,
            [job_id],
        )
