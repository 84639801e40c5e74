"""The suite of transfer backends: ours passes it, and it finds what is wrong with others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from broker_site.plugin_api.suites import TRANSFER_CHECKS, TransferTrial
from broker_site.plugin_api.transfers import Backend, CopyOrder, CopyReport, Refusal, StoredCopy
from brokerage.mover.process import Mover
from brokerage.transfers.local import Local
from brokerage.transfers.simulated import Simulated
from tests.moving import marked_grid

pytestmark = pytest.mark.django_db


def step(mover: Mover) -> None:
    """The mover works for a moment."""
    mover.round()


def local_trial(folder: Path, backend: Backend) -> TransferTrial:
    """A trial of a backend that writes to the roots of two sites below the folder, with a mover."""
    marked_grid(folder, "ALPHA", "BETA")
    mover = Mover()

    def put(copy: StoredCopy, content: bytes) -> None:
        path = folder / copy.storage.removesuffix("_DISK") / copy.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def read(copy: StoredCopy) -> bytes | None:
        path = folder / copy.storage.removesuffix("_DISK") / copy.path
        return path.read_bytes() if path.exists() else None

    return TransferTrial(backend, "ALPHA_DISK", "BETA_DISK", put, read, lambda: step(mover))


@pytest.mark.parametrize("check", TRANSFER_CHECKS.values(), ids=TRANSFER_CHECKS)
def test_the_local_backend_passes(check: Callable[[TransferTrial], None], tmp_path: Path) -> None:
    check(local_trial(tmp_path, Local()))


@pytest.mark.parametrize("name", ["declared", "takes_a_key_once", "tells_ends_until_they_are_forgotten", "removes_copies"])
def test_the_simulated_backend_keeps_what_can_be_kept_without_files(name: str) -> None:
    clock = [0.0]
    backend = Simulated(lambda: clock[0])

    def step() -> None:
        clock[0] += 1

    def read(copy: StoredCopy) -> bytes | None:
        return b"" if copy in backend.stored else None

    TRANSFER_CHECKS[name](TransferTrial(backend, "A", "B", lambda copy, _: backend.stored.add(copy), read, step))


class Forgetful(Local):
    """Knows nothing of what ended."""

    def find(self, keys: Collection[UUID]) -> Mapping[UUID, CopyReport]:
        return {key: report for key, report in super().find(keys).items() if report.state == "under way"}


class Refusing(Local):
    """Takes no small files."""

    def submit(self, orders: Sequence[CopyOrder]) -> Mapping[UUID, Refusal]:
        small = [order for order in orders if order.bytes < 10]
        super().submit([order for order in orders if order.bytes >= 10])
        return {order.key: Refusal("refused", "too small") for order in small}


class Mute(Local):
    """Gives reasons of its own."""

    def find(self, keys: Collection[UUID]) -> Mapping[UUID, CopyReport]:
        return {k: CopyReport(k, r.state, "oops" if r.state == "failed" else "", "") for k, r in super().find(keys).items()}


class Keeping(Local):
    """Says that copies are removed and keeps them."""

    def delete(self, copies: Collection[StoredCopy]) -> Mapping[StoredCopy, str]:
        return {}


@pytest.mark.parametrize(
    ("backend", "check", "what"),
    [
        (Forgetful(), "takes_a_key_once", "does not know copies that it took"),
        (Refusing(), "copies_whole_files", "refuses orders without reason"),
        (Mute(), "tells_what_is_wrong_with_a_source", "is no reason of transfers"),
        (Keeping(), "removes_copies", "stands there"),
    ],
)
def test_the_suite_finds_what_is_wrong(backend: Backend, check: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=what):
        TRANSFER_CHECKS[check](local_trial(tmp_path, backend))
