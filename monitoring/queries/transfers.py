"""Transfers as pages show them: rows of their list, and one with all that belongs to the way of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.models import ReplicaChange, Transfer, TransferWish
from brokerage.queries.file_arrival import arrival_by, bringing
from brokerage.queries.transfer_links import LinkRow, link_rows
from brokerage.queries.transfer_parts import copies_of_file, transfers_in, wishes_of_transfer
from brokerage.queries.unclaimed_copies import unclaimed_of
from brokerage.rules.explain.file_arrival import sentence, stand
from brokerage.states import TRANSFER
from monitoring.queries.changes import Move, transfer_moves
from monitoring.queries.database import alias, rows
from workqueues.models import Replica

LINKS_ABOVE = 10
"""Links above the list."""
MOST = 50
"""Transfers of a file, of a job and on a link, and changes of copies, that a page shows: the newest."""
MOST_WISHES = 10_000
"""Open wishes of a task among which its files on their way are counted."""


@dataclass(frozen=True, slots=True)
class TransferRow:
    """One transfer in the list. `why`: how far it is, in words. `next_at`: not tried before."""

    id: int
    lfn: str
    dataset: str
    source: str
    source_site: str
    destination: str
    destination_site: str
    status: str
    status_since: datetime
    reason: str
    why: str
    activity: str
    express: bool
    priority: int
    vo: str
    bytes: int
    attempt: int
    next_at: datetime | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class TransferDetails:
    """The way of a file. `copies`: wherever; `changes` of them; `others`: transfers of the file to whatever place.

    `hidden`: wishes of VOs that the visitor may not look into.
    """

    row: Transfer
    why: str
    copies: Sequence[Replica]
    changes: Sequence[ReplicaChange]
    wishes: Sequence[TransferWish]
    hidden: int
    moves: Sequence[Move]
    others: Sequence[TransferRow]


@dataclass(frozen=True, slots=True)
class FilesMoving:
    """Files that a task waits for, for one purpose at one storage. `failing`: those whose last attempt failed."""

    role: str
    destination: str
    waiting: int
    active: int
    failing: int
    bytes: int


SAME = (
    "id", "source", "source_site", "destination", "destination_site", "status", "status_since", "reason", "activity", "express",
    "priority", "vo", "bytes", "attempt", "next_at", "created_at", "ended_at",
)  # fmt: skip
"""Columns of a transfer that are shown as they are stored."""


def visible_transfers(scope: VoScope) -> QuerySet[Transfer]:
    """All transfers that these VOs wished first, to filter further: a list of them has an index."""
    return Transfer.objects.using(alias()).filter(scope.q("vo"))


def transfer_rows(transfers: QuerySet[Transfer]) -> list[TransferRow]:
    """The rows of a bounded query, in its order; one statement, and another where files are being copied."""
    return rows_of(list(transfers.select_related("file__dataset")))


def rows_of(transfers: Sequence[Transfer]) -> list[TransferRow]:
    """Transfers that were read with their files and datasets."""
    unclaimed = unclaimed_of([each.key for each in transfers if each.status == "submitted" and each.key], alias())
    now = clock.now()
    return [
        TransferRow(
            **{name: getattr(transfer, name) for name in SAME},
            lfn=transfer.file.lfn,
            dataset=transfer.file.dataset.name,
            why=stand(replace(bringing(transfer), unclaimed=transfer.key in unclaimed), now),
        )
        for transfer in transfers
    ]


def links_above() -> Mapping[str, Any]:
    """The fullest links, and how many there are."""
    links = link_rows(using=alias())
    return {"links": links[:LINKS_ABOVE], "n_links": len(links)}


def links_of_site(site: str) -> list[LinkRow]:
    """The fullest links from or to a site."""
    return link_rows({site}, alias())[:LINKS_ABOVE]


def find_transfer(transfer_id: int, scope: VoScope) -> Transfer | None:
    """The transfer with its file, if it is in the scope."""
    return transfers_in(scope, alias()).select_related("file__dataset").filter(id=transfer_id).first()


def transfer_details(transfer: Transfer, scope: VoScope) -> TransferDetails:
    """All that belongs to the way of the file."""
    using = alias()
    wishes = list(wishes_of_transfer(transfer.id, scope, using))
    others = Transfer.objects.using(using).filter(scope.q("vo"), file=transfer.file_id).exclude(id=transfer.id)
    changes = ReplicaChange.objects.using(using).filter(file_id=transfer.file_id)
    hidden = TransferWish.objects.using(using).filter(transfer_id=transfer.id).exclude(scope.q("vo"))
    return TransferDetails(
        row=transfer,
        why=sentence(arrival_by(transfer.file, transfer.destination, transfer, using)),
        copies=list(copies_of_file(transfer.file_id, using)),
        changes=list(changes.order_by("-id")[:MOST]),
        wishes=wishes,
        hidden=0 if scope.everything else hidden[:MOST_WISHES].count(),
        moves=transfer_moves(transfer.id),
        others=transfer_rows(others.order_by("-id")[:MOST]),
    )


def transfers_on_link(source: str, destination: str, scope: VoScope) -> list[TransferRow]:
    """The newest transfers on a link."""
    on_link = visible_transfers(scope).filter(source_site=source, destination_site=destination)
    return transfer_rows(on_link.order_by("-id")[:MOST])


def transfers_of_job(job_id: int) -> list[TransferRow]:
    """What a job waits for; its input first."""
    wishes = TransferWish.objects.using(alias()).filter(job_id=job_id, closed_at=None)
    return transfer_rows(Transfer.objects.using(alias()).filter(id__in=wishes.values("transfer_id")).order_by("id")[:MOST])


def files_moving(task_id: int) -> list[FilesMoving]:
    """Files that a task waits for, by purpose and storage; one bounded statement."""
    found = rows(
        f"""
        SELECT w.role, t.destination, count(*) FILTER (WHERE t.status NOT IN ({TRANSFER.active.sql})),
            count(*) FILTER (WHERE t.status IN ({TRANSFER.active.sql})), count(*) FILTER (WHERE t.reason <> ''), sum(t.bytes)
        FROM (
            SELECT DISTINCT role, transfer_id FROM (
                SELECT role, transfer_id FROM brokerage_transferwish WHERE task_id = %(task)s AND closed_at IS NULL LIMIT %(most)s
            ) AS bounded
        ) AS w JOIN brokerage_transfer t ON t.id = w.transfer_id GROUP BY 1, 2 ORDER BY 1, 2
        """,
        {"task": task_id, "most": MOST_WISHES},
    )
    return [FilesMoving(role, place, wait, active, bad, int(size)) for role, place, wait, active, bad, size in found]
