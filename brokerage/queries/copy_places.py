"""Storage endpoints and links as transfers see them, and where the copies of files are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models.functions import Now

from brokerage.models import Link, StorageEndpoint, TransferLink
from brokerage.rules.facts.snapshot import BLOCKED
from brokerage.rules.grid.storage_root import access_left
from brokerage.rules.transfers.sources import CopyPlace, LinkFacts


def copy_places(using: str = DEFAULT_DB_ALIAS) -> Mapping[str, CopyPlace]:
    """All storage endpoints by name, and why each cannot be read from elsewhere now."""
    rows = (
        StorageEndpoint.objects.using(using)
        .order_by("name")
        .values_list("name", "site_id", "is_tape", "state", "status", "root_state", "root_fault")
    )
    return {
        name: CopyPlace(name, site, tape, _unreadable(state, access_left(status, root_state), root_fault))
        for name, site, tape, state, status, root_state, root_fault in rows
    }


def _unreadable(state: str, status: Mapping[str, str], root_fault: str) -> str:
    if state != "ACTIVE":
        return f"its state is {state}"
    if status.get("read_wan", "ON") in ("OFF", "TEST"):
        return root_fault or "it is out of service for reading"
    return ""


def link_facts(using: str = DEFAULT_DB_ALIAS) -> LinkFacts:
    """Closeness of the links, and those that are blocked: by the grid, by operators, or for a while by failures."""
    closeness: dict[tuple[str, str], float] = {}
    blocked: dict[tuple[str, str], str] = {}
    for source, to, value in Link.objects.using(using).values_list("source_id", "destination_id", "closeness"):
        if value is None:
            continue
        closeness[source, to] = value
        if value == BLOCKED:
            blocked[source, to] = f"the link from {source} to {to} is blocked"
    held = TransferLink.objects.using(using).filter(blocked_until__gt=Now())
    links = held.values_list("source_id", "destination_id", "blocked_why")
    blocked |= {(source, to): why or f"the link from {source} to {to} is blocked" for source, to, why in links}
    return LinkFacts(closeness, blocked)


def copies_of(files: Collection[int], places: Mapping[str, CopyPlace]) -> Mapping[int, Sequence[CopyPlace]]:
    """Where these files of the catalogue are: copies that may be read, whatever their endpoints do now."""
    copies: dict[int, list[CopyPlace]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT file_id, storage FROM workqueues_replica WHERE file_id = ANY(%s) AND state = 'available' ORDER BY 1, 2",
            [list(files)],
        )
        for file_id, storage in cursor:
            if storage in places:
                copies[file_id].append(places[storage])
    return copies
