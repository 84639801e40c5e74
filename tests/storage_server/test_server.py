"""A storage server asked as pilots ask it, and as nobody should: ranges, checksums, names, addresses for something else."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from brokerage.pilot import remote_storage
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import MARKER, StorageDown
from brokerage.storage_server.application import MOST_OF_JOB
from tests.storage_server.serving import OTHER_KEY, Serving

pytestmark = pytest.mark.servers


def ask(url: str, method: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, Any]:
    """One request: status, body and headers of its answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request(method, f"{parts.path}?{parts.query}", body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def adler(content: bytes) -> str:
    return f"{zlib.adler32(content):08x}"


def put(server: Serving, name: str, content: bytes, checksum: str = "", **grant: int) -> int:
    return ask(server.url("PUT", name, **grant), "PUT", content, X_Adler32=checksum or adler(content))[0]


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_a_file_comes_back_as_it_was_sent(server: Serving, tmp_path: Path, size: int) -> None:
    content, name = os.urandom(size), f"back/a b+c%2F ü#?&{size}"
    (tmp_path / "sent").write_bytes(content)
    with (tmp_path / "sent").open("rb") as file:
        sent = remote_storage.upload("DISK", server.url("PUT", name), file.fileno(), size, adler(content))
    assert (sent.size, sent.checksum) == (size, adler(content))
    got = remote_storage.download("DISK", server.url("GET", name), tmp_path / "got")
    assert ((tmp_path / "got").read_bytes(), got.checksum) == (content, adler(content))
    told = remote_storage.head("DISK", server.url("GET", name))
    assert (told.size, told.checksum, told.etag) == (size, adler(content), sent.etag)
    assert (server.root / name).read_bytes() == content
    assert remote_storage.delete("DISK", server.url("DELETE", name)) == 1
    with pytest.raises(FileNotFoundError):
        remote_storage.download("DISK", server.url("GET", name), tmp_path / "gone")


@pytest.mark.parametrize(
    ("wanted", "first", "end"),
    [("bytes=0-9", 0, 10), ("bytes=5-", 5, None), ("bytes=-7", -7, None), ("bytes=10-99999999", 10, None), ("bytes=3-3", 3, 4)],
)
@pytest.mark.parametrize("size", [1000, 900_000])
def test_a_range_of_a_file_is_sent(server: Serving, size: int, wanted: str, first: int, end: int | None) -> None:
    content = (bytes(range(256)) * 4000)[:size]
    name = f"range/{size}"
    (server.root / "range").mkdir(exist_ok=True)
    (server.root / name).write_bytes(content)
    status, body, headers = ask(server.url("GET", name), "GET", Range=wanted)
    assert (status, body) == (206, content[first:end])
    assert headers["Content-Range"].endswith(f"/{size}")
    assert ask(server.url("GET", name), "GET", Range=f"bytes={size}-")[0] == 416
    assert ask(server.url("GET", name), "GET", Range="lines=1-2")[:2] == (200, content)
    assert ask(server.url("GET", name), "GET", Range="bytes=1-", If_Match='"another"')[0] == 412


def test_a_piece_of_a_file_is_brought_without_the_rest(server: Serving) -> None:
    content = os.urandom(400_000)
    (server.root / "long").write_bytes(content)
    url = server.url("GET", "long")
    assert remote_storage.piece("DISK", url, 0, 1000) == content[:1000]
    assert remote_storage.piece("DISK", url, 399_000, 5000) == content[399_000:]
    assert remote_storage.piece("DISK", url, 0, 500_000) == content
    with pytest.raises(OSError, match="no such bytes"):
        remote_storage.piece("DISK", url, 400_000, 10)
    with pytest.raises(FileNotFoundError):
        remote_storage.piece("DISK", server.url("GET", "short"), 0, 10)


def test_a_server_that_sends_more_than_was_asked_for_is_not_read_to_its_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def send_for_ever() -> None:
            for _ in range(2):
                with listener.accept()[0] as peer, suppress(OSError):
                    peer.recv(65_536)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
                    while True:
                        peer.sendall(bytes(65_536))

        sender = threading.Thread(target=send_for_ever)
        sender.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/file?x=1"
        assert remote_storage.piece("DISK", url, 0, 1000) == bytes(1000)
        with pytest.raises(OSError, match="its server answers with 200"):
            remote_storage.piece("DISK", url, 1000, 1000)
        sender.join()


@pytest.mark.parametrize("drip", [b"", b"x"])
def test_a_server_that_hangs_or_drips_is_given_up_by_who_asks_for_little(monkeypatch: pytest.MonkeyPatch, drip: bytes) -> None:
    monkeypatch.setattr(remote_storage, "SILENT_S", 0.3)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang() -> None:
            with listener.accept()[0] as peer, suppress(OSError):
                peer.recv(65_536)
                if drip:
                    peer.sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000\r\n\r\n")
                for _ in range(100):
                    if over.wait(0.1):
                        return
                    peer.sendall(drip)

        server = threading.Thread(target=hang)
        server.start()
        root = RemoteRoot("DISK", f"http://127.0.0.1:{listener.getsockname()[1]}", "k")
        with pytest.raises(StorageDown, match="too slow" if drip else "timed out"):
            root.piece("file", 0, 1000) if drip else root.head("file", summed=False)
        over.set()
        server.join()


def test_a_size_that_is_none_is_a_fault_of_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for size in (b"many", b"-5", b"9" * 5000):
                with listener.accept()[0] as peer:
                    peer.recv(65_536)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n" % size)

        server = threading.Thread(target=answer)
        server.start()
        root = RemoteRoot("DISK", f"http://127.0.0.1:{listener.getsockname()[1]}", "k")
        for _ in range(3):
            with pytest.raises(StorageDown, match="no size"):
                root.head("file", summed=False)
        server.join()


def test_nothing_is_ever_overwritten(server: Serving) -> None:
    assert put(server, "once", b"first") == 201
    assert put(server, "once", b"first") == 200, "the same again"
    assert put(server, "once", b"other") == 409
    assert put(server, "once", b"a longer one") == 409
    assert (server.root / "once").read_bytes() == b"first"


def put_without_length(server: Serving, place: str, pieces: list[bytes]) -> int:
    """The status of a PUT in chunks, sent in one piece: the server may answer and hang up before it has read the body."""
    parts = urlsplit(server.url("PUT", place))
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])
    head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nX-Adler32: 0\r\n\r\n"
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as raw:
        raw.sendall(head.encode() + body)
        answer = http.client.HTTPResponse(raw)
        answer.begin()
        return answer.status


