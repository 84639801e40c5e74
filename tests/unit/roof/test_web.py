"""What stands between granian and Django by itself: lanes that do not wait for each other, bodies within their bounds."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from pytest_django import Settings

from broker_site.foundation.access.problems import Refused
from broker_site.roof.web import body as bodies
from broker_site.roof.web import long_answer
from broker_site.roof.web.application import Application
from broker_site.roof.web.body import Bodies
from broker_site.roof.web.environ import environ_of
from broker_site.roof.web.lane import Lane, Overloaded
from broker_site.roof.web.lanes import lanes


@dataclass
class Headers:
    pairs: list[tuple[str, str]]

    def get(self, key: str, default: Any = None) -> Any:
        return dict(self.pairs).get(key, default)

    def items(self) -> list[tuple[str, str]]:
        return self.pairs


@dataclass
class Request:
    """A request as granian describes it, with what comes of its body."""

    headers: Headers
    parts: list[bytes] = field(default_factory=list)
    stalls: bool = False
    method: str = "POST"
    path: str = "/é"
    query_string: str = "a=%00"
    http_version: str = "1.1"
    scheme: str = "http"
    server: str = "127.0.0.1:8000"
    client: str = "[::1]:5000"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part
        if self.stalls:
            await asyncio.sleep(60)

    async def __call__(self) -> bytes:
        return b"".join([part async for part in self])


@pytest.mark.parametrize(
    ("method", "path", "lane"),
    [
        ("POST", "/api/v1/jobs/7/heartbeat/", "heartbeats"),
        ("POST", "/api/v1/jobs/7/report/", "heartbeats"),
        ("POST", "/api/v1/pilots/", "pilots"),
        ("POST", "/api/v1/pilots/match/", "pilots"),
        ("POST", "/api/v1/tasks/", "submissions"),
        ("POST", "/api/v1/tasks/7/what-if/", "submissions"),
        ("POST", "/tasks/7/brokerage/what-if/", "submissions"),
        ("GET", "/readyz", "probes"),
        ("GET", "/api/v1/jobs/", "people"),
        ("POST", "/api/v1/tasks/7/kill/", "people"),
        ("POST", "/login/", "people"),
        ("GET", "/tasks/", "people"),
    ],
)
def test_each_request_has_its_lane(method: str, path: str, lane: str) -> None:
    assert lanes(4, 4, 5.0, lambda begun: ()).of(method, path).name == lane


def test_a_full_lane_refuses_and_another_answers() -> None:
    free = threading.Event()

    async def crowd() -> tuple[Sequence[object], str]:
        busy, other = Lane("busy", 2, 3, 60.0), Lane("other", 1, 0, 60.0)
        waiting = [asyncio.ensure_future(busy.run(free.wait)) for _ in range(6)]
        await asyncio.sleep(0)
        answer = await other.run(lambda: "answered")
        free.set()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        busy.close()
        other.close()
        return answers, answer

    answers, answer = asyncio.run(crowd())
    assert answer == "answered"
    assert answers[:5] == [True] * 5
    assert isinstance(answers[5], Overloaded)


def test_what_a_request_throws_is_its_own() -> None:
    async def one() -> Sequence[object]:
        lane = Lane("one", 1, 5, 60.0)
        found = await asyncio.gather(lane.run(lambda: 1 // 0), lane.run(lambda: 2), return_exceptions=True)
        assert lane.inside == 0
        lane.close()
        return found

    fault, answer = asyncio.run(one())
    assert isinstance(fault, ZeroDivisionError)
    assert answer == 2


def read(request: Request, held: Bodies) -> bytes | Refused:
    try:
        return asyncio.run(held.read(request, request))
    except Refused as refused:
        return refused


@pytest.mark.parametrize(
    ("headers", "parts", "stalls", "answer"),
    [
        ([], [], False, b""),
        ([("content-length", "4")], [b"ab", b"cd"], False, b"abcd"),
        ([("transfer-encoding", "chunked")], [b"ab"], False, b"ab"),
        ([("content-length", "4")], [b"ab"], True, 408),
        ([("content-length", "5000001")], [], False, 413),
        ([("content-length", "9" * 5000)], [], False, 413),
        ([("transfer-encoding", "chunked")], [b"x" * 5_000_000, b"x"], False, 413),
    ],
)
def test_a_body_is_read_whole_in_time_and_size(
    headers: list[tuple[str, str]], parts: list[bytes], stalls: bool, answer: bytes | int
) -> None:
    held = Bodies(0.05)
    found = read(Request(Headers(headers), parts, stalls), held)
    assert (found.status if isinstance(found, Refused) else found) == answer
    if isinstance(found, bytes):
        assert held.held == len(found)
        held.release(found)
    assert held.held == 0


def test_large_bodies_share_a_bound_and_small_ones_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_HELD", 150_000)
    held, large = Bodies(1), Request(Headers([("content-length", "100000")]), [b"x" * 100_000])
    first = read(large, held)
    assert isinstance(first, bytes)
    second = read(large, held)
    assert isinstance(second, Refused)
    assert (second.status, second.headers) == (429, {"Retry-After": "5"})
    assert read(Request(Headers([("content-length", "2")]), [b"{}"]), held) == b"{}"
    held.release(b"{}")
    held.release(first)
    assert isinstance(read(large, held), bytes)


def test_the_environ_has_what_the_client_sent_and_nothing_of_the_process() -> None:
    headers = Headers(
        [
            *(("host", "h"), ("x-forwarded-proto", "http"), ("x_forwarded_proto", "https"), ("cookie", "a=1"), ("cookie", "b=2")),
            *(("accept", "x"), ("accept", "y"), ("content-type", "text/plain"), ("transfer-encoding", "chunked")),
        ]
    )
    environ = environ_of(Request(headers), b"four")
    assert environ["PATH_INFO"] == "/Ã©"  # the bytes of the text, as WSGI wants them
    assert environ["HTTP_X_FORWARDED_PROTO"] == "http"
    assert (environ["HTTP_COOKIE"], environ["HTTP_ACCEPT"]) == ("a=1;b=2", "x,y")
    assert (environ["REMOTE_ADDR"], environ["SERVER_NAME"], environ["SERVER_PORT"]) == ("::1", "127.0.0.1", "8000")
    assert (environ["CONTENT_TYPE"], environ["CONTENT_LENGTH"], environ["wsgi.input"].read()) == ("text/plain", "4", b"four")
    assert "PATH" not in environ


class Sent:
    """Granian's end of a request, which keeps the answer."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 0, [("", "")], b""

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


