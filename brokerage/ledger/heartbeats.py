"""Signs of life of jobs under way: each prolongs its lease and carries the job's state. One statement for all that come together.

What they write is not waited for until it is on disk. A server that crashes forgets at most the last second of them, and the next
heartbeat says all of it again: how far the lease reaches, the state, the newest token that was shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from broker_site.foundation.agency.batches import concerns_all
from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.lease import ANY_TOKEN, ROTATE_S, good_token
from brokerage.ledger.lock_patience import LockPatience
from brokerage.states import JOB

_MOVES = " ".join(
    f"WHEN '{status}' THEN j.status IN ({', '.join(repr(each) for each in sorted(JOB.sources(status)))})"
    for status in JOB.heartbeat
)


_GOOD_TOKEN = good_token("said.token")
_SEEN = f"""
    SELECT j.id AS seen_id, j.status AS old, said.status AS told, said.token, CASE said.status {_MOVES} ELSE false END AS moves
    FROM (SELECT set_config('synchronous_commit', 'off', true) AS commit) AS quick,
        unnest($1, $2, $3, $4) AS said(id, epoch, token, status) JOIN brokerage_job j ON j.id = said.id AND j.epoch = said.epoch
    WHERE j.lease_until IS NOT NULL AND ({_GOOD_TOKEN}) AND quick.commit = 'off'
    FOR NO KEY UPDATE OF j
"""
_WRITE = f"""
    UPDATE brokerage_job SET status = CASE WHEN moves THEN told ELSE status END,
        status_since = CASE WHEN moves THEN now() ELSE status_since END,
        last_seen = now(), lease_until = now() + make_interval(secs => lease_s),
        token_since = CASE WHEN token = {ANY_TOKEN} THEN token_since ELSE greatest(token_since, to_timestamp(token::float8)) END
    FROM seen WHERE id = seen_id
    RETURNING id, old, moves, status, token, epoch, kill_requested, lease_s, computing_queue_id
"""
_TELL = f"""
    noted AS (
        INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who, why)
        SELECT id, old, status, epoch, 'job:' || id, 'pilot reports ' || status FROM held WHERE moves
    ), started AS (
        UPDATE brokerage_computingqueue SET last_start = now() WHERE id IN (
            SELECT q.id FROM brokerage_computingqueue q
            WHERE q.id IN (SELECT computing_queue_id FROM held WHERE moves AND status = 'running')
                AND (q.last_start IS NULL OR q.last_start < now() - interval '1 minute')
            FOR NO KEY UPDATE SKIP LOCKED)
    )
    SELECT id, status, kill_requested, lease_s,
        CASE WHEN token > extract(epoch FROM now()) - {ROTATE_S} THEN token ELSE floor(extract(epoch FROM now()))::bigint END
    FROM held
"""
"""A start is noted with its queue, at most once a minute, and not while somebody else writes there."""

_TYPES = "bigint[], int[], bigint[], text[]"
_ALONE = Prepared("beat_alone", _TYPES, f"WITH seen AS MATERIALIZED ({_SEEN}), held AS ({_WRITE}), {_TELL}")
_TOGETHER = Prepared("beat_together", _TYPES, f"WITH seen AS MATERIALIZED ({_SEEN} SKIP LOCKED), held AS ({_WRITE}), {_TELL}")
"""Together nobody waits for a lock, and no order matters: those that somebody else works on are left for `_ALONE`."""


@dataclass(frozen=True, slots=True)
class SignOfLife:
    """A lease that goes on, and the job's status (starting, running) as its pilot tells it, or none.

    `token`: when the job token that was shown was issued, seconds since 1970.
    """

    job_id: int
    epoch: int
    status: str = ""
    token: int = ANY_TOKEN


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The answer to a heartbeat: the job's state, whether it is to be killed, and how long the lease is from now (seconds).

    `issued`: when the job token that the caller goes on with is issued, seconds since 1970: one older than ROTATE_S is replaced.
    """

    status: str
    kill: bool
    lease_s: float
    issued: int = 0


def beat(signs: Sequence[SignOfLife]) -> list[LeaseState | None]:
    """Prolong these leases, of different jobs, and move each job to the status that is told if it may go there.

    None where the lease is over (another epoch, or the job ended), or the token was replaced. Raises what was in the way of one.
    """
    states: list[LeaseState | None] = []
    for state in beat_each(signs):
        if isinstance(state, Exception):
            raise state
        states.append(state)
    return states


def beat_each(signs: Sequence[SignOfLife]) -> list[LeaseState | Exception | None]:
    """The same, but what was in the way of one is told in its place. Of several none waits long for whoever works on a job."""
    if len(signs) == 1:
        return [_beat(_ALONE, signs).get(signs[0].job_id)]
    kept: dict[int, LeaseState | Exception] = {**_beat(_TOGETHER, signs)}
    patience = LockPatience()
    for sign in signs:
        if sign.job_id not in kept:  # somebody works on it, or its lease is over
            try:
                with transaction.atomic():
                    patience.limit()
                    kept |= _beat(_ALONE, [sign])
            except Exception as fault:
                if concerns_all(fault):
                    raise
                kept[sign.job_id] = fault
    return [kept.get(sign.job_id) for sign in signs]


def _beat(statement: Prepared, signs: Sequence[SignOfLife]) -> dict[int, LeaseState]:
    columns = zip(*((sign.job_id, sign.epoch, sign.token, sign.status) for sign in signs), strict=True)
    return {job_id: LeaseState(*state) for job_id, *state in statement.run(*map(list, columns))}