def test_what_is_not_as_announced_is_not_kept(server: Serving) -> None:
    assert put(server, "damaged", b"content", adler(b"kontent")) == 400
    assert ask(server.url("PUT", "damaged"), "PUT", b"content")[0] == 400, "without a checksum"
    assert put(server, "damaged", b"four", size=3) == 403
    assert put_without_length(server, "damaged", [b"con", b"tent"]) == 411
    assert not [name for name in server.files() if "damaged" in name]


def test_a_body_that_ends_half_way_leaves_nothing(server: Serving) -> None:
    parts = urlsplit(server.url("PUT", "half"))
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as raw:
        head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\nX-Adler32: 00000001\r\n\r\n"
        raw.sendall(head.encode() + bytes(1_500_000))
        until = time.monotonic() + 10
        while not [name for name in server.files() if name.startswith(".half.")] and time.monotonic() < until:
            time.sleep(0.01)
    until = time.monotonic() + 10
    while (left := [name for name in server.files() if "half" in name]) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == []


@contextmanager
def half_sent(server: Serving, name: str) -> Iterator[None]:
    """A mover's upload that has begun and goes on as long as the block."""
    parts = urlsplit(server.url("PUT", name))
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as raw:
        head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\nX-Adler32: 00000001\r\n\r\n"
        raw.sendall(head.encode() + bytes(1_500_000))
        until = time.monotonic() + 10
        while not [part for part in server.files() if part.startswith(f".{name}.")]:
            assert time.monotonic() < until, "nothing has come"
            time.sleep(0.01)
        yield


def test_a_file_that_is_coming_in_is_brought_by_nobody_else_meanwhile(server: Serving) -> None:
    with half_sent(server, "wanted"):
        assert put(server, "wanted", b"whole") == 503
    until = time.monotonic() + 10
    while (status := put(server, "wanted", b"whole")) == 503 and time.monotonic() < until:
        time.sleep(0.05)
    assert status == 201
    assert [name for name in server.files() if "wanted" in name] == ["wanted"]


def test_what_a_killed_server_left_half_goes_with_the_next_try(tmp_path: Path) -> None:
    server = Serving(tmp_path)
    try:
        with half_sent(server, "cut"):
            server.stop()
        assert len(server.files()) == 1
        server.start()
        assert put(server, "cut", b"whole") == 201
        assert server.files() == ["cut"]
    finally:
        server.stop()


