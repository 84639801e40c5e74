"""Copies that are removed while others wish them: whoever comes second sees what the first did, and no last copy goes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction

from broker_site.foundation.agency.run import new_run, run_agent
from broker_site.foundation.kernel.clock import now
from brokerage.agents import evict as evicting
from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.caches import mark_expired
from brokerage.ledger.transfers.ends import finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import ReplicaChange, StorageEndpoint, Transfer
from tests.builders import catalogue_dataset, grid
from tests.flow.steps import mark_storages
from tests.flow.test_caches import CACHE, ORIGIN, WEEK_S, cached, expire, there, wish
from tests.ledger.test_races import together
from tests.locks import locked
from workqueues.models import CatalogueFile, Replica

pytestmark = pytest.mark.django_db(transaction=True)

FILES = 40


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Path]:
    """Files at ALPHA with expired cache copies at BETA."""
    grid("ALPHA", "BETA", path=str(tmp_path))
    mark_storages(tmp_path)
    catalogue_dataset("dd", FILES, storage=ORIGIN)
    for file in CatalogueFile.objects.order_by("id"):
        cached(tmp_path, file, days=9)
    expire()
    yield tmp_path
    lost = [r.path for r in Replica.objects.filter(storage=CACHE, state="available") if not (tmp_path / "BETA" / r.path).exists()]
    assert not lost, "copies that are told of and are not there"


def test_wishes_that_come_while_copies_are_removed_are_met_by_the_copy_or_by_a_transfer(roots: Path) -> None:
    files = list(CatalogueFile.objects.order_by("id"))

    def wishes() -> list[int | None]:
        met: list[int | None] = []
        for number, file in enumerate(files):
            with transaction.atomic():
                met += ask([wish(file, number + 1)], "test")
        return met

    met, *_ = together(wishes, lambda: run_agent("evict", looked=True), lambda: evicting.evict(new_run("evict")))
    run_agent("evict", looked=True)
    assert isinstance(met, list)
    for file, transfer in zip(files, met, strict=True):
        has_copy = Replica.objects.filter(file=file, storage=CACHE, state="available").exists()
        if transfer is not None:  # else it was told to be there, and nobody made a job of it
            is_open = Transfer.objects.filter(id=transfer, ended_at=None).exists()
            assert has_copy != is_open, f"{file.lfn}: a copy {has_copy}, a transfer {is_open}"


def test_a_copy_that_was_told_of_in_a_transaction_under_way_is_not_chosen(roots: Path) -> None:
    file = CatalogueFile.objects.order_by("id")[0]
    with transaction.atomic():
        assert ask([wish(file)], "test") == [None]
        (marked,) = together(lambda: mark_expired(now(), WEEK_S, "test", 2 * FILES).marked)
    assert marked == FILES - 1
    assert Replica.objects.get(file=file, storage=CACHE).state == "available"


def test_two_runs_that_choose_different_copies_of_a_file_leave_one(roots: Path) -> None:
    StorageEndpoint.objects.create(name="GAMMA_DISK", site_id="SITE_ALPHA", path=str(roots / "GAMMA"))
    mark_storages(roots)
    for file in CatalogueFile.objects.order_by("id"):
        cached(roots, file, days=9, storage="GAMMA_DISK")
    Replica.objects.filter(kind="origin").delete()
    Replica.objects.filter(storage="GAMMA_DISK").update(keep_until=now() - timedelta(hours=1))
    for _ in range(3):
        together(*[lambda: mark_expired(now(), WEEK_S, "test", FILES // 4)] * 4)
    available = Replica.objects.filter(state="available")
    assert available.count() == available.values("file").distinct().count() == FILES


def test_two_runs_at_once_remove_each_copy_once(roots: Path) -> None:
    together(*[lambda: run_agent("evict", looked=True)] * 3)
    assert there(roots) == []
    assert ReplicaChange.objects.filter(what="removed").count() == FILES


def test_a_file_that_others_hold_is_left_for_the_next_run(roots: Path) -> None:
    file = CatalogueFile.objects.order_by("id")[0]
    connection.close()
    with locked(f"SELECT 1 FROM workqueues_cataloguefile WHERE id = {file.id} FOR UPDATE"):
        run_agent("evict", looked=True)
        assert there(roots) == [file.lfn]
    run_agent("evict", looked=True)
    assert there(roots) == []


def test_who_wishes_a_file_at_the_moment_it_comes_is_told_that_it_is_there(roots: Path) -> None:
    Replica.objects.filter(storage=CACHE).delete()
    for file in CatalogueFile.objects.order_by("id"):
        (first,) = ask([wish(file, 1)], "test")
        assert first is not None
        holds, over = threading.Event(), threading.Event()

        def bring(transfer: int = first, holds: threading.Event = holds, over: threading.Event = over) -> None:
            with transaction.atomic():
                finish([TransferMove(transfer)], "test")
                holds.set()
                over.wait(0.05)

        def want(file: CatalogueFile = file, holds: threading.Event = holds) -> list[int | None]:
            holds.wait(10)
            with transaction.atomic():
                return ask([wish(file, 2)], "test")

        _, met = together(bring, want)
        assert met == [None]
        (roots / "BETA" / "demo/dd" / file.lfn).touch()
    assert not Transfer.objects.filter(ended_at=None).exists()
