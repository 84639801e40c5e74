"""Limits of links and endpoints hold while files are brought, and who is more urgent goes first."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import LocalCopy, Site, StorageEndpoint, Transfer, TransferLink
from brokerage.mover.bandwidth import Bandwidth
from brokerage.mover.files import CopyFailed
from tests.moving import asked, end_rests, marked_grid, move_all, stored_files, wanted

pytestmark = pytest.mark.django_db


def set_keys(**values: float) -> None:
    for name, value in values.items():
        set_override("transfers", name, value, who="test", why="small numbers")


def test_a_link_has_as_many_transfers_under_way_as_it_may_and_express_ones_have_slots(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    set_keys(LINK_ACTIVE=10)
    files = stored_files(tmp_path, [str(n).encode() for n in range(40)], "ALPHA")
    asked(*(wanted(file, priority=n) for n, file in enumerate(files[:30])))
    run_agent("transfer", looked=True)
    assert set(Transfer.objects.filter(status="submitted").values_list("priority", flat=True)) == set(range(22, 30))
    asked(*(wanted(file, express=True, activity="Express") for file in files[30:]))
    run_agent("transfer", looked=True)
    assert Transfer.objects.filter(status="submitted", express=True).count() == 2
    assert LocalCopy.objects.count() == 10
    urgent = LocalCopy.objects.order_by("-urgency").values_list("key", flat=True)[:2]
    assert all(Transfer.objects.filter(key__in=list(urgent)).values_list("express", flat=True))
    move_all()
    assert Transfer.objects.filter(status="done").count() == 40


def test_a_link_that_an_operator_limits_or_blocks_keeps_to_it(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA", "GAMMA")
    alpha, beta, gamma = Site.objects.order_by("name")
    TransferLink.objects.create(source=alpha, destination=beta, max_active=3)
    closed = TransferLink.objects.create(
        source=alpha, destination=gamma, blocked_until="2100-01-01T00:00Z", blocked_why="maintenance"
    )
    files = stored_files(tmp_path, [str(n).encode() for n in range(10)], "ALPHA")
    asked(*(wanted(file, to) for file in files for to in ("BETA", "GAMMA")))
    run_agent("transfer", looked=True)
    assert set(Transfer.objects.filter(status="submitted").values_list("destination")) == {("BETA_DISK",)}
    assert LocalCopy.objects.count() == 3
    assert Transfer.objects.filter(destination="GAMMA_DISK", reason="link_blocked")[0].message == "ALPHA_DISK: maintenance"
    closed.delete()
    move_all()
    assert Transfer.objects.filter(status="done").count() == 20


def test_an_endpoint_without_room_lets_the_other_of_its_site_go_on(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA", "GAMMA")
    StorageEndpoint.objects.filter(name="GAMMA_DISK").update(site="SITE_BETA")
    set_keys(STORAGE_ACTIVE=4, LINK_ACTIVE=6)
    files = stored_files(tmp_path, [str(n).encode() for n in range(12)], "ALPHA")
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(state="ACTIVE")
    asked(*(wanted(file, "BETA", priority=9) for file in files), *(wanted(file, "GAMMA") for file in files))
    run_agent("transfer", looked=True)
    assert LocalCopy.objects.count() == 4, "no more may leave the source"
    end_rests()
    move_all()
    assert Transfer.objects.filter(status="done").count() == 24


def test_the_copies_of_a_link_share_its_bandwidth() -> None:
    link, passed = Bandwidth(10.0), []

    def copy() -> None:
        for _ in range(3):
            link.take(500_000, lambda: None)
            passed.append(time.monotonic())

    began = time.monotonic()
    threads = [threading.Thread(target=copy) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed[-1] - began >= 0.05
    rate = 3_000_000 / (passed[-1] - began + 0.2)
    assert rate <= 10_100_000


def test_a_copy_that_waits_for_bandwidth_can_be_given_up() -> None:
    link = Bandwidth(0.001)

    def check() -> None:
        raise CopyFailed("operator", "it was cancelled")

    with pytest.raises(CopyFailed):
        link.take(10**9, check)
