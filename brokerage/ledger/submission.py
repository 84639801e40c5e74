"""Jobs as they are submitted: sent with a pilot of their own, claimed by the process that comes as it, and given up (row W4).

A submitted job is held by its pilot from the beginning, whose number is also that of the ask: the pilot repeats an ask that had
its answer before. So a job is submitted once, whoever runs this twice; and one whose pilot never comes ends with its lease.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, cast
from uuid import UUID, uuid4

from django.db import connection

from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.expiry import SUB_STATUS, end_seen
from brokerage.ledger.lease import OUTPUTS
from brokerage.ledger.moves import move_jobs
from brokerage.queries.submission import HeldJob
from brokerage.rules.dispatch.settlement import Ending, JobVersion
from brokerage.rules.submission.submission_cycle import CODES, UNSTARTABLE
from brokerage.states import JOB, PILOT_CLOSED

MOST_TRIES = 3
"""So often a pilot may fail to start."""
_ALONE = "SELECT pg_try_advisory_xact_lock(hashtext('submission of jobs'))"


class NewSubmission(NamedTuple):
    """A job and where it goes. `storage`: of an open job, that of its outputs there."""

    job_id: int
    site: str
    kind: str
    queue_id: int
    storage: str
    submitter: str
    lease_s: float


class Order(NamedTuple):
    """A pilot to be started, for one job; cores, MB, MB, s: what the job needs, 0: not known."""

    job_id: int
    pilot: UUID
    queue: str
    site: str
    cores: int
    memory_mb: int
    disk_mb: int
    walltime_s: int


_SUBMIT = Prepared(
    "submit_jobs",
    "bigint[], text[], text[], text[], int[], text[], text[], float8[], text",
    """
    WITH asked AS MATERIALIZED (
        SELECT * FROM unnest($1, $2::uuid[], $3, $4, $5, $6, $7, $8)
            AS a(id, pilot, site, kind, queue, storage, submitter, lease_s)
    ), ready AS MATERIALIZED (
        SELECT j.id, j.computing_queue_id IS NULL AS open FROM brokerage_job j JOIN asked ON asked.id = j.id
        WHERE j.ready_priority IS NOT NULL AND (j.computing_queue_id = asked.queue OR j.computing_queue_id IS NULL AND (
            asked.storage = '' OR EXISTS (SELECT FROM brokerage_storageendpoint e WHERE e.name = asked.storage)))
        ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
    ), sent AS (
        UPDATE brokerage_job j
        SET status = 'sent', status_since = now(), epoch = j.epoch + 1, ready_priority = NULL, lease_holder = asked.pilot,
            lease_request = asked.pilot, lease_slot = 0, lease_until = now() + make_interval(secs => asked.lease_s),
            lease_s = asked.lease_s, last_seen = now(), token_since = date_trunc('second', now()),
            computing_queue_id = asked.queue, storage = CASE WHEN ready.open THEN asked.storage ELSE j.storage END
        FROM asked, ready WHERE j.id = asked.id AND ready.id = asked.id
        RETURNING j.id, j.epoch, j.core_count, asked.pilot, asked.site, asked.kind, asked.queue, asked.submitter, ready.open
    ), noted AS (
        INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who, why)
        SELECT id, 'activated', 'sent', epoch, $9, 'submitted to ' || site || ' with a pilot of its own' FROM sent
    ), pilots AS (
        INSERT INTO brokerage_pilot (id, queue_id, host, slot, core_count, memory_mb, disk_mb)
        SELECT pilot, queue, submitter, 'job-' || id, core_count, 0, 0 FROM sent
    ), rows AS (
        INSERT INTO brokerage_submittedjob (job_id, pilot_id, site_id, kind, submitter)
        SELECT id, pilot, site, kind, submitter FROM sent
    )
    SELECT id, pilot, queue, open FROM sent
    """,
)


def alone() -> bool:
    """Whether no other process submits; then none does until the caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(_ALONE)
        return bool(cursor.fetchone()[0])


