"""What a pilot says to the server: path and body of each message. The load of the benchmarks is made of the same."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from brokerage.pilot.clocks import wall_time
from brokerage.pilot.guardian import PayloadOutcome
from brokerage.pilot.job import Failure
from brokerage.pilot.joblog import MESSAGE_LIMIT, printable
from brokerage.pilot.stage_out import StoredOutput

MATCH = "/api/v1/pilots/match/"
Message = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Resources:
    """What a pilot offers: cores, MB, and the seconds that it stays."""

    cores: int
    memory_mb: int
    disk_mb: int
    walltime_s: int


@dataclass(frozen=True)
class Submitted:
    """The job that a pilot was submitted for, and the number that it has by that."""

    job: int
    pilot_id: str


def registration(queue: str, slot: str, resources: Resources, submitted: Submitted | None = None) -> Message:
    """A pilot begins."""
    pilot = {"queue": queue, "host": socket.gethostname(), "slot": slot, "pid": os.getpid()}
    number = {"pilot_id": submitted.pilot_id} if submitted else {}
    return "/api/v1/pilots/", {**pilot, **asdict(resources), **number}


def match_submitted(resources: Resources, submitted: Submitted) -> Message:
    """A pilot asks for the job that it was submitted for; however often it asks, it is the same ask."""
    return MATCH, {"request": submitted.pilot_id, "job": submitted.job, **asdict(resources)}


def match(resources: Resources, wait_s: float = 0.0, *, last: bool = False) -> Message:
    """A pilot asks for a job; the ask has a name, so that a lost answer is given again instead of a second job.

    `wait_s`: how long it waits for the answer where there is no job yet; `last`: it leaves where there is none.
    """
    wait = {"wait_s": round(wait_s, 3)} if wait_s > 0 else {}
    leaves = {"last": True} if last else {}
    return MATCH, {"request": str(uuid.uuid4()), **asdict(resources), **wait, **leaves}


def heartbeat(job_id: int, status: str, cpu_s: float, resident: float) -> Message:
    """A job says that it lives; `resident` in bytes."""
    body = {"status": status, "cpu_s": round(cpu_s, 2), "rss_mb": round(resident / 1e6, 1)}
    return f"/api/v1/jobs/{job_id}/heartbeat/", body


def report(
    job_id: int,
    failure: Failure | None,
    started: str | None = None,
    outcome: PayloadOutcome | None = None,
    written: Iterable[StoredOutput] = (),
    log_end: str = "",
    metadata: dict[str, Any] | None = None,
) -> Message:
    """A job has ended; `started` and `outcome` where its payload began. `written`: all outputs, or the log of one that failed;
    `log_end`: the end of that log where it could not be stored; `metadata`: what the payload tells, of a job that is to.
    """
    outcome = outcome or PayloadOutcome("none", 0)
    body: dict[str, Any] = {
        "status": "finished" if failure is None else "failed",
        "start_time": started,
        "end_time": wall_time(),
        "exit_code": outcome.exit_code,
        "error": None if failure is None else {"code": failure.code, "message": _message(failure)},
        "killed": failure is not None and failure.code == "KILLED",
        "missing_inputs": [] if failure is None else list(failure.missing),
        "corrupt_inputs": [] if failure is None else list(failure.corrupt),
        "down_storages": [] if failure is None else list(failure.down),
        "outputs": [entry.as_report() for entry in written],
        "log_end": log_end,
        "metrics": {
            "cpu_s": round(outcome.cpu_s, 3),
            "max_rss_mb": round(outcome.max_rss_mb, 1),
            "max_pss_mb": round(outcome.max_pss_mb, 1),
            "read_bytes": outcome.read_bytes,
            "written_bytes": outcome.written_bytes,
            "work_mb": round(outcome.work_mb, 3),
            "wall_s": round(outcome.wall_s, 3),
        },
        "samples": outcome.samples or None,
    }
    return f"/api/v1/jobs/{job_id}/report/", body if metadata is None else {**body, "metadata": metadata}


def _message(failure: Failure) -> str:
    """Its lines, whatever characters they had."""
    return "\n".join(map(printable, failure.message.split("\n")))[:MESSAGE_LIMIT]


def settled(attempts: Iterable[tuple[int, int]]) -> Message:
    """A pilot asks what became of (job, epoch) pairs."""
    return "/api/v1/pilots/settled/", {"jobs": [list(attempt) for attempt in attempts]}
