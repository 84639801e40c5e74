"""Asking for files at places: one open transfer per file and destination, whoever wishes it, and a wish for everyone who does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction

from broker_site.foundation.agency.look import look_after_commit
from brokerage.queries.copy_places import copies_of, copy_places, link_facts
from brokerage.rules.transfers.sources import CopyPlace, LinkFacts, choose_source
from brokerage.rules.transfers.wishes import FileWish
from workqueues.ledger.moves import Stale

TURNS = 5
"""How often a wish is tried whose transfer ended while it was written down."""

_WISHED = """
unnest(%(files)s::bigint[], %(destinations)s::text[], %(roles)s::text[], %(activities)s::text[], %(vos)s::text[],
    %(owners)s::text[], %(shares)s::text[], %(priorities)s::int[], %(express)s::bool[], %(tapes)s::bool[], %(jobs)s::bigint[],
    %(tasks)s::bigint[], %(datasets)s::bigint[], %(sources)s::text[], %(sites)s::text[], %(places)s::text[])
    WITH ORDINALITY AS w(file_id, destination, role, activity, vo, owner, share, priority, express, tape, job_id, task_id,
        dataset_id, source, source_site, destination_site, number)
"""
_OPEN = f"""
WITH opened AS (
    INSERT INTO brokerage_transfer (file_id, destination, destination_site, source, source_site, status, activity, express,
        priority, vo, share, tape, bytes, checksum)
    SELECT DISTINCT ON (w.file_id, w.destination) w.file_id, w.destination, w.destination_site, w.source, w.source_site, 'queued',
        w.activity, w.express, w.priority, w.vo, w.share, w.tape, c.fsize, c.checksum
    FROM {_WISHED} JOIN workqueues_cataloguefile c ON c.id = w.file_id
    WHERE NOT EXISTS (
        SELECT FROM workqueues_replica r WHERE r.file_id = w.file_id AND r.storage = w.destination AND r.state = 'available')
    ORDER BY w.file_id, w.destination, w.express DESC, w.priority DESC
    ON CONFLICT (file_id, destination) WHERE ended_at IS NULL DO NOTHING RETURNING id
)
INSERT INTO brokerage_transferchange (transfer_id, old, new, who, why)
SELECT id, '-', 'queued', %(who)s, %(why)s FROM opened ORDER BY id
"""
_NEEDLESS = f"""
WITH needless AS (
    DELETE FROM brokerage_transfer t USING (SELECT DISTINCT w.file_id, w.destination FROM {_WISHED}) g, workqueues_replica r
    WHERE t.file_id = g.file_id AND t.destination = g.destination AND t.ended_at IS NULL AND t.created_at >= now()
        AND r.file_id = g.file_id AND r.storage = g.destination AND r.state = 'available'
        AND NOT EXISTS (SELECT FROM brokerage_transferwish w WHERE w.transfer_id = t.id)
    RETURNING t.id
)
DELETE FROM brokerage_transferchange c USING needless n WHERE c.transfer_id = n.id
"""
"""Opened while another transaction that brought the file was waited for."""
_WISH = f"""
WITH wished AS (SELECT * FROM {_WISHED}), seen AS (
    SELECT t.id, t.file_id, t.destination FROM brokerage_transfer t
    WHERE t.ended_at IS NULL AND (t.file_id, t.destination) IN (SELECT file_id, destination FROM wished)
    ORDER BY t.id FOR NO KEY UPDATE
), raised AS (
    UPDATE brokerage_transfer t SET priority = greatest(t.priority, n.priority), express = t.express OR n.express,
        activity = CASE WHEN n.express AND NOT t.express THEN n.activity ELSE t.activity END
    FROM (
        SELECT s.id, max(w.priority) AS priority, bool_or(w.express) AS express,
            min(w.activity) FILTER (WHERE w.express) AS activity
        FROM wished w JOIN seen s USING (file_id, destination) GROUP BY s.id
    ) n WHERE t.id = n.id AND (n.priority > t.priority OR n.express AND NOT t.express)
), wishes AS (
    INSERT INTO brokerage_transferwish (transfer_id, role, job_id, task_id, dataset_id, vo, owner)
    SELECT s.id, w.role, w.job_id, w.task_id, w.dataset_id, w.vo, w.owner
    FROM wished w JOIN seen s USING (file_id, destination) ORDER BY s.id, w.number ON CONFLICT DO NOTHING
)
SELECT w.number, s.id FROM wished w LEFT JOIN seen s USING (file_id, destination)
"""
_THERE = """
SELECT g.number
FROM unnest(%(files)s::bigint[], %(destinations)s::text[]) WITH ORDINALITY AS g(file_id, destination, number)
    JOIN workqueues_replica r ON r.file_id = g.file_id AND r.storage = g.destination
