"""The families of matchers and brokers that ask at once: the real verb on a database of its own, in a process of its own."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from functools import lru_cache

from broker_site.roof.conformance.registry import Answer, Given, family

END_S = 60.0


@lru_cache(maxsize=1)
def _matchers() -> subprocess.Popen[str]:
    """The process that answers; it makes its database with the first case, and drops it when nobody asks any more."""
    command = [sys.executable, "-m", "broker_site.roof.conformance.matchers"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _answer(what: str, given: Given) -> Answer:
    process = _matchers()
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process that answers has no pipes")
    try:
        process.stdin.write(json.dumps({"what": what, "given": dict(given)}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except OSError:
        line = ""
    if not line:
        raise ValueError("no database to try this on; what it printed says why")
    told: dict[str, Answer] = json.loads(line)
    if "error" in told:
        raise ValueError(str(told["error"]))
    return told["answer"]


@family(
    "concurrency",
    given="waiting_jobs matchers [requests_each] [queues] [until]",
    expect="handed_out no_match handed_twice errors left",
)
def matched(given: Given) -> Answer:
    """Every job once, and no `nothing` while one waits."""
    return _answer("matched", given)


@family("concurrency", given="empty_queues queues_with_jobs requests", expect="handed_out no_match")
def drained(given: Given) -> Answer:
    """Task queues that were drained just before hide no job of others."""
    return _answer("drained", given)


@family("concurrency", given="queue parallel repeat", expect="job_lost job_in_queue_without_sites")
def removed_and_used(given: Given) -> Answer:
    """A task queue is removed while a job is put there."""
    return _answer("removed_and_used", given)


@family("wq_acquire_concurrent", given="agents elements slots", expect="acquired_total acquired_twice")
def pulled(given: Given) -> Answer:
    """Brokers pull at once: every element goes to one of them."""
    return _answer("pulled", given)


@family("concurrency", given="parallel_inserts distinct_requirements", expect="queues jobs")
def inserted(given: Given) -> Answer:
    """Equal requirements share a task queue, whoever makes it."""
    return _answer("inserted", given)
