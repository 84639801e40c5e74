"""Transfers with a backend that fails, loses events and tells them twice: every one ends, and none is done that is not."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import BadConfig, set_override
from brokerage.models import Transfer, TransferWish
from brokerage.transfers.choice import BACKENDS, backends, declare_backend, load_backend
from brokerage.transfers.port import StoredCopy
from brokerage.transfers.simulated import Conditions, Simulated
from tests.moving import asked, end_rests, marked_grid, stored_files, wanted
from workqueues.models import Replica
from workqueues.rules.jobs.file_names import copy_path

pytestmark = pytest.mark.django_db


def simulated(conditions: Conditions, clock: list[float]) -> Simulated:
    """The backend of the VO demo from now on."""
    backends()
    backend = Simulated(lambda: clock[0], conditions)
    declare_backend(backend)
    set_override("transfers", "TRANSFER_BACKEND", "simulated", vo="demo", who="test", why="nothing is to be moved")
    return backend


@pytest.mark.parametrize("seed", range(4))
def test_every_transfer_ends_whatever_a_backend_tells(seed: int, tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA", "GAMMA")
    set_override("transfers", "LINK_JUDGED_FROM", 1000, who="test", why="the links are not to blame")
    files = stored_files(tmp_path, [str(n).encode() for n in range(60)], "ALPHA", "GAMMA")
    asked(*map(wanted, files))
    clock = [0.0]
    with pytest.raises(LookupError), BACKENDS.all_or_nothing():
        backend = simulated(Conditions(seed, failing=0.3, refused=0.1, lost=0.2, doubled=0.3), clock)
        for _ in range(60):
            run_agent("transfer", looked=True)
            clock[0] += 1.0
            Transfer.objects.filter(status="submitted").update(claimed_until="2000-01-01T00:00Z")
            end_rests()
            if not Transfer.objects.filter(ended_at=None).exists():
                break
        raise LookupError("the backend is not declared any more after this")
    assert not Transfer.objects.filter(ended_at=None).exists()
    assert not TransferWish.objects.filter(closed_at=None).exists()
    done = Transfer.objects.filter(status="done")
    assert done.count() > 40
    there = {StoredCopy("BETA_DISK", copy_path("", "demo", "d", lfn)) for lfn in done.values_list("file__lfn", flat=True)}
    assert there == backend.stored
    assert Replica.objects.filter(storage="BETA_DISK").count() == done.count()


def test_transfers_of_a_vo_whose_backend_is_not_there_wait(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (transfer,) = asked(wanted(stored_files(tmp_path, [b"1"], "ALPHA")[0]))
    with pytest.raises(BadConfig, match="there is no transfer backend 'pigeon'; there are local"):
        set_override("transfers", "TRANSFER_BACKEND", "pigeon", vo="demo", who="test", why="it is not there")
    with pytest.raises(LookupError), BACKENDS.all_or_nothing():
        declare_pigeon()
        set_override("transfers", "TRANSFER_BACKEND", "pigeon", vo="demo", who="test", why="it is there")
        raise LookupError("its package is removed")
    run_agent("transfer", looked=True)
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt) == ("queued", 0)


def test_a_package_brings_a_backend_and_one_that_cannot_be_loaded_brings_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(LookupError), BACKENDS.all_or_nothing():
        backends()
        load_backend(EntryPoint("good", f"{__name__}:declare_pigeon", "gridbroker.transfers"))
        load_backend(EntryPoint("bad", f"{__name__}:declare_and_fail", "gridbroker.transfers"))
        assert {"local", "pigeon"} <= set(backends())
        assert "late" not in backends()
        raise LookupError("what was declared here goes")
    assert "the transfer backend bad" in caplog.text


def declare_pigeon() -> None:
    declare_backend(Simulated(float, name="pigeon"))


def declare_and_fail() -> None:
    declare_backend(Simulated(float, name="late"))
    raise RuntimeError("no such bird")
