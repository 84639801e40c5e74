"""Pilots without payloads, many in one process: they ask, say that a job runs, report it as finished, and ask again.

They speak the wire as our pilot does, over one connection each; an ask waits for a job as long as the server lets it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import time
import uuid
from collections.abc import Callable
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


Where = Callable[[int], tuple[str, str]]
"""The queue (name, enrolment secret) to which a pilot of this number goes."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What pilots offer, how long jobs run there, s, and how long a pilot lives, or waits for a job, before another one takes its
    place, s.

    A job takes half as long or half as long again, as chance has it: slots do not end all at once.
    """

    cores: int = 1
    run_s: float = 0.0
    life_s: float = math.inf
    idle_s: float = math.inf


async def pilot(url: str, queue: str, secret: str, number: int, slot: Slot, counts: Counts) -> None:
    """Serve a queue as long as a pilot lives; what it runs then is ended first."""
    connection = Connection(url)
    me = {"queue": queue, "host": "bench", "slot": f"slot{number}", "cores": slot.cores, "memory_mb": 16_000, "disk_mb": 20000}
    until = time.monotonic() + slot.life_s
    try:
        while True:
            status, answer = await connection.post("/api/v1/pilots/", me, secret)
            if status == 201:
                break
            await asyncio.sleep(REFUSED_S)
        token, wait_s = answer["token"], answer["long_poll_s"]
        while (left_s := min(until - time.monotonic(), slot.idle_s)) > 0:
            offer = {
                "cores": slot.cores,
                "memory_mb": 16_000,
                "disk_mb": 20000,
                "walltime_s": 86000,
                "wait_s": min(wait_s, left_s),
                "last": left_s <= wait_s,
            }
            status, answer = await connection.post("/api/v1/pilots/match/", {"request": str(uuid.uuid4()), **offer}, token)
            if status == 200:
                await _run(connection, answer["job"], slot.run_s, counts)
            elif status == 204 and left_s <= wait_s:
                break
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
        await asyncio.sleep(run_s * random.uniform(0.5, 1.5))
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


async def serve(url: str, where: Where, pilots: int, slot: Slot, counts: Counts) -> None:
    """So many pilots at a time, each at the queue where it is sent, until cancelled."""
    turn = itertools.count()

    async def succeeding() -> None:
        while True:
            number = next(turn)
            await pilot(url, *where(number), number, slot, counts)

    async with asyncio.TaskGroup() as group:
        for _ in range(pilots):
            group.create_task(succeeding())
