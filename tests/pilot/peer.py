"""The server's side of the pilot's wire, small: leases, epochs, idempotent asks and reports, and faults on demand.

It speaks as the real server does, so that a pilot can be tested alone. Faults of a verb, used up in order: "lost" (the effect
without the answer), "bodiless" and "half" (the effect, and an answer that ends before its body or in it) or (status, Retry-After)
in place of the effect; a verb in `hang` has neither effect nor answer.
"""

from __future__ import annotations

import json
import math
import re
import socket
import threading
import time
import zlib
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

JOB_PATH = re.compile(r"/api/v1/jobs/(\d+)/(heartbeat|report)/")


@dataclass
class Held:
    """A job at the peer."""

    document: dict[str, Any]
    lease_until: float = 0.0
    status: str = "activated"
    command: str | None = None
    report: dict[str, Any] | None = None
    seen: list[str] = field(default_factory=list)


class Peer(ThreadingHTTPServer):
    """An HTTP server with jobs to hand out. `asked` lists (verb, body, status of the answer or 0 when it was lost)."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, storage: Path, lease_s: float = 5.0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.storage = storage
        self.lease_s = lease_s
        self.jobs: dict[int, Held] = {}
        self.waiting: list[int] = []
        self.answers: dict[str, dict[str, Any] | None] = {}
        self.asked: list[tuple[str, dict[str, Any], int]] = []
        self.faults: dict[str, list[str | tuple[int, float | None]]] = {}
        self.hang: set[str] = set()
        self.released = threading.Event()
        self.enrolment = "gbe_secret"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a pilot that was killed while it spoke."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def offer(self, transformation: str, parameters: str = "", **more: Any) -> int:
        """Put a job into the queue; `out` names outputs on the storage, all else replaces fields of the wire. Its id."""
        number = 100 + len(self.jobs)
        outputs = [
            {"lfn": lfn, "storage": "DISK", "path": str(self.storage / lfn), "type": "output"} for lfn in more.pop("out", [])
        ]
        limits = {"cores": 1, "memory_mb": 2000, "disk_mb": 1000, "walltime_s": 600}
        more["outputs"] = [{"root": str(self.storage), **entry} for entry in more.get("outputs", outputs)]
        names = {"id": number, "epoch": 1, "token": f"gbj_{number}", "task_id": 3, "attempt_nr": 1, "queue": "ALPHA"}
        program = {"transformation": transformation, "parameters": parameters, "lease_s": self.lease_s}
        self.jobs[number] = Held({**names, **program, **limits, "inputs": [], **more})
        self.waiting.append(number)
        return number

    def verbs(self, verb: str) -> list[tuple[dict[str, Any], int]]:
        """Bodies and answers of one verb, in order."""
        return [(body, status) for name, body, status in self.asked if name == verb]

    def answer(self, verb: str, number: int | None, body: dict[str, Any], token: str) -> tuple[int, dict[str, Any], float | None]:
        """The effect and the answer of a verb: (status, body, Retry-After)."""
        if verb == "register":
            return (201, self._registered(), None) if token == self.enrolment else (401, {"detail": "bad secret"}, None)
        if number is None and token != "gbp_pilot":
            return 401, {}, None
        if verb == "match":
            return self._match(body["request"])
        if verb == "settled":
            return 200, {"outcomes": [self._outcome(*pair) for pair in body["jobs"]]}, None
        held = self.jobs[number or 0]
        if token != f"gbj_{number}":
            return 403, {}, None
        return (self._beat if verb == "heartbeat" else self._report)(held, body)

    def _registered(self) -> dict[str, Any]:
        storages = [{"name": "DISK", "path": str(self.storage)}]
        return {"pilot_id": "p1", "token": "gbp_pilot", "expires_in": 86400, "storages": storages, "poll_s": 0.05}

    def _match(self, request: str) -> tuple[int, dict[str, Any], float | None]:
        if request not in self.answers:
            number = self.waiting.pop(0) if self.waiting else None
            self.answers[request] = None if number is None else {"job": self.jobs[number].document}
            if number is not None:
                self.jobs[number].status = "sent"
                self.jobs[number].lease_until = time.monotonic() + self.lease_s
        found = self.answers[request]
        return (204, {}, 0.05) if found is None else (200, found, None)

    def _live(self, held: Held) -> bool:
        """True while the lease runs; a lease that ended makes the job failed."""
        if held.report is None and held.status in ("sent", "starting", "running") and time.monotonic() > held.lease_until:
            held.status = "expired"
        return held.status in ("sent", "starting", "running")

    def _beat(self, held: Held, body: dict[str, Any]) -> tuple[int, dict[str, Any], float | None]:
        if not self._live(held):
            return 409, {}, None
        held.status = body["status"]
        held.seen.append(body["status"])
        held.lease_until = time.monotonic() + self.lease_s
        return 200, {"token": held.document["token"], "lease_s": self.lease_s, "command": held.command}, None

    def _report(self, held: Held, body: dict[str, Any]) -> tuple[int, dict[str, Any], float | None]:
        if held.report is None:
            if not self._live(held):
                return 409, {}, None
            held.report = body
            held.status = "cancelled" if body["killed"] else body["status"]
        return 200, {"status": held.status}, None

    def _outcome(self, number: int, epoch: int) -> dict[str, Any]:
        held = self.jobs[number]
        outcome = "live" if self._live(held) else "finished" if held.status == "finished" else "gone"
        return {"job_id": number, "epoch": epoch, "outcome": outcome}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Peer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        token = self.headers["Authorization"].removeprefix("Bearer ")
        found = JOB_PATH.fullmatch(self.path)
        number = int(found[1]) if found else None
        verb = found[2] if found else {"/api/v1/pilots/": "register", "/api/v1/pilots/match/": "match"}.get(self.path, "settled")
        if verb in self.server.hang:
            self.server.asked.append((verb, body, 0))
            self.server.released.wait(30)
            self._cut()
            return
        with self.server.lock:
            faults = self.server.faults.get(verb)
            fault = faults.pop(0) if faults else None
            lost = fault in ("lost", "bodiless", "half")
            if isinstance(fault, tuple):
                status, answer, retry_after = fault[0], {"detail": "as the test wants"}, fault[1]
            else:
                status, answer, retry_after = self.server.answer(verb, number, body, token)
            self.server.asked.append((verb, body, 0 if lost else status))
        if fault != "lost":
            self._send(status, answer, retry_after, part={"bodiless": 0.0, "half": 0.5}.get(str(fault), 1.0))
        if lost:
            self._cut()

    def _send(self, status: int, answer: dict[str, Any], retry_after: float | None, part: float) -> None:
        data = b"" if status == 204 else json.dumps(answer).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        if retry_after is not None:
            self.send_header("Retry-After", str(max(1, math.ceil(retry_after))))
            self.send_header("Retry-After-Ms", str(math.ceil(retry_after * 1000)))
        self.end_headers()
        self.wfile.write(data[: int(part * len(data))])

    def _cut(self) -> None:
        """End the connection without an answer."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the overridden method
        """Say nothing."""


def adler(content: bytes) -> str:
    """adler32 as the wire writes it."""
    return f"{zlib.adler32(content):08x}"