def test_an_address_allows_what_it_was_signed_for_and_nothing_else(server: Serving, tmp_path: Path) -> None:
    (server.root / "mine").write_bytes(b"mine")
    (server.root / "yours").write_bytes(b"yours")
    good = server.url("GET", "mine", job=7, epoch=2, size=100)
    assert ask(good, "GET")[0] == 200
    assert ask(good, "HEAD")[0] == 200
    refused = {
        "another name": (good.replace("/mine", "/yours"), "GET"),
        "another job": (good.replace("job=7", "job=8"), "GET"),
        "another epoch": (good.replace("epoch=2", "epoch=3"), "GET"),
        "another size": (good.replace("size=100", "size=999"), "GET"),
        "a later end": (good.replace("expires=1", "expires=2"), "GET"),
        "another method": (good, "DELETE"),
        "writing": (good, "PUT"),
        "the list": (good.replace("/mine", "/") + "&list=1", "GET"),
        "no signature": (good.partition("&sig=")[0], "GET"),
        "no query": (good.partition("?")[0], "GET"),
        "expired": (server.url("GET", "mine", life_s=-1), "GET"),
        "a small file only": (server.url("GET", "mine", size=3), "GET"),
        "no number": (good.replace("job=7", "job=x"), "GET"),
    }
    assert {why: ask(url, method)[0] for why, (url, method) in refused.items()} == dict.fromkeys(refused, 403)
    assert (server.root / "mine").exists()
    with pytest.raises(PermissionError) as told:
        remote_storage.download("DISK", refused["another epoch"][0], tmp_path / "x")
    assert "sig=" not in str(told.value)


@pytest.mark.parametrize(
    "name", ["../keys_DISK", "a/../../keys_DISK", "/etc/passwd", "a//b", "./a", "a/", "x\0y", MARKER, "n" * 300]
)
def test_a_hostile_name_leads_nowhere(server: Serving, name: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        status = ask(server.url(method, name), method, b"x" if method == "PUT" else None, X_Adler32=adler(b"x"))[0]
        assert status in (400, 403), f"{method} {name!r}"
    assert (server.root / MARKER).read_text() == "DISK\n"
    assert server.key_file.exists()


def test_a_canary_is_read_but_neither_written_nor_removed_nor_told_as_old(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "data").mkdir(parents=True)
    (root / "data" / "VERSION").write_bytes(b"3.1")
    serving = Serving(tmp_path, root=root, mark="canary:3:data/VERSION")
    try:
        name = "data/VERSION"
        assert ask(serving.url("GET", name), "GET")[1] == b"3.1"
        assert {ask(serving.url(method, name), method, b"3.2", X_Adler32=adler(b"3.2"))[0] for method in ("PUT", "DELETE")} == {
            400
        }
        assert ask(serving.url("GET", name), "GET")[1] == b"3.1"
        listed = RemoteRoot("DISK", serving.base, serving.key).files()
        assert [(path, size, age < 0) for path, size, age in listed] == [(name, 3, True)]
    finally:
        serving.stop()


def test_one_job_does_not_take_the_places_of_all_others(server: Serving) -> None:
    parts, began = urlsplit(server.url("PUT", "slow", job=5, epoch=1)), []
    head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nX-Adler32: 00000001\r\n\r\nx"

    def hold_a_place() -> None:
        began.append(socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10))
        began[-1].sendall(head.encode())

    try:
        for _ in range(MOST_OF_JOB):
            hold_a_place()
        until = time.monotonic() + 20
        while put(server, "its.next", b"x", job=5, epoch=1) != 503:
            assert time.monotonic() < until
            hold_a_place()  # One of them may have come while "its.next" held the last place, and was refused.
        assert put(server, "of.another", b"x", job=6, epoch=1) == 201
    finally:
        for connection in began:
            connection.close()


def test_links_are_not_followed(server: Serving) -> None:
    (server.root / "linked").symlink_to(server.key_file)
    (server.root / "folder").symlink_to(server.folder)
    (server.root / "pipe").parent.mkdir(exist_ok=True)
    os.mkfifo(server.root / "pipe")
    for name in ("linked", f"folder/{server.key_file.name}", "pipe"):
        assert ask(server.url("GET", name), "GET")[0] == 404, name
    assert put(server, "folder/new", b"x") in (404, 409)
    assert put(server, "linked", b"x") == 409


