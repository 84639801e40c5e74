"""The one way in which transfers change their status: only along the machine, under the key seen, with a history row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from broker_site.foundation.sql.prepared import Call, Prepared
from brokerage.states import TRANSFER

_MOVE = Prepared(
    "move_transfers",
    "bigint[], text[], text[], text, bool, text, text[], text[], float8[], text[], text[], text[], text[], text, float8",
    """
    WITH seen AS (
        SELECT t.id, t.status, asked.*
        FROM brokerage_transfer t JOIN unnest($1, $2::uuid[], $7, $8, $9, $10, $11, $12::uuid[], $13)
            AS asked(asked_id, asked_key, why, reason, wait_s, new_source, new_site, new_key, failed_source)
            ON asked.asked_id = t.id
        WHERE t.status = ANY($3) AND (asked.asked_key IS NULL OR t.key = asked.asked_key)
        ORDER BY t.id FOR NO KEY UPDATE OF t
    ), moved AS (
        UPDATE brokerage_transfer t
        SET status = $4, status_since = now(), ended_at = CASE WHEN $5 THEN now() END,
            reason = coalesce(s.reason, ''), message = CASE WHEN s.reason IS NULL THEN '' ELSE s.why END,
            next_at = now() + make_interval(secs => s.wait_s),
            source = coalesce(s.new_source, t.source), source_site = coalesce(s.new_site, t.source_site),
            attempt = t.attempt + CASE WHEN s.new_key IS NULL THEN 0 ELSE 1 END, key = coalesce(s.new_key, t.key),
            failed_sources = CASE WHEN s.failed_source IS NULL THEN t.failed_sources ELSE t.failed_sources || s.failed_source END,
            backend = coalesce($14, t.backend), claimed_until = now() + make_interval(secs => $15)
        FROM seen s WHERE t.id = s.id RETURNING t.id, s.status AS old, t.attempt, s.why
    ), noted AS (
        INSERT INTO brokerage_transferchange (transfer_id, old, new, attempt, who, why)
        SELECT id, old, $4, attempt, $6, left(why, 255) FROM moved
    )
    SELECT id FROM moved ORDER BY id
    """,
)


@dataclass(frozen=True, slots=True)
class TransferMove:
    """One move of a transfer. `key`: the attempt that was seen, None whichever it is.

    `reason`: why the attempt failed or the transfer ends, with `why` as the words. `wait_s`: how long it rests. `source`, `site`
    and `new_key`: the place and the key of a new attempt. `failed_source`: the endpoint that is to blame.
    """

    id: int
    why: str = ""
    key: UUID | None = None
    reason: str | None = None
    wait_s: float | None = None
    source: str | None = None
    site: str | None = None
    new_key: UUID | None = None
    failed_source: str | None = None


def move_transfers(
    moves: Sequence[TransferMove],
    new: str,
    who: str,
    *,
    sources: Sequence[str] = (),
    backend: str | None = None,
    claim_s: float | None = None,
) -> Call:
    """The move, to be run, of those that are in a state from which `new` can be reached: a row with its id for each that moved.

    `sources` narrows the states; `claim_s`: how long who submits them may take.
    """
    columns = zip(
        *(
            (m.id, _text(m.key), m.why[:500], m.reason, m.wait_s, m.source, m.site, _text(m.new_key), m.failed_source)
            for m in moves
        ),
        strict=True,
    )
    ids, keys, whys, reasons, waits, places, sites, new_keys, failed = map(list, columns) if moves else ([] for _ in range(9))
    allowed = [s for s in TRANSFER.sources(new) if not sources or s in sources]
    return _MOVE.with_values(
        ids, keys, allowed, new, new in TRANSFER.final, who[:128], whys, reasons, waits, places, sites, new_keys, failed, backend,
        claim_s,
    )  # fmt: skip


def _text(key: UUID | None) -> str | None:
    return None if key is None else str(key)
