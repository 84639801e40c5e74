"""Leases: jobs are handed to pilots that ask, the hot path. Keeping a lease: `heartbeats`.

Each ask is one statement, those about open jobs together one more; all are made to run in one round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction

from broker_site.foundation.sql.prepared import Call, Prepared, run_together
from brokerage.ledger.match_blocks import holds
from brokerage.ledger.match_gauges import BLOCKS, PARAMETERS, Passing, asked, counting

ROTATE_S = 120
"""The answer to a heartbeat under a job token that is older brings a new one; a younger one stays, so that tokens are few."""
OVERLAP_S = 60
"""So long after a token was issued may those before it be shown, once it was shown itself: requests may be on their way.

Until a token was shown nobody knows that its answer came: the ones before it work, however long answers are lost.
"""
ANY_TOKEN = 2**40
"""For callers inside of the server, which show no token."""


def good_token(issued: str) -> str:
    """The condition that a job token, issued at the second `issued`, is no older than the newest shown, or that this is young."""
    young = f"token_since > now() - make_interval(secs => {OVERLAP_S})"
    return f"token_since IS NULL OR token_since <= to_timestamp({issued}::float8) OR {young}"


@dataclass(frozen=True, slots=True)
class Lease:
    """A job that a pilot holds from now on, for `lease_s` seconds unless renewed; `epoch` fences everything it reports.

    `issued`: when its job token was issued, seconds since 1970.
    """

    job_id: int
    epoch: int
    attempt_nr: int
    task_id: int
    lease_s: float
    issued: int = 0


FROM_THE_START = (-(2**31), 0)


@dataclass(frozen=True, slots=True)
class HeldAtMost:
    """What a pilot may hold at a time: cores, and leases (0: as many as its cores take)."""

    cores: int = 10_000
    leases: int = 0


class Ask(NamedTuple):
    """A pilot's request for up to `n` jobs of a task queue, each for `lease_s` seconds, within what it may hold at `most`.

    `first`: (-priority, id) of the first job that waits there, as it was read: those before it are not looked at, as they are
    gone. `window`: one of so many oldest jobs with the priority of `first`, at random; 0: the first. Of open jobs, which are
    placed when they are leased: the computing queue that they go to, the storage endpoint of their outputs there, and whether
    these go to datasets of that queue alone. `limits` on kinds of jobs that the ask has to pass: it gets one job at most, which
    is counted.
    """

    task_queue: int
    pilot: UUID
    request: UUID
    lease_s: float
    most: HeldAtMost
    n: int = 1
    first: tuple[int, int] = FROM_THE_START
    window: int = 0
    queue_id: int = 0
    storage: str = ""
    own_datasets: bool = True
    limits: Passing | None = None


ISSUED = "extract(epoch FROM token_since)::bigint"
SUBMITTED = "status = 'starting' AND lease_holder = lease_request"
"""A job whose pilot was submitted for it, and may yet come: its number is also that of the ask."""

_AGAIN = Prepared(
    "lease_again",
    "uuid, uuid",
    f"""
    UPDATE brokerage_job SET lease_until = now() + make_interval(secs => lease_s), last_seen = now()
    WHERE lease_holder = $1 AND lease_request = $2 AND (status = 'sent' OR {SUBMITTED})
    RETURNING id, epoch, attempt_nr, task_id, lease_s, {ISSUED}
    """,
)

# The place that a lease gets among those of its pilot is free as far as this statement sees, and unique by an index: of two asks
# at once that count the same leases and cores one is refused.
_HELD = """
    WITH held AS MATERIALIZED (
        SELECT coalesce(max(lease_slot) + 1, 0) AS slot,
            greatest(0, least($7, CASE WHEN $6 > 0 THEN $6 - count(*)::int ELSE $7 END, ($5 - coalesce(sum(core_count), 0)::int)
                / greatest((SELECT core_count FROM brokerage_taskqueue WHERE id = $1), 1))) AS room
        FROM brokerage_job WHERE lease_holder = $2
        HAVING NOT coalesce(bool_or(lease_request = $3), false)
    ), """
_ROOM = "coalesce((SELECT room FROM held), 0)"
_ROOM_WITHIN = f"CASE WHEN (SELECT passed FROM limits) THEN least({_ROOM}, 1) ELSE 0 END"
_ROOM_UNDER = f"CASE WHEN {holds('$13', '$14')} THEN least({_ROOM}, 1) ELSE 0 END"
_STORAGE_THERE = " AND ({storage} = '' OR EXISTS (SELECT FROM brokerage_storageendpoint e WHERE e.name = {storage}))"
_FIRST_JOBS = """ready AS MATERIALIZED (
        SELECT id FROM brokerage_job
        WHERE task_queue_id = $1 AND ready_priority IS NOT NULL AND (ready_priority, id) >= ($8, $9){there}
        ORDER BY ready_priority, id LIMIT {room} FOR NO KEY UPDATE SKIP LOCKED
    )"""
_ANY_OF_THE_OLDEST = """ready AS MATERIALIZED (
        SELECT id FROM brokerage_job
        WHERE task_queue_id = $1 AND ready_priority = $8{there} AND id = ANY (ARRAY(
            SELECT id FROM brokerage_job WHERE task_queue_id = $1 AND ready_priority = $8 ORDER BY id LIMIT $10))
        ORDER BY random() LIMIT {room} FOR NO KEY UPDATE SKIP LOCKED
    )"""
_SEND = """sent AS (
        UPDATE brokerage_job j
        SET status = 'sent', status_since = now(), epoch = j.epoch + 1, ready_priority = NULL, lease_holder = $2,
            lease_request = $3, lease_slot = {slot},
            lease_until = now() + make_interval(secs => $4), lease_s = $4, last_seen = now(),
            token_since = date_trunc('second', now()){to_the_queue}
        {chosen}
        RETURNING j.id, j.epoch
    )"""
_TO_THE_QUEUE = ", computing_queue_id = {queue}, storage = {storage}"
_NOTED = """
    INSERT INTO brokerage_jobchange (job_id, old, new, epoch, who, why)
    SELECT id, 'activated', 'sent', epoch, 'pilot:' || $2, 'leased by a pilot' FROM sent
    RETURNING job_id, epoch"""
_ALL_READY = {
    "slot": "(SELECT slot FROM held) + chosen.number",
    "chosen": "FROM (SELECT id, (row_number() OVER ())::int - 1 AS number FROM ready) AS chosen WHERE j.id = chosen.id",
}
_PLACE = {"queue": "$11", "storage": "$12"}
_THERE = _STORAGE_THERE.format(**_PLACE)
_SENT_HERE, _SENT_THERE = (_SEND.format(**_ALL_READY, to_the_queue=to) for to in ("", _TO_THE_QUEUE.format(**_PLACE)))
_BOUND, _OPEN = f", {_SENT_HERE}{_NOTED}", f", {_SENT_THERE}{_NOTED}"
_FIRST, _FIRST_OPEN = (_FIRST_JOBS.format(there=there, room=_ROOM) for there in ("", _THERE))
_ANY, _ANY_OPEN = (_ANY_OF_THE_OLDEST.format(there=there, room=_ROOM) for there in ("", _THERE))
_FIRST_UNDER, _FIRST_OPEN_UNDER = (_FIRST_JOBS.format(there=there, room=_ROOM_UNDER) for there in ("", _THERE))
_ANY_UNDER, _ANY_OPEN_UNDER = (_ANY_OF_THE_OLDEST.format(there=there, room=_ROOM_UNDER) for there in ("", _THERE))
_FIRST_WITHIN, _FIRST_OPEN_WITHIN = (_FIRST_JOBS.format(there=there, room=_ROOM_WITHIN) for there in ("", _THERE))
_ANY_WITHIN, _ANY_OPEN_WITHIN = (_ANY_OF_THE_OLDEST.format(there=there, room=_ROOM_WITHIN) for there in ("", _THERE))
_ASKED = f"{_HELD}{asked(first=13)}, "
_TYPES = "int, uuid, uuid, float8, int, int, int, int, bigint, int, int, text"
_TYPES_UNDER, _TYPES_WITHIN = f"{_TYPES}, {BLOCKS}", f"{_TYPES}, {PARAMETERS}"
_NO_LIMITS, _UNDER, _WITHIN = "no limits", "under blocks", "within limits"
"""No kinds of jobs are limited; they are, and the job is leased under blocks of matches alone; gauges are asked as well."""
_BY_KIND = {
    (False, False, _NO_LIMITS): Prepared("lease", _TYPES, f"{_HELD}{_FIRST}{_BOUND}"),
    (False, True, _NO_LIMITS): Prepared("lease_open", _TYPES, f"{_HELD}{_FIRST_OPEN}{_OPEN}"),
    (True, False, _NO_LIMITS): Prepared("lease_any", _TYPES, f"{_HELD}{_ANY}{_BOUND}"),
    (True, True, _NO_LIMITS): Prepared("lease_any_open", _TYPES, f"{_HELD}{_ANY_OPEN}{_OPEN}"),
    (False, False, _UNDER): Prepared("lease_under", _TYPES_UNDER, f"{_HELD}{_FIRST_UNDER}{_BOUND}"),
    (False, True, _UNDER): Prepared("lease_open_under", _TYPES_UNDER, f"{_HELD}{_FIRST_OPEN_UNDER}{_OPEN}"),
    (True, False, _UNDER): Prepared("lease_any_under", _TYPES_UNDER, f"{_HELD}{_ANY_UNDER}{_BOUND}"),
    (True, True, _UNDER): Prepared("lease_any_open_under", _TYPES_UNDER, f"{_HELD}{_ANY_OPEN_UNDER}{_OPEN}"),
    (False, False, _WITHIN): Prepared("lease_within", _TYPES_WITHIN, f"{_ASKED}{_FIRST_WITHIN}{_BOUND}"),
    (False, True, _WITHIN): Prepared("lease_open_within", _TYPES_WITHIN, f"{_ASKED}{_FIRST_OPEN_WITHIN}{_OPEN}"),
    (True, False, _WITHIN): Prepared("lease_any_within", _TYPES_WITHIN, f"{_ASKED}{_ANY_WITHIN}{_BOUND}"),
    (True, True, _WITHIN): Prepared("lease_any_open_within", _TYPES_WITHIN, f"{_ASKED}{_ANY_OPEN_WITHIN}{_OPEN}"),
}
"""By (there is a window, the jobs are open, limits on kinds of jobs)."""

# Nearly every ask: of a pilot that holds one job at a time. Its place is the first one, and nothing has to be counted.
_ONLY_JOB = """
    WHERE j.id = (
        SELECT id FROM brokerage_job
        WHERE task_queue_id = $1 AND ready_priority IS NOT NULL AND (ready_priority, id) >= ($6, $7) AND core_count <= $5{more}
            AND NOT EXISTS (SELECT FROM brokerage_job WHERE lease_holder = $2)
        ORDER BY ready_priority, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)"""
_ONLY_PLACE = {"queue": "$8", "storage": "$9"}
_ONLY_THERE, _ONLY_TO_THE_QUEUE = _STORAGE_THERE.format(**_ONLY_PLACE), _TO_THE_QUEUE.format(**_ONLY_PLACE)
_ONLY_TYPES = "int, uuid, uuid, float8, int, int, bigint"
_ONLY_OPEN_TYPES = f"{_ONLY_TYPES}, int, text"
_ONLY_TYPES_UNDER, _ONLY_OPEN_TYPES_UNDER = f"{_ONLY_TYPES}, {BLOCKS}", f"{_ONLY_OPEN_TYPES}, {BLOCKS}"
_IF_HELD, _IF_HELD_THERE = f" AND {holds('$8', '$9')}", f"{_ONLY_THERE} AND {holds('$10', '$11')}"
_ONLY_SENT, _ONLY_SENT_UNDER = (
    _SEND.format(slot=0, to_the_queue="", chosen=_ONLY_JOB.format(more=more)) for more in ("", _IF_HELD)
)
_ONLY_SENT_THERE, _ONLY_SENT_THERE_UNDER = (
    _SEND.format(slot=0, to_the_queue=_ONLY_TO_THE_QUEUE, chosen=_ONLY_JOB.format(more=more))
    for more in (_ONLY_THERE, _IF_HELD_THERE)
)
_ONLY = {
    (False, _NO_LIMITS): Prepared("lease_only", _ONLY_TYPES, f"WITH {_ONLY_SENT}{_NOTED}"),
    (True, _NO_LIMITS): Prepared("lease_only_open", _ONLY_OPEN_TYPES, f"WITH {_ONLY_SENT_THERE}{_NOTED}"),
    (False, _UNDER): Prepared("lease_only_under", _ONLY_TYPES_UNDER, f"WITH {_ONLY_SENT_UNDER}{_NOTED}"),
    (True, _UNDER): Prepared("lease_only_open_under", _ONLY_OPEN_TYPES_UNDER, f"WITH {_ONLY_SENT_THERE_UNDER}{_NOTED}"),
}
"""By (the jobs are open, limits on kinds of jobs)."""

OUTPUTS = Prepared(
    "place_outputs",
    "text[], text[], int[]",
    """
    WITH moving AS MATERIALIZED (
        SELECT f.id, f.dataset_id AS here, c.id AS there
        FROM unnest($1::uuid[], $2::uuid[], $3) AS ask(pilot, request, queue)
            JOIN brokerage_computingqueue q ON q.id = ask.queue
            CROSS JOIN LATERAL (
                SELECT id FROM brokerage_job j WHERE lease_holder = ask.pilot AND lease_request = ask.request AND status = 'sent'
                OFFSET 0) AS j
            CROSS JOIN LATERAL (SELECT id, dataset_id FROM workqueues_file WHERE out_job_id = j.id OFFSET 0) AS f
            JOIN workqueues_dataset d ON d.id = f.dataset_id AND d.template_id IS NOT NULL AND d.site NOT IN ('', q.name)
            JOIN workqueues_dataset c ON c.template_id = d.template_id AND c.site = q.name
    ), changed AS (
        SELECT id, sum(n)::int AS n FROM (
            SELECT here AS id, -1 AS n FROM moving UNION ALL SELECT there, 1 FROM moving) AS v GROUP BY 1
    ), locked AS MATERIALIZED (
        SELECT d.id, changed.n FROM workqueues_dataset d JOIN changed USING (id) ORDER BY d.id FOR NO KEY UPDATE OF d
    ), counted AS (
        UPDATE workqueues_dataset d SET n_files = d.n_files + locked.n, n_files_used = d.n_files_used + locked.n,
            n_files_to_be_used = d.n_files_to_be_used + locked.n
        FROM locked WHERE locked.id = d.id
    )
    UPDATE workqueues_file f SET dataset_id = moving.there FROM moving WHERE f.id = moving.id
    """,
)
"""Where each queue has datasets of its own, the outputs of open jobs go to those of the queue at which they were leased."""

_LEASED = Prepared(
    "leased",
    "bigint, int",
    f"SELECT id, epoch, attempt_nr, task_id, lease_s, {ISSUED} FROM brokerage_job WHERE id = $1 AND epoch = $2",
)
_GOOD_TOKEN = good_token("$3")
_REPLACED = Prepared(
    "replaced_token",
    "bigint, int, bigint",
    f"SELECT 1 FROM brokerage_job WHERE id = $1 AND epoch = $2 AND lease_until IS NOT NULL AND NOT ({_GOOD_TOKEN})",
)


def leasing(asks: Sequence[Ask]) -> list[Call]:
    """To give each of these asks, of different pilots, the first ready jobs of its task queue, within what it may hold.

    Each gives the ids and epochs of its jobs.
    An ask that got jobs before gets none. Of two asks of a pilot at once one may raise IntegrityError, and nobody got any. Where
    each queue has datasets of its own the outputs of open jobs go there, in one statement at the end: so any two transactions
    lock datasets in one order.
    """
    calls = [_leasing(ask) for ask in asks]
    calls += [counting(ask.pilot, ask.request, ask.limits) for ask in asks if ask.limits and ask.limits.ids]
    if placed := [ask for ask in asks if ask.queue_id and ask.own_datasets]:
        columns = zip(*((str(ask.pilot), str(ask.request), ask.queue_id) for ask in placed), strict=True)
        calls.append(OUTPUTS.with_values(*map(list, columns)))
    return calls


def _leasing(ask: Ask) -> Call:
    """The statement that gives an ask its jobs."""
    whose = ask.task_queue, ask.pilot, ask.request, ask.lease_s, ask.most.cores
    kind, limits = _limits_of(ask)
    if ask.most.leases == 1 and not ask.window and kind != _WITHIN:
        place = (ask.queue_id, ask.storage) if ask.queue_id else ()
        return _ONLY[ask.queue_id > 0, kind].with_values(*whose, *ask.first, *place, *limits)
    statement = _BY_KIND[ask.window > 0, ask.queue_id > 0, kind]
    return statement.with_values(*whose, ask.most.leases, ask.n, *ask.first, ask.window, ask.queue_id, ask.storage, *limits)


def _limits_of(ask: Ask) -> tuple[str, tuple[Any, ...]]:
    """The kind of statement that the limits of an ask take, and their values there."""
    if ask.limits is None:
        return _NO_LIMITS, ()
    # Of blocks alone no gauge is asked: what is made under them was counted when they were taken.
    return (_WITHIN, ask.limits.columns) if ask.limits.ids or not ask.limits.blocks else (_UNDER, ask.limits.blocks_columns)


def leasing_again(pilot: UUID, request: UUID) -> Call:
    """To prolong the leases of the jobs that this very ask got before, if its answer was lost and they are still only sent."""
    return _AGAIN.with_values(pilot, request)


def lease(
    task_queues: Iterable[int | Ask], pilot: UUID, request: UUID, lease_s: float, most: HeldAtMost = HeldAtMost()
) -> Lease | None:
    """Give the pilot the first ready job of the first of `task_queues` that has one, within what it may hold at `most`.

    Of open jobs the whole ask is given, with its place. None when none has, or when this very ask got a job before
    (`leasing_again`): one ask never gets two. The short way of tests; asks of pilots go through the matcher, with the same
    statements (`leasing`).
    """
    try:
        for one in task_queues:
            first, *others = leasing([Ask(one, pilot, request, lease_s, most) if isinstance(one, int) else one])
            with transaction.atomic():
                rows = first.run()
                run_together(others)
                for row in rows:
                    return Lease(*_LEASED.run(*row)[0])
    except IntegrityError:
        return None  # this ask, or another of the same pilot, has just got its job through another process
    return None


def is_replaced(job_id: int, epoch: int, token: int) -> bool:
    """Whether the lease goes on under a newer token."""
    return bool(_REPLACED.run(job_id, epoch, token))
