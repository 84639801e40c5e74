"""Transfers that stay queued: those that rest, those that are due again, and those that are planned from another place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

from broker_site.foundation.sql.prepared import Prepared
from brokerage.ledger.transfers.moves import TransferMove, move_transfers

_REST = Prepared(
    "rest_transfers",
    "bigint[], text[], text[], float8",
    """
    UPDATE brokerage_transfer t SET next_at = now() + make_interval(secs => $4), reason = g.reason, message = g.why
    FROM unnest($1, $2, $3) AS g(id, reason, why) WHERE t.id = g.id AND t.status = 'queued'
    """,
)
_PLAN = Prepared(
    "plan_transfers",
    "bigint[], text[], text[], bool[]",
    """
    UPDATE brokerage_transfer t SET source = g.source, source_site = g.site, tape = g.tape
    FROM unnest($1, $2, $3, $4) AS g(id, source, site, tape)
    WHERE t.id = g.id AND t.status = 'queued' AND t.destination <> g.source
    """,
)
_WAKE = Prepared(
    "wake_transfers",
    "int",
    """
    WITH due AS (
        SELECT id FROM brokerage_transfer WHERE status = 'queued' AND next_at <= now()
        ORDER BY next_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE brokerage_transfer t SET next_at = NULL FROM due WHERE t.id = due.id RETURNING t.id
    """,
)


def try_again(moves: Sequence[TransferMove], who: str) -> list[int]:
    """Attempts failed, and another one follows after a rest: which of these transfers moved."""
    with transaction.atomic():
        return [id_ for (id_,) in move_transfers(moves, "queued", who).run()]


class Rest(NamedTuple):
    """A transfer that cannot begin now, and why."""

    id: int
    reason: str
    why: str


class NewSource(NamedTuple):
    """A transfer that is planned from another place."""

    id: int
    source: str
    site: str
    tape: bool


def rest(rests: Sequence[Rest], seconds: float) -> None:
    """Let transfers, which the caller has locked, wait, with the reason on them."""
    if rests:
        _REST.run([r.id for r in rests], [r.reason for r in rests], [r.why[:500] for r in rests], seconds)


def plan_anew(plans: Sequence[NewSource]) -> None:
    """Plan transfers, which the caller has locked, from other places: their turns come on those links."""
    if plans:
        _PLAN.run([p.id for p in plans], [p.source for p in plans], [p.site for p in plans], [p.tape for p in plans])


def wake(most: int) -> int:
    """Make those due whose rest is over: how many."""
    return len(_WAKE.run(most))
