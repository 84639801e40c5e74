"""Copies from and to endpoints that only a storage server reaches, a real process; every refusal; servers that die."""

from __future__ import annotations

import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import LocalCopy, StorageEndpoint, Transfer, TransferLink
from brokerage.mover.process import Mover
from brokerage.pilot import connections
from brokerage.pilot.storage_root import MARKER
from brokerage.queries.signed_places import storage_key
from tests.moving import asked, copy_at, end_rests, marked_grid, parts, stored_files, wanted
from tests.storage_server.serving import Serving
from workqueues.models import Replica

pytestmark = pytest.mark.django_db

LARGE = 9_000_000
Serve = Callable[..., Serving]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Let a server alone reach the storage of a site; the directory is not told unless `both`."""
    running: list[Serving] = []

    def start(place: str, *, both: bool = False) -> Serving:
        name = f"{place}_DISK"
        running.append(Serving(tmp_path, name, root=tmp_path / place, key=storage_key(name, 1)))
        more = {} if both else {"path": "", "mark": ""}
        StorageEndpoint.objects.filter(name=name).update(url=running[-1].base, key_number=1, **more)
        return running[-1]

    yield start
    for each in running:
        each.stop()


def to_the_end() -> None:
    """Step by step, without rests, until nothing moves any more."""
    for _ in range(20):
        step()
        if not Transfer.objects.filter(ended_at=None).exists():
            return
        end_rests()


def step() -> None:
    """The agent once, and a mover until it has nothing more to do."""
    run_agent("transfer", looked=True)
    mover = Mover()
    while LocalCopy.objects.filter(ended_at=None).exists():
        mover.round()
    run_agent("transfer", looked=True)


@pytest.mark.parametrize("served", [("ALPHA",), ("BETA",), ("ALPHA", "BETA")])
def test_files_come_from_and_go_to_servers(tmp_path: Path, serve: Serve, served: tuple[str, ...]) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    for place in served:
        serve(place)
    contents = [b"", b"small", random.Random(1).randbytes(LARGE), *[b"x" * 1000] * 40]
    files = stored_files(tmp_path, contents, "ALPHA")
    asked(*map(wanted, files))
    to_the_end()
    assert set(Transfer.objects.values_list("status", flat=True)) == {"done"}
    assert [copy_at(tmp_path, "BETA", file).read_bytes() for file in files] == contents
    assert parts(tmp_path) == []


def test_many_small_files_share_connections(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    serve("ALPHA"), serve("BETA")
    opened: list[int] = []
    connect = connections.Connection.connect

    def counted(connection: connections.Connection) -> None:
        opened.append(connection.port)
        connect(connection)

    monkeypatch.setattr(connections.Connection, "connect", counted)
    asked(*map(wanted, stored_files(tmp_path, [b"x" * 1000] * 200, "ALPHA")))
    to_the_end()
    assert Transfer.objects.filter(status="done").count() == 200
    assert len(opened) < 100, "a connection serves many files, in both directions"


def test_a_directory_is_preferred_and_a_server_takes_its_place_where_it_is_gone(tmp_path: Path, serve: Serve) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    serve("ALPHA", both=True).stop()
    first, second = stored_files(tmp_path, [b"first", b"second"], "ALPHA")
    asked(wanted(first))
    step()
    assert copy_at(tmp_path, "BETA", first).exists()
    serve("ALPHA", both=True)
    StorageEndpoint.objects.filter(name="ALPHA_DISK").update(path=str(tmp_path / "not_mounted"))
    asked(wanted(second))
    step()
    assert copy_at(tmp_path, "BETA", second).read_bytes() == b"second"


@pytest.mark.parametrize("served", [("ALPHA",), ("BETA",), ("ALPHA", "BETA")])
@pytest.mark.parametrize("size", [1000, LARGE])
def test_a_source_with_other_content_reaches_nobody(tmp_path: Path, serve: Serve, served: tuple[str, ...], size: int) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    for place in served:
        serve(place)
    (file,) = stored_files(tmp_path, [b"a" * size], "ALPHA")
    copy_at(tmp_path, "ALPHA", file).write_bytes(b"b" * size)
    (transfer,) = asked(wanted(file))
    to_the_end()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("failed", "no_source")
    assert Replica.objects.get().state == "bad", "it was seen that the source is not what the catalogue says"
    assert not copy_at(tmp_path, "BETA", file).exists()
    assert parts(tmp_path) == []


@pytest.mark.parametrize(
    ("harm", "reason"),
    [("gone", "source_missing"), ("stands", "refused"), ("mark of source", "src_down"), ("mark of target", "dst_down"),
     ("dead source", "src_down"), ("dead target", "dst_down"), ("key", "auth")],
)  # fmt: skip
def test_what_a_server_refuses_is_told_by_its_reason(tmp_path: Path, serve: Serve, harm: str, reason: str) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    source, target = serve("ALPHA"), serve("BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    there = copy_at(tmp_path, "BETA", file)
    match harm:
        case "gone":
            copy_at(tmp_path, "ALPHA", file).unlink()
        case "stands":
            there.parent.mkdir(parents=True)
            there.write_bytes(b"another")
        case "mark of source":
            (tmp_path / "ALPHA" / MARKER).unlink()
        case "mark of target":
            (tmp_path / "BETA" / MARKER).unlink()
        case "dead source":
            source.stop()
        case "dead target":
            target.stop()
        case "key":
            StorageEndpoint.objects.filter(name="BETA_DISK").update(key_number=2)
    (transfer,) = asked(wanted(file))
    to_the_end() if harm == "gone" else step()
    transfer.refresh_from_db()
    assert transfer.reason == reason
    assert transfer.status != "done"
    assert there.read_bytes() == b"another" if harm == "stands" else not there.exists()


def test_a_server_without_room_refuses_before_anything_is_sent(tmp_path: Path, serve: Serve) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    serve("BETA")
    (file,) = stored_files(tmp_path, [b""], "ALPHA")
    source = copy_at(tmp_path, "ALPHA", file)
    with source.open("wb") as hollow:
        hollow.truncate(1 << 43)
    type(file).objects.update(fsize=1 << 43, checksum="00000001")
    (transfer,) = asked(wanted(file))
    step()
    transfer.refresh_from_db()
    assert transfer.reason == "dst_full"


@pytest.mark.parametrize("dies", ["ALPHA", "BETA"])
def test_a_server_that_is_killed_in_the_middle_leaves_no_half_file(tmp_path: Path, serve: Serve, dies: str) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    servers = {"ALPHA": serve("ALPHA"), "BETA": serve("BETA")}
    (file,) = stored_files(tmp_path, [random.Random(2).randbytes(LARGE)], "ALPHA")
    sites = [StorageEndpoint.objects.get(name=f"{place}_DISK").site_id for place in ("ALPHA", "BETA")]
    TransferLink.objects.update_or_create(source_id=sites[0], destination_id=sites[1], defaults={"mb_per_s": 3})
    (transfer,) = asked(wanted(file))

    def blow() -> None:
        server = servers[dies]
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        server.stop()
        server.start()

    killer = threading.Timer(0.5, blow)
    killer.start()
    step()
    killer.join()
    assert not copy_at(tmp_path, "BETA", file).exists() or dies == "ALPHA"
    to_the_end()
    transfer.refresh_from_db()
    assert transfer.status == "done"
    assert copy_at(tmp_path, "BETA", file).read_bytes() == copy_at(tmp_path, "ALPHA", file).read_bytes()


@contextmanager
def silent_server() -> Iterator[str]:
    """The address of a server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_server_that_hangs_stops_only_its_own_copies(tmp_path: Path, serve: Serve) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA", "GAMMA")
    serve("BETA")
    with silent_server() as url:
        StorageEndpoint.objects.filter(name="GAMMA_DISK").update(path="", mark="", url=url)
        set_override("transfers", "MOVER_STREAMS", 2, who="test", why="few")
        files = stored_files(tmp_path, [b"x" * 1000] * 60, "ALPHA")
        asked(*(wanted(file, to) for file in files for to in ("BETA", "GAMMA")))
        run_agent("transfer", looked=True)
        to_beta = LocalCopy.objects.filter(destination="BETA_DISK")
        ordered, mover, begun = to_beta.count(), Mover(), time.monotonic()
        assert min(ordered, LocalCopy.objects.filter(destination="GAMMA_DISK").count()) > 10
        while to_beta.filter(status="done").count() < ordered:
            mover.round()
            assert time.monotonic() - begun < 8, "the copies to the other server wait"
        mover.stop()
        assert sum(copy_at(tmp_path, "BETA", file).exists() for file in files) == ordered
