"""A server on loopback that gives documents, well or badly; and the configuration that lets it be read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from broker_site.foundation import gdpconfig

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers each path with what the test put there."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append(self.path)
        try:
            server.answers[self.path](self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """What stands behind each path, and which were asked for."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []


class Place:
    """The server: `put` what it gives; `asked` are the paths that were asked for."""

    def __init__(self) -> None:
        self.server = Server(("127.0.0.1", 0), Handler)
        self.stopping = threading.Event()
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"

    @property
    def asked(self) -> list[str]:
        return self.server.asked

    def address(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def put(self, path: str, document: Any, status: int = 200, **headers: str) -> str:
        """A whole answer; texts and bytes as they are."""
        body = document if isinstance(document, bytes) else str(document).encode()
        if isinstance(document, dict | list):
            body = json.dumps(document).encode()

        def answer(handler: Handler) -> None:
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        return self.answering(path, answer)

    def answering(self, path: str, answer: Answer) -> str:
        """An answer of the test's own."""
        self.server.answers[path] = answer
        return self.address(path)

    def dripping(self, path: str, head: bytes, drops: bytes, pause_s: float = 0.05) -> str:
        """A head at once, then byte by byte for ever."""

        def answer(handler: Handler) -> None:
            handler.close_connection = True
            handler.wfile.write(head)
            while not self.stopping.is_set():
                for drop in drops:
                    handler.wfile.write(bytes([drop]))
                    handler.wfile.flush()
                    time.sleep(pause_s)

        return self.answering(path, answer)

    def raw(self, path: str, data: bytes) -> str:
        """Bytes as they are, then the end of the connection."""

        def answer(handler: Handler) -> None:
            handler.close_connection = True
            handler.wfile.write(data)

        return self.answering(path, answer)

    def stop(self) -> None:
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def place() -> Iterator[Place]:
    """A server that runs for one test."""
    made = Place()
    yield made
    made.stop()


@pytest.fixture
def configured(db: None, place: Place) -> Place:
    """The same, listed as a host of feeds, with a short time limit."""
    for name, value in (("FEED_HOSTS", place.host), ("FEED_TIMEOUT", "0.6s"), ("FEED_MAX_SIZE", "100kB")):
        gdpconfig.set_override("feeds", name, value, who="ann", why="tests")
    return place