WHERE r.state = 'available' ORDER BY r.id FOR KEY SHARE OF r
"""
"""The copies are held until the caller's transaction ends, so that none is chosen for removal for which a job was made."""


def ask(wishes: Sequence[FileWish], who: str, why: str = "asked for") -> list[int | None]:
    """Write wishes down, in the caller's transaction: for each the transfer that will meet it, None where the file is there.

    An open transfer takes a further wish, and becomes more urgent where that is. Raises Stale where that cannot be settled now.
    """
    transfers: list[int | None] = [None] * len(wishes)
    left = sorted(range(len(wishes)), key=lambda i: (wishes[i].file_id, wishes[i].destination))
    places, links = copy_places(), link_facts()
    with transaction.atomic(), connection.cursor() as cursor:
        for _ in range(TURNS):
            if not left:
                break
            values = _values([wishes[i] for i in left], places, links) | {"who": who[:128], "why": why[:255]}
            cursor.execute(_OPEN, values)
            if cursor.rowcount:
                cursor.execute(_NEEDLESS, values)
            cursor.execute(_WISH, values)
            met = {left[number - 1]: transfer for number, transfer in cursor.fetchall() if transfer is not None}
            for i, transfer in met.items():
                transfers[i] = transfer
            left = [i for i in left if i not in met]
            if left:
                cursor.execute(_THERE, _values([wishes[i] for i in left], places, links))
                there = {left[number - 1] for (number,) in cursor.fetchall()}
                left = [i for i in left if i not in there]
        if left:
            raise Stale(f"{len(left)} of {len(wishes)} files cannot be asked for now")
        if any(transfer is not None for transfer in transfers):
            look_after_commit("transfer")
    return transfers


def _values(wishes: Sequence[FileWish], places: Mapping[str, CopyPlace], links: LinkFacts) -> dict[str, Any]:
    """The wishes as arrays, each with the source that it is planned from: the same choice as at each attempt, made early so that
    what is due of a link is found by an index.
    """
    copies = copies_of({w.file_id for w in wishes}, places)
    planned: dict[tuple[int, str], CopyPlace | None] = {}
    for wish in wishes:
        place = wish.file_id, wish.destination
        if place not in planned:
            planned[place] = choose_source(copies.get(wish.file_id, ()), places[wish.destination], links).place
    sources = [planned[w.file_id, w.destination] for w in wishes]
    return {
        "files": [w.file_id for w in wishes],
        "destinations": [w.destination for w in wishes],
        "roles": [w.role for w in wishes],
        "activities": [w.activity for w in wishes],
        "vos": [w.vo for w in wishes],
        "owners": [w.owner for w in wishes],
        "shares": [w.share for w in wishes],
        "priorities": [w.priority for w in wishes],
        "express": [w.express for w in wishes],
        "tapes": [bool(s and s.tape) for s in sources],
        "jobs": [w.job_id for w in wishes],
        "tasks": [w.task_id for w in wishes],
        "datasets": [w.dataset_id for w in wishes],
        "sources": [s.name if s else "" for s in sources],
        "sites": [s.site if s else "" for s in sources],
        "places": [places[w.destination].site for w in wishes],
    }
