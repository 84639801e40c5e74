"""Granian as `up` starts it but with one process, on the database of Django's tests; and a client that sees every byte."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from broker_site.roof.embedded.process import free_port

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, seconds: float = 30
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own: status, headers by small names, body."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            line.request(method, path, body, dict(headers or {}))
            answer = line.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            line.close()

    def connect(self, raw: bytes = b"") -> socket.socket:
        """A connection on which these bytes were sent."""
        line = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        line.sendall(raw)
        return line

    def workers(self) -> list[int]:
        """Process ids of what works below granian's first process."""
        import psutil

        return [each.pid for each in psutil.Process(self.process.pid).children()]


def database_url() -> str:
    """Where the database of Django's tests is."""
    where = connection.settings_dict
    password = quote(where["PASSWORD"], safe="")
    query = f"?host={quote(where['HOST'], safe='')}&port={where['PORT']}"
    return f"postgresql://{quote(where['USER'], safe='')}:{password}@/{where['NAME']}{query}"


@contextmanager
def serving(log: Path, *options: str, application: str = "rsgi", at: str = "", **environment: str) -> Iterator[Server]:
    """A server on the test database for the time of the block: `rsgi`, which is ours, or the bare `wsgi`; `at`: its port."""
    port = int(at or free_port())
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "broker_site.settings",
        "GRIDBROKER_PROFILE": "local",
        "DATABASE_URL": database_url(),
        "SECRET_KEY": settings.SECRET_KEY,
        "GRIDBROKER_STATEMENT_TIMEOUT_MS": "5000",
        "GRIDBROKER_LOCK_TIMEOUT_MS": "2000",
        **environment,
    }
    command = (
        *(sys.executable, "-m", "granian", "--interface", application, "--http", "1", "--host", "127.0.0.1"),
        *("--port", str(port), "--workers", "1", "--workers-kill-timeout", "2", "--no-ws", "--log-level", "warning"),
        *(*options, f"broker_site.{application}:application"),
    )
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environ, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    server = Server(port, process, log)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                if server.ask("GET", "/healthz", seconds=2)[0] == 200:
                    break
            except OSError:
                assert time.monotonic() < end and process.poll() is None, log.read_text(errors="replace")
                time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