def submit_jobs(jobs: Sequence[NewSubmission], who: str) -> set[int]:
    """Send those of the jobs that still wait, each to a pilot of its own that is yet to be started: which."""
    if not jobs:
        return set()
    columns = list(map(list, zip(*jobs, strict=True)))
    ids, sites, kinds, queues, storages, submitters, leases = columns
    rows = _SUBMIT.run(ids, [str(uuid4()) for _ in ids], sites, kinds, queues, storages, submitters, leases, who)
    if opened := [(str(pilot), queue) for _, pilot, queue, is_open in rows if is_open]:
        pilots = [pilot for pilot, _ in opened]
        OUTPUTS.run(pilots, pilots, [queue for _, queue in opened])
    return {id_ for id_, *_ in rows}


_TO_START = f"""
SELECT s.job_id, s.pilot_id, q.name, s.site_id, j.core_count, p.ram_mb, p.disk_mb, coalesce(nullif(p.walltime_s, 0), q.maxtime)
FROM brokerage_submittedjob s JOIN brokerage_job j ON j.id = s.job_id JOIN brokerage_jobspec p ON p.job_id = s.job_id
    JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
WHERE s.submitter = %s AND s.handle = '' AND s.claimed_by = '' AND j.lease_holder = s.pilot_id
    AND j.status IN ({JOB.starting.sql}) AND NOT j.kill_requested
ORDER BY s.submitted_at, s.job_id LIMIT %s FOR UPDATE OF s SKIP LOCKED
"""


def pilots_to_start(submitter: str, most: int) -> list[Order]:
    """Pilots that are not started, the oldest first; they are the caller's until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_TO_START, [submitter, most])
        return [Order(*row) for row in cursor.fetchall()]


def note_started(handles: Mapping[int, str], failed: Collection[int]) -> None:
    """Note by job which pilots were started, and which could not be."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE brokerage_submittedjob s SET handle = v.handle FROM unnest(%s::bigint[], %s::text[]) AS v(id, handle)"
            " WHERE s.job_id = v.id",
            [list(handles), [handle[:200] for handle in handles.values()]],
        )
        cursor.execute("UPDATE brokerage_submittedjob SET tries = tries + 1 WHERE job_id = ANY (%s)", [list(failed)])


def wait_at(submitter: str, jobs: Sequence[HeldJob], who: str) -> None:
    """The pilots of these jobs are with the submitter: from now on the jobs start, and have the time for that."""
    sent = [job for job in jobs if job.status == "sent" and not job.claimed]
    if sent:
        epochs = [job.epoch for job in sent]
        move_jobs(
            [job.job_id for job in sent], "starting", who, f"its pilot waits at {submitter}", epochs=epochs, sources=["sent"]
        ).run()


_CLAIM = Prepared(
    "claim_submitted_job",
    "uuid, int, text, text, text, int, int, int",
    f"""
    WITH claimed AS (
        UPDATE brokerage_submittedjob s SET claimed_by = $3 FROM brokerage_job j
        WHERE s.pilot_id = $1 AND j.id = s.job_id AND j.lease_holder = s.pilot_id AND j.computing_queue_id = $2
            AND j.status IN ({JOB.starting.sql}) AND NOT j.kill_requested AND s.claimed_by IN ('', $3)
        RETURNING s.pilot_id, s.job_id
    )
    UPDATE brokerage_pilot p SET host = $4, slot = $5, pid = nullif($6, 0), memory_mb = $7, disk_mb = $8,
        registered_at = now(), last_seen = now()
    FROM claimed WHERE p.id = claimed.pilot_id
    RETURNING p.core_count, (SELECT vo FROM brokerage_jobspec WHERE job_id = claimed.job_id)
    """,
)


class Coming(NamedTuple):
    """A process that comes as the pilot of a submitted job: where it runs, and what it offers."""

    host: str
    slot: str
    pid: int
    memory_mb: int
    disk_mb: int


