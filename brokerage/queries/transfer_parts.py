"""What belongs to a transfer and to its file: copies, who wishes it, moves; bounded each. A file of the catalogue by its name."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Exists, OuterRef, Q, QuerySet

from broker_site.foundation.access.permissions import VoScope
from brokerage.models import Transfer, TransferChange, TransferWish
from workqueues.models import CatalogueFile, Replica

MOST = 200
"""Wishes, and moves, that are told of a transfer: the newest."""


def catalogue_file(dataset: str, lfn: str, vo: str, scope: VoScope, using: str = DEFAULT_DB_ALIAS) -> CatalogueFile | None:
    """A file of a dataset of these VOs, `vo` where it is given; None where there is none."""
    files = (
        CatalogueFile.objects.using(using)
        .select_related("dataset")
        .filter(scope.q("dataset__vo"), dataset__name=dataset, lfn=lfn)
    )
    return (files.filter(dataset__vo=vo) if vo else files).order_by("dataset__vo").first()


def transfers_in(scope: VoScope, using: str = DEFAULT_DB_ALIAS) -> QuerySet[Transfer]:
    """The transfers that one of these VOs wished first, or wishes or wished too: to find one by its number."""
    transfers = Transfer.objects.using(using)
    if scope.everything:
        return transfers.all()
    wished = TransferWish.objects.filter(scope.q("vo"), transfer=OuterRef("pk"))
    return transfers.filter(scope.q("vo") | Q(Exists(wished)))


def copies_of_file(file_id: int, using: str = DEFAULT_DB_ALIAS) -> QuerySet[Replica]:
    """All copies, whatever their state, by storage."""
    return Replica.objects.using(using).filter(file_id=file_id).order_by("storage")


def wishes_of_transfer(transfer_id: int, scope: VoScope, using: str = DEFAULT_DB_ALIAS) -> QuerySet[TransferWish]:
    """The wishes of these VOs, open ones and others, oldest first."""
    wishes = TransferWish.objects.using(using).filter(scope.q("vo"), transfer_id=transfer_id)
    return wishes.order_by("id")[:MOST]


def moves_of_transfer(transfer_id: int, using: str = DEFAULT_DB_ALIAS) -> list[TransferChange]:
    """The newest moves, oldest first."""
    moves = TransferChange.objects.using(using).filter(transfer_id=transfer_id).order_by("-id")[:MOST]
    return list(moves)[::-1]