class Streamed:
    """A client of granian that reads so many bytes of the file that it is given to send, and leaves when it may."""

    def __init__(self, most: int = -1) -> None:
        self.status, self.body, self.most, self.leaves = 0, b"", most, threading.Event()
        self.leaves.set()

    def response_file(self, status: int, headers: list[tuple[str, str]], file: str) -> None:
        assert "content-length" not in {name.lower() for name, _ in headers}
        self.status = status
        self.reader = threading.Thread(target=self._read, args=(file,))
        self.reader.start()

    def _read(self, file: str) -> None:
        with Path(file).open("rb") as pipe:
            self.body = pipe.read(self.most)
            self.leaves.wait(10)


def export(rows: Iterator[bytes | str], sent: Sent | Streamed) -> None:
    """A client asks for a list of these rows."""

    def django(environ: dict[str, Any], start: Callable[..., Any]) -> StreamingHttpResponse:
        start("200 OK", [("Content-Type", "text/csv")])
        return StreamingHttpResponse(rows, content_type="text/csv")

    async def asked() -> None:
        application = Application(django, body_s=1, routes=lanes(1, 1, 5.0, lambda begun: ()))
        await application.__rsgi__(Request(Headers([]), method="GET", path="/jobs.csv"), sent)  # type: ignore[arg-type]
        for lane in application.lanes.all():
            lane.close()

    asyncio.run(asked())


@pytest.mark.parametrize(("fails", "reads"), [(False, -1), (True, -1), (False, 1_000_000)])
def test_a_large_export_is_sent_as_it_is_read_and_says_where_it_breaks_off(fails: bool, reads: int) -> None:
    made: list[int] = []

    def rows() -> Iterator[bytes]:
        for n in range(40):
            made.append(n)
            yield b"x" * 99_998 + b"\r\n"
        if fails:
            raise ValueError("year 0 is out of range")

    answer = Streamed(reads)
    export(rows(), answer)
    answer.reader.join()
    assert answer.status == 200 and answer.body.startswith(b"x" * 100)
    if reads > 0:  # nothing more is made for who has left
        assert len(made) < 40
        return
    assert len(made) == 40 and answer.body.count(b"\r\n") >= 40
    assert answer.body.endswith(b"broken off: this list is not whole\r\n") == fails


@pytest.mark.parametrize(("n", "most"), [(40, 0), (25, 2_480_000)])
def test_who_neither_reads_an_export_nor_leaves_is_cut_off(
    n: int, most: int, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """While more is to be made, or when the rest of it lies in the pipe."""
    cut_off: list[str] = []
    monkeypatch.setattr(long_answer, "cut", cut_off.append)
    settings.UNREAD_SECONDS = 0.3
    sent, descriptors = Streamed(most), set(Path("/proc/self/fd").iterdir())
    sent.leaves.clear()
    export((b"x" * 99_998 + b"\r\n" for _ in range(n)), sent)
    assert cut_off == [Request.client]
    sent.leaves.set()
    sent.reader.join()
    assert set(Path("/proc/self/fd").iterdir()) == descriptors


@pytest.mark.parametrize(("fails", "status"), [(False, 200), (True, 500)])
def test_an_export_that_cannot_be_finished_is_no_200(fails: bool, status: int) -> None:
    """The head and the first rows were made when a row came that cannot be read."""

    def rows() -> Iterator[str]:
        yield "id,status\r\n"
        yield "1,done\r\n"
        if fails:
            raise ValueError("year 0 is out of range")

    answer = Sent()
    export(rows(), answer)
    assert answer.status == status
    if fails:
        assert json.loads(answer.body)["title"] == "Internal error"
        assert dict(answer.headers)["Content-Type"] == "application/problem+json"
    else:
        assert answer.body == b"id,status\r\n1,done\r\n"
