"""Fetching a feed: only listed places, and whatever the other side does, an answer or a reason in time."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from brokerage.feeds.fetch import FeedUnavailable, Limits, fetch
from tests.feeds.conftest import Handler, Place

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def limits(place: Place, timeout_s: float = 5.0, folders: tuple[str, ...] = ()) -> Limits:
    return Limits([place.host], folders, timeout_s, 10_000)


def reason(address: str, of: Limits) -> str:
    with pytest.raises(FeedUnavailable) as down:
        fetch(address, of)
    return str(down.value)


def test_a_document_comes_whole_with_its_time(place: Place) -> None:
    address = place.put("/a?b=1", {"x": 1}, Last_Modified="Mon, 04 May 2026 08:00:00 GMT")
    found = fetch(address, limits(place))
    assert found.body == b'{"x": 1}'
    assert str(found.modified_at) == "2026-05-04 08:00:00+00:00"
    assert fetch(place.put("/b", "y", Last_Modified="lately"), limits(place)).modified_at is None


def test_a_document_in_pieces_comes_whole(place: Place) -> None:
    chunks = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n"
    assert fetch(place.raw("/a", chunks), limits(place)).body == b"[1,2]"


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9/a",
        "http://localhost/a",
        "http://10.0.0.1/a",
        "http://[::1]/a",
        "file:///etc/passwd",
        "ftp://127.0.0.1/a",
        "http:///a",
        "http://127.0.0.1:99999/a",
        "http://user:secret@{}/a",
        "gopher://{}/a",
    ],
)
def test_nothing_is_asked_of_a_host_that_is_not_listed(place: Place, address: str) -> None:
    place.put("/a", {})
    assert reason(address.format(place.host), limits(place))
    assert place.asked == []


def test_a_host_without_port_means_the_usual_one(place: Place) -> None:
    assert "not listed" in reason(place.put("/a", {}), Limits(["127.0.0.1"], (), 5, 1000))
    assert place.asked == []


def test_redirections_lead_to_listed_hosts_only_and_not_for_ever(place: Place) -> None:
    place.put("/good", "[1]")
    assert fetch(place.put("/a", "", 302, Location="/good"), limits(place)).body == b"[1]"
    for target in ("http://127.0.0.2:1/x", "file:///etc/passwd", "http://169.254.169.254/latest/", "//localhost/x"):
        told = reason(place.put("/b", "", 301, Location=target), limits(place))
        assert "listed" in told or "not an http" in told
    assert "redirected more than 3 times" in reason(place.put("/loop", "", 307, Location="/loop"), limits(place))
    assert reason(place.put("/nowhere", "", 302), limits(place)).startswith("redirected more than")


@pytest.mark.parametrize("status", [204, 304, 403, 404, 500, 503])
def test_another_answer_than_a_document_is_told(place: Place, status: int) -> None:
    assert f"the answer was {status}" in reason(place.put("/a", "" if status in (204, 304) else "no", status), limits(place))


def test_a_server_that_is_down_is_told(place: Place) -> None:
    address = place.address("/a")
    of = limits(place)
    place.server.server_close()
    told = reason(address, of).lower()
    assert "refused" in told or "reset" in told  # reset: the kernel had taken the connection just before the socket went


@pytest.mark.parametrize(
    ("head", "drops"),
    [
        (HEAD + b"Content-Length: 5000\r\n\r\n", b" "),
        (HEAD + b"\r\n", b" "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (HEAD, b"X-A: b\r\n"),
        (HEAD + b"X-Long: ", b"a"),
        (b"HTTP/1.1 ", b"2"),
        (b"", b" "),
    ],
    ids=["body", "endless", "chunks", "headers", "one header", "status", "nothing"],
)
def test_a_server_that_drips_is_given_up_in_time(place: Place, head: bytes, drops: bytes) -> None:
    began = time.monotonic()
    told = reason(place.dripping("/a", head, drops), limits(place, 0.4))
    assert time.monotonic() - began < 2
    assert told == "timeout: no whole answer within 0.4 s"


def test_a_server_that_says_nothing_is_given_up_in_time(place: Place) -> None:
    address = place.answering("/a", lambda handler: time.sleep(2))
    began = time.monotonic()
    assert reason(address, limits(place, 0.3)).startswith("timeout")
    assert time.monotonic() - began < 1.5


def test_a_server_that_is_silent_while_tls_begins_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        assert reason(f"https://{host}/a", Limits([host], (), 0.3, 1000)) == "timeout: no whole answer within 0.3 s"
        assert time.monotonic() - began < 1.5


def test_a_server_that_speaks_no_tls_is_told(place: Place) -> None:
    address = place.put("/a", {}).replace("http:", "https:")
    assert "SSL" in reason(address, limits(place))


def test_the_time_limit_holds_over_all_redirections(place: Place) -> None:
    def late(handler: Handler) -> None:
        time.sleep(0.25)
        place_answer(handler)

    place.put("/late", "", 302, Location="/late")
    place_answer = place.server.answers["/late"]
    assert reason(place.answering("/late", late), limits(place, 0.4)).startswith("timeout")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (HEAD + b"Content-Length: 50\r\n\r\n[1, 2", "truncated: 45 bytes are missing"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n50\r\n[1, 2", "IncompleteRead"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n[1, 2", ""),
        (HEAD + b"Content-Length: 20000\r\n\r\n" + b" " * 20000, "more than 10000 bytes"),
        (HEAD + b"\r\n" + b" " * 20000, "more than 10000 bytes"),
        (b"", "RemoteDisconnected"),
        (b"SSH-2.0-OpenSSH_9\r\n", "BadStatusLine"),
        (HEAD + b"A: b\r\n" * 200 + b"\r\n", "got more than 100 headers"),
        (HEAD + b"A: " + b"b" * 70000 + b"\r\n\r\n", "LineTooLong"),
    ],
    ids=["cut", "cut chunk", "no chunk", "huge", "huge without length", "nothing", "no http", "many headers", "long header"],
)
def test_what_is_cut_or_huge_or_no_http_is_told(place: Place, data: bytes, told: str) -> None:
    assert told in reason(place.raw("/a", data), limits(place))


def test_files_are_read_from_listed_folders_only(place: Place, tmp_path: Path) -> None:
    inside, outside = tmp_path / "feeds", tmp_path / "other"
    inside.mkdir()
    outside.mkdir()
    (inside / "a.json").write_text("[1]")
    (outside / "b.json").write_text("[2]")
    (inside / "link.json").symlink_to(outside / "b.json")
    (inside / "big.json").write_text(" " * 20_000)
    os.mkfifo(inside / "pipe")
    of = limits(place, folders=(str(inside),))
    found = fetch(str(inside / "a.json"), of)
    assert found.body == b"[1]"
    assert found.modified_at is not None
    for name, told in (
        (str(outside / "b.json"), "not in a folder"),
        (str(inside / "link.json"), "not in a folder"),
        (f"{inside}/../other/b.json", "not in a folder"),
        (str(inside / "none.json"), "No such file"),
        (str(inside), "not a file"),
        (str(inside / "pipe"), "not a file"),
        (str(inside / "big.json"), "more than 10000 bytes"),
        ("a.json", ""),
        ("/etc/passwd", "not in a folder"),
    ):
        assert told in reason(name, of), name


def test_all_addresses_of_a_host_together_have_the_time_of_one_reading(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf, ExitStack() as stack:
        address = deaf.getsockname()
        for _ in range(3):  # its queue is full from here on: whoever connects gets no answer
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", address)
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [dead] * 5)
        began = time.monotonic()
        assert "timeout" in reason(place.put("/a", {}), limits(place, 0.5))
        assert time.monotonic() - began < 1.5
        host, port = place.host.split(":")
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [dead, (*dead[:4], (host, int(port)))])
        assert fetch(place.put("/a", {}), limits(place, 0.5)).body == b"{}"
