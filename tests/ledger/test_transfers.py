"""Wishes for files: one transfer per file and place, and what its end means to those who wished."""

from __future__ import annotations

from uuid import uuid4

import pytest

from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove, move_transfers
from brokerage.models import Transfer, TransferChange, TransferWish
from brokerage.rules.transfers.wishes import PRODUCTION_INPUT, FileWish
from tests.builders import catalogue_dataset, grid
from workqueues.models import CatalogueFile, Replica

pytestmark = pytest.mark.django_db


def wish(file: CatalogueFile, job: int, **more: object) -> FileWish:
    plain = FileWish(file.id, "BETA_DISK", "input", PRODUCTION_INPUT, "demo", owner="ada", job_id=job)
    return plain._replace(**more)  # type: ignore[arg-type]


def test_one_transfer_serves_all_who_wish_the_same() -> None:
    grid("ALPHA", "BETA")
    catalogue_dataset("d", 2)
    first, second = CatalogueFile.objects.order_by("id")
    one, two, other = ask([wish(first, 1), wish(first, 2), wish(second, 1)], "test")
    assert one is not None and one == two != other
    assert ask([wish(first, 3, priority=900, express=True, activity="Express")], "test") == [one]
    assert one is not None
    transfer = Transfer.objects.get(id=one)
    assert (transfer.source, transfer.destination, transfer.status) == ("ALPHA_DISK", "BETA_DISK", "queued")
    assert (transfer.priority, transfer.express, transfer.activity) == (900, True, "Express")
    assert TransferWish.objects.filter(transfer_id=one, closed_at=None).count() == 3


def test_a_file_that_is_there_is_not_brought() -> None:
    grid("ALPHA", "BETA")
    catalogue_dataset("d", 1, storage="BETA_DISK")
    assert ask([wish(CatalogueFile.objects.get(), 1)], "test") == [None]
    assert not Transfer.objects.exists()


def test_a_finished_transfer_leaves_a_cache_copy_and_no_open_wish() -> None:
    grid("ALPHA", "BETA")
    catalogue_dataset("d", 1)
    file = CatalogueFile.objects.get()
    (transfer,) = ask([wish(file, 1)], "test")
    assert transfer is not None
    key = uuid4()
    begun = [TransferMove(transfer, new_key=key, source="ALPHA_DISK", site="SITE_ALPHA")]
    assert move_transfers(begun, "submitting", "test", claim_s=60).run() == [(transfer,)]
    assert finish([TransferMove(transfer, key=uuid4())], "test") == []
    assert finish([TransferMove(transfer, key=key)], "test") == [transfer]
    copy = Replica.objects.get(storage="BETA_DISK")
    assert (copy.kind, copy.state, copy.path) == ("cache", "available", "demo/d/d.000000")
    assert not TransferWish.objects.filter(closed_at=None).exists()
    assert list(TransferChange.objects.order_by("id").values_list("old", "new")) == [
        ("-", "queued"), ("queued", "submitting"), ("submitting", "done")
    ]  # fmt: skip
    assert finish([TransferMove(transfer, key=key)], "test") == []


def test_a_place_may_be_asked_for_again_after_a_transfer_ended() -> None:
    grid("ALPHA", "BETA")
    catalogue_dataset("d", 1)
    file = CatalogueFile.objects.get()
    (transfer,) = ask([wish(file, 1)], "test")
    assert transfer is not None
    assert end_unmet([TransferMove(transfer, "nobody wants it", reason="no_wish")], "cancelled", "test") == [transfer]
    (again,) = ask([wish(file, 2)], "test")
    assert again not in (None, transfer)