def test_a_root_without_its_mark_is_neither_read_nor_written(server: Serving, tmp_path: Path) -> None:
    (server.root / "there").write_bytes(b"there")
    (server.root / MARKER).rename(server.folder / "mark")
    try:
        for method in ("GET", "PUT", "DELETE"):
            status, _, headers = ask(
                server.url(method, "there"), method, b"x" if method == "PUT" else None, X_Adler32=adler(b"x")
            )
            assert status == 503
            assert "the mark of its root cannot be read" in headers["X-Storage-Fault"]
        with pytest.raises(StorageDown, match="storage DISK is down: the mark"):
            remote_storage.download("DISK", server.url("GET", "there"), tmp_path / "got")
        assert "the mark of its root" in remote_storage.look("DISK", server.url("GET", ""))["fault"]
    finally:
        (server.folder / "mark").rename(server.root / MARKER)
    assert remote_storage.look("DISK", server.url("GET", ""))["fault"] == ""


def test_a_file_that_does_not_fit_is_refused_before_it_is_sent(server: Serving) -> None:
    parts = urlsplit(server.url("PUT", "huge"))
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as raw:
        head = f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\nContent-Length: {10**14}\r\nX-Adler32: 00000001\r\n\r\n"
        raw.sendall(head.encode())
        assert raw.recv(100).split()[1] == b"507"
    assert not [name for name in server.files() if "huge" in name]


def test_a_part_gets_its_name_from_its_own_attempt_alone(server: Serving, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"content")
    with (tmp_path / "out").open("rb") as file:
        held = remote_storage.upload("DISK", server.url("PUT", "d/out", job=7, epoch=1), file.fileno(), 7, "", hold=True)
    assert [name for name in server.files() if name.startswith("d/")] == ["d/.out.7.1.part"]
    with pytest.raises(FileNotFoundError):
        remote_storage.publish("DISK", server.url("PUT", "d/out", job=7, epoch=2), held.etag)
    for _ in range(2):
        remote_storage.publish("DISK", server.url("PUT", "d/out", job=7, epoch=1), held.etag)
    assert [name for name in server.files() if name.startswith("d/")] == ["d/out"]
    assert remote_storage.delete("DISK", server.url("DELETE", "d/out", job=7, epoch=1)) == 0, "it does not say which file"
    assert remote_storage.delete("DISK", server.url("DELETE", "d/out", job=7, epoch=1), '"1-2-3"') == 0, "it is another file"
    assert remote_storage.delete("DISK", server.url("DELETE", "d/out", job=7, epoch=1), held.etag) == 1
    assert not (server.root / "d" / "out").exists()


def test_a_checksum_is_of_the_file_that_stands_there_now(server: Serving) -> None:
    (server.root / "changed").write_bytes(b"first")
    url = server.url("GET", "changed")
    assert remote_storage.head("DISK", url).checksum == adler(b"first")
    assert ask(url, "GET")[2]["X-Adler32"] == adler(b"first")
    (server.root / "changed").unlink()
    (server.root / "changed").write_bytes(b"later")
    assert remote_storage.head("DISK", url).checksum == adler(b"later")


def test_keys_are_replaced_while_the_server_runs(server: Serving) -> None:
    (server.root / "kept").write_bytes(b"x")
    old = server.url("GET", "kept")
    server.key_file.write_text(f"{server.key}\n{OTHER_KEY}\n")
    before, server.key = server.key, OTHER_KEY
    assert [ask(url, "GET")[0] for url in (old, server.url("GET", "kept"))] == [200, 200]
    server.key_file.write_text(f"{OTHER_KEY}\n")
    assert [ask(url, "GET")[0] for url in (old, server.url("GET", "kept"))] == [403, 200]
    server.key_file.write_text("short\n")
    assert ask(server.url("GET", "kept"), "GET")[0] == 503
    server.key_file.write_text(f"{before}\n")
    server.key = before


def test_a_download_goes_on_when_the_server_is_killed_and_comes_back(tmp_path: Path) -> None:
    server = Serving(tmp_path)
    try:
        content = os.urandom(30_000_000)
        (server.root / "large").write_bytes(content)
        calls = 0

        def check() -> None:
            nonlocal calls
            calls += 1
            if calls == 20:
                server.stop()
                server.start()

        got = remote_storage.download("DISK", server.url("GET", "large"), tmp_path / "got", check)
        assert calls > 20
        assert (got.checksum, (tmp_path / "got").read_bytes() == content) == (adler(content), True)
        server.stop()
        with pytest.raises(StorageDown, match=r"Connection (refused|reset)"):
            remote_storage.head("DISK", server.url("GET", "large"))
    finally:
        server.stop()
