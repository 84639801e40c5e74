"""The demo with sites apart: a server for each endpoint, which the supervisor keeps alive, and a check that reads over HTTP."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_site.roof.supervisor.sites_apart import are_apart, mirrored, put_together, set_apart
from broker_site.roof.supervisor.watch import Supervisor
from brokerage.models import StorageEndpoint
from brokerage.pilot.storage_root import MARKER
from brokerage.queries.pilots import storage_roots
from examples.demo.check import Registered, check_storage
from tests.pilot.peer import adler

pytestmark = [pytest.mark.django_db, pytest.mark.servers]

NAMES = ["ALPHA_DISK", "BETA_DISK", "GAMMA_DISK"]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[], Supervisor]]:
    """Sets the sites of an instance apart, as `demo` does, with a supervisor of its own."""
    begun: list[Supervisor] = []
    (tmp_path / "logs").mkdir()

    def start() -> Supervisor:
        supervisor = Supervisor(tmp_path / "logs", lambda line: None)
        begun.append(supervisor)
        set_apart(tmp_path, supervisor, {**os.environ, "SECRET_KEY": "of the broker"})
        return supervisor

    yield start
    for supervisor in begun:
        supervisor.stop()
        supervisor.close()


def faults() -> dict[str, str]:
    return {name: root.fault() for name, root in storage_roots().items()}


def test_each_endpoint_has_a_server_and_no_path(tmp_path: Path, begin: Callable[[], Supervisor]) -> None:
    supervisor = begin()
    assert set(StorageEndpoint.objects.values_list("path", flat=True)) == {""}
    assert faults() == dict.fromkeys(NAMES, "")
    for name in NAMES:
        root = tmp_path / "storage" / name
        assert (root / MARKER).read_text().strip() == name
        assert stat.S_IMODE(root.stat().st_mode) == 0o700, "a payload of another user does not see it"
        pid = supervisor.children[f"storage-{name}"].pid
        assert b"SECRET_KEY" not in Path(f"/proc/{pid}/environ").read_bytes()
    before = dict(StorageEndpoint.objects.values_list("name", "url"))
    supervisor.kill("storage-BETA_DISK")
    until = time.monotonic() + 20
    while (supervisor.children["storage-BETA_DISK"].starts < 2 or any(faults().values())) and time.monotonic() < until:
        time.sleep(0.1)
    assert supervisor.children["storage-BETA_DISK"].starts == 2
    assert faults() == dict.fromkeys(NAMES, ""), "a server that was killed is started again"
    supervisor.stop()
    supervisor.close()
    assert are_apart(tmp_path)
    begin()
    assert dict(StorageEndpoint.objects.values_list("name", "url")) == before, "addresses that were signed hold"
    assert faults() == dict.fromkeys(NAMES, "")
    put_together(tmp_path)
    assert not are_apart(tmp_path)


def test_a_root_that_went_away_is_not_made_again(tmp_path: Path, begin: Callable[[], Supervisor]) -> None:
    begin()
    (tmp_path / "storage" / "BETA_DISK" / MARKER).unlink()
    begin()
    assert "the mark of its root" in faults()["BETA_DISK"]


def test_the_check_reads_what_stands_at_the_servers(tmp_path: Path, begin: Callable[[], Supervisor]) -> None:
    begin()
    storage = tmp_path / "storage"
    (storage / "ALPHA_DISK" / "d").mkdir()
    (storage / "ALPHA_DISK" / "d" / "demo.1.a").write_bytes(b"content")
    (storage / "BETA_DISK" / "demo.1.a").write_bytes(b"content")
    (storage / "BETA_DISK" / "demo.1.b").write_bytes(b"unknown")
    (storage / "GAMMA_DISK" / "other").write_bytes(b"of another run")
    a = ("demo.1.a", 7, adler(b"content"))
    known = [Registered(*a, "ALPHA_DISK", "d/demo.1.a", "d"), Registered(*a, "BETA_DISK", "", "d")]
    lost = Registered("demo.1.c", 7, adler(b"content"), "GAMMA_DISK")
    with mirrored("demo.1.") as folders:
        assert sorted(folders) == NAMES
        assert check_storage([*known, lost], folders, "demo.1.") == [
            "demo.1.c is missing on GAMMA_DISK",
            "demo.1.b stands on BETA_DISK and is not registered there",
        ]


def test_a_file_may_have_copies_but_only_one_registration() -> None:
    entry = ("demo.1.a", 0, "00000001")
    doubled = [Registered(*entry, "ALPHA_DISK", "", "d1"), Registered(*entry, "BETA_DISK", "", "d2")]
    assert "demo.1.a is registered 2 times" in check_storage(doubled, {}, "demo.1.")
    twice = [Registered(*entry, "ALPHA_DISK", "x", "d"), Registered(*entry, "ALPHA_DISK", "y", "d")]
    assert "demo.1.a is registered 2 times" in check_storage(twice, {}, "demo.1.")
