"""Pilots without payloads, many in one process: they ask, say that a job runs, report it as finished, and ask again.

They speak the wire as our pilot does, over one connection each; an ask waits for a job as long as the server lets it.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

CHECKSUM = "00000001"
REFUSED_S = 0.2


@dataclass(slots=True)
class Counts:
    """What the pilots have done: jobs that ended well, answers that were none of those expected."""

    finished: int = 0
    refused: list[str] = field(default_factory=list)


class Connection:
    """One connection that is kept; opened again when it was closed."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self.host, self.port = where.hostname or "", where.port or 80
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: Any, token: str) -> tuple[int, Any]:
        """Status and body of the answer; 0 where there was none."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        try:
            if self.reader is None or self.writer is None:
                self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
            self.writer.write(head.encode() + content)
            return await self._answer(self.reader)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return 0, None

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, Any]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next((int(line.partition(":")[2]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
        content = await reader.readexactly(length) if length else b""
        return int(head.split(" ", 2)[1]), json.loads(content) if content else None

    def close(self) -> None:
        """The next request opens another."""
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def pilot(url: str, queue: str, secret: str, number: int, cores: int, run_s: float, counts: Counts) -> None:
    """Serve a queue until cancelled, with so many cores; a job runs for `run_s` seconds."""
    connection = Connection(url)
    me = {"queue": queue, "host": "bench", "slot": f"slot{number}", "cores": cores, "memory_mb": 16_000, "disk_mb": 20000}
    try:
        while True:
            status, answer = await connection.post("/api/v1/pilots/", me, secret)
            if status == 201:
                break
            await asyncio.sleep(REFUSED_S)
        token, wait_s = answer["token"], answer["long_poll_s"]
        while True:
            offer = {"cores": cores, "memory_mb": 16_000, "disk_mb": 20000, "walltime_s": 86000, "wait_s": wait_s}
            status, answer = await connection.post("/api/v1/pilots/match/", {"request": str(uuid.uuid4()), **offer}, token)
            if status == 200:
                await _run(connection, answer["job"], run_s, counts)
            elif status != 204 or not wait_s:
                if status not in (0, 204, 429):
                    counts.refused.append(f"match: {status} {answer}")
                await asyncio.sleep(REFUSED_S)
    finally:
        connection.close()


async def _run(connection: Connection, job: Any, run_s: float, counts: Counts) -> None:
    address, token = f"/api/v1/jobs/{job['id']}/", job["token"]
    status, answer = await connection.post(f"{address}heartbeat/", {"status": "running"}, token)
    if status == 200:
        token = answer["token"]
    if run_s:
        await asyncio.sleep(run_s)
    outputs = [{"lfn": o["lfn"], "size": 1000, "checksum": CHECKSUM, "storage": o["storage"]} for o in job["outputs"]]
    report = {"status": "finished", "exit_code": 0, "outputs": outputs, "metrics": {"cpu_s": 1.0, "wall_s": 1.0}}
    for _ in range(100):
        status, answer = await connection.post(f"{address}report/", report, token)
        if status == 200:
            counts.finished += answer["status"] == "finished"
            return
        if 400 <= status < 500 and status != 429:
            break
        await asyncio.sleep(REFUSED_S)
    counts.refused.append(f"report of job {job['id']}: {status} {answer}")


async def serve(url: str, queues: Sequence[tuple[str, str]], pilots: int, cores: int, run_s: float, counts: Counts) -> None:
    """So many pilots of so many cores, dealt to the queues (name, enrolment secret), until cancelled."""
    async with asyncio.TaskGroup() as group:
        for number in range(pilots):
            queue, secret = queues[number % len(queues)]
            group.create_task(pilot(url, queue, secret, number, cores, run_s, counts))