class ClaimedJob(NamedTuple):
    """The job of a pilot that has come."""

    cores: int
    vo: str


def claim(pilot: UUID, queue_id: int, coming: Coming) -> ClaimedJob | None:
    """The process is this pilot from now on, and may say so again: its job. None: another is, or the job is over."""
    who = f"{coming.host} {coming.slot} {coming.pid}"
    rows = _CLAIM.run(str(pilot), queue_id, who, coming.host, coming.slot, coming.pid, coming.memory_mb, coming.disk_mb)
    return ClaimedJob(*rows[0]) if rows else None


_FORGET = f"""
DELETE FROM brokerage_submittedjob WHERE job_id IN (
    SELECT s.job_id FROM brokerage_submittedjob s LEFT JOIN brokerage_job j ON j.id = s.job_id
    WHERE j.id IS NULL OR j.lease_holder IS DISTINCT FROM s.pilot_id OR j.status NOT IN ({JOB.leased.sql})
    ORDER BY s.job_id FOR UPDATE OF s SKIP LOCKED)
"""
_RENEW = """
UPDATE brokerage_job SET lease_until = now() + make_interval(secs => lease_s), last_seen = now()
WHERE id IN (
    SELECT j.id FROM brokerage_job j JOIN unnest(%s::bigint[], %s::uuid[]) AS v(id, pilot) ON v.id = j.id
    WHERE v.pilot = j.lease_holder AND j.lease_until < now() + make_interval(secs => j.lease_s / 2)
    ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED)
"""


def forget_ended() -> int:
    """Submitted jobs that nobody holds any more are no more counted: how many."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET)
        return int(cursor.rowcount)


def renew(jobs: Sequence[HeldJob]) -> None:
    """The pilots of these jobs have not come, and may yet: their leases go on."""
    if jobs:
        with connection.cursor() as cursor:
            cursor.execute(_RENEW, [[job.job_id for job in jobs], [str(job.pilot) for job in jobs]])


def end_lost(gone: Mapping[int, str], jobs: Sequence[HeldJob], who: str) -> int:
    """Close the jobs whose pilots are over, with why: how many. One that was told of meanwhile stays as it is."""
    lost = [job for job in jobs if job.job_id in gone]
    return sum(end_seen([_version(job)], "closed", who, gone[job.job_id], sub_status=PILOT_CLOSED) for job in lost)


def end_unstartable(jobs: Sequence[HeldJob], who: str) -> int:
    """Close the jobs whose pilots could not be started so often: how many."""
    bad = [_version(job) for job in jobs if job.tries >= MOST_TRIES and not job.claimed and not job.handle]
    return end_seen(bad, "closed", who, f"{UNSTARTABLE}: {CODES[UNSTARTABLE]}", sub_status=PILOT_CLOSED, code=str(UNSTARTABLE))


def end_killed(jobs: Sequence[HeldJob], who: str) -> int:
    """End the jobs of which a kill was asked and whose pilots have not come, which nobody else would tell: how many."""
    ended = 0
    for job in jobs:
        if job.kill_requested and not job.claimed:
            outcome = cast("Ending", job.kill_outcome or "cancelled")
            ended += end_seen([_version(job)], outcome, who, job.kill_why or "killed", sub_status=SUB_STATUS[outcome])
    return ended


def close_nowhere(failed: Sequence[tuple[JobVersion, int]], who: str) -> int:
    """Close waiting jobs that can go nowhere, each with a code, so that their input goes elsewhere: how many."""
    ended = 0
    for code in sorted({code for _, code in failed}):
        jobs = [job for job, its in failed if its == code]
        ended += end_seen(jobs, "closed", who, f"{code}: {CODES[code]}", sub_status=SUB_STATUS["closed"], code=str(code))
    return ended


def _version(job: HeldJob) -> JobVersion:
    return JobVersion(job.job_id, job.epoch, job.status, job.task_id)
