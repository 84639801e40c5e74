"""Facts for the sentence why a file is not where it is wanted (`brokerage.rules.explain.file_arrival`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel import clock
from brokerage.models import ReplicaChange, Transfer, TransferChange
from brokerage.queries.copy_places import copy_places, link_facts
from brokerage.queries.unclaimed_copies import is_unclaimed
from brokerage.rules.explain.file_arrival import MOST_AHEAD, Bringing, FileArrival, FileCopy, LinkLoad
from brokerage.rules.transfers.room import link_limit, plain_limit
from brokerage.rules.transfers.sources import choose_source
from brokerage.states import TRANSFER
from workqueues.models import CatalogueFile, Replica

_LOAD = f"""
SELECT a.on_link, a.plain, a.into, a.out_of,
    (SELECT count(*) FROM (
        SELECT FROM brokerage_transfer
        WHERE status = 'queued' AND next_at IS NULL AND source_site = %(source_site)s AND destination_site = %(destination_site)s
            AND (express, priority, -id) > (%(express)s, %(priority)s, -%(id)s)
        LIMIT %(most)s) AS before),
    l.max_active, coalesce(l.halved_until > now(), false)
FROM (
    SELECT count(*) FILTER (WHERE source_site = %(source_site)s AND destination_site = %(destination_site)s) AS on_link,
        count(*) FILTER (
            WHERE source_site = %(source_site)s AND destination_site = %(destination_site)s AND NOT express) AS plain,
        count(*) FILTER (WHERE destination = %(destination)s) AS into, count(*) FILTER (WHERE source = %(source)s) AS out_of
    FROM brokerage_transfer WHERE status IN ({TRANSFER.active.sql})) AS a
    LEFT JOIN brokerage_transferlink l ON l.source_id = %(source_site)s AND l.destination_id = %(destination_site)s
"""


def bringing(transfer: Transfer) -> Bringing:
    """A transfer as its row has it; nobody looked at its link."""
    return Bringing(
        destination=transfer.destination,
        status=transfer.status,
        since=transfer.ended_at or transfer.status_since,
        source=transfer.source,
        source_site=transfer.source_site,
        destination_site=transfer.destination_site,
        attempt=transfer.attempt,
        reason=transfer.reason,
        message=transfer.message,
        next_at=transfer.next_at,
    )


def arrival_of(file: CatalogueFile, storage: str = "", using: str = DEFAULT_DB_ALIAS) -> FileArrival:
    """What is known of the way of a file to a storage endpoint; without one, to wherever it goes."""
    transfers = Transfer.objects.using(using).filter(file=file)
    if storage:
        transfers = transfers.filter(destination=storage)
    newest = transfers.filter(ended_at=None).order_by("-id").first() or transfers.order_by("-id").first()
    return arrival_by(file, storage, newest, using)


def arrival_by(file: CatalogueFile, storage: str, transfer: Transfer | None, using: str = DEFAULT_DB_ALIAS) -> FileArrival:
    """The same where the transfer is known."""
    copies = [FileCopy(*row) for row in _replicas(file, using)]
    removed = ""
    if transfer is not None and transfer.status == "done":
        changes = ReplicaChange.objects.using(using).filter(file_id=file.id, storage=transfer.destination, what="removed")
        removed = changes.order_by("-id").values_list("why", flat=True).first() or ""
    whole = None if transfer is None else _looked_at(transfer, copies, using)
    return FileArrival(file.lfn, storage, clock.now(), copies, whole, removed)


def _replicas(file: CatalogueFile, using: str) -> Sequence[tuple[str, str, str]]:
    return list(Replica.objects.using(using).filter(file=file).order_by("storage").values_list("storage", "state", "kind"))


def _looked_at(transfer: Transfer, copies: Sequence[FileCopy], using: str) -> Bringing:
    """The transfer with who ended it, or with what holds it now."""
    known = bringing(transfer)
    if transfer.ended_at is not None:
        changes = TransferChange.objects.using(using).filter(transfer_id=transfer.id, new=transfer.status)
        return replace(known, who=changes.order_by("-id").values_list("who", flat=True).first() or "")
    if transfer.status != "queued":
        return replace(known, unclaimed=transfer.status == "submitted" and is_unclaimed(transfer.key, using))
    places = copy_places(using)
    if (destination := places.get(transfer.destination)) is None:
        return replace(known, source_fault=f"the grid knows no storage {transfer.destination} any more")
    there = [places[c.storage] for c in copies if c.state == "available" and c.storage in places]
    choice = choose_source(there, destination, link_facts(using), transfer.failed_sources)
    if choice.place is None:
        return replace(known, source_fault=choice.why)
    return replace(known, load=_load(transfer, using))


def _load(transfer: Transfer, using: str) -> LinkLoad:
    """By the limits that the agent goes by."""
    config = gdpconfig.component("transfers")
    names = ("source", "source_site", "destination", "destination_site", "express", "priority", "id")
    values: dict[str, Any] = {name: getattr(transfer, name) for name in names} | {"most": MOST_AHEAD}
    with connections[using].cursor() as cursor:
        cursor.execute(_LOAD, values)
        on_link, plain, into, out_of, ahead, given, halved = cursor.fetchone()
    limit = link_limit(given, halved, config["LINK_ACTIVE"])
    room_for_plain = plain_limit(limit, config["EXPRESS_SLOTS"])
    by_plain = not transfer.express and (room_for_plain <= 0 or plain >= room_for_plain) and on_link < limit
    active, most = (plain, room_for_plain) if by_plain else (on_link, limit)
    return LinkLoad(active, most, ahead, halved, into, out_of, config["STORAGE_ACTIVE"])
