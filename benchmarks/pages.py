"""The pages on a year of work: how long the server takes for each of a written list of questions, beside the limit of its kind.

N jobs, a tenth as many tasks and ten times as many files are in the database, with their counts over the year. Each question is
asked warm over a kept connection of the production web server; what a view that does nothing takes is taken off. Told are the
median and the 95th percentile, ms, the CPU time of web server and database, which others on the machine disturb least, the
statements of one answer, and the kB of the first load: the compressed page with its scripts and styles. There is no reference:
`ours` is the worst ratio to a limit, and `held` says how many questions keep all of theirs.
"""

from __future__ import annotations

import gzip
import http.client
import os
import re
import statistics
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from benchmarks import filling_pages
from benchmarks.filling_decisions import decide
from benchmarks.filling_world import HUGE_USER, VOS
from benchmarks.harness import Line
from benchmarks.http import BadAnswer, bare, web
from benchmarks.page_questions import LIMITS_MS, MOST_KB, MOST_QUERIES, OPERATOR, PLACES, QUESTIONS, USER, Question, places_of
from benchmarks.server import Bench, bench, keep, kept, tree_cpu_s
from broker_site.roof.supervisor import System

WARM_UP = 3
TOO_LONG = 503
"""The answer of a page whose statement ran into the limit of the database: told as broken, not the end of the run."""
ASSETS = re.compile(rb'(?:href|src)="(/static/[^"]+\.(?:css|js|svg))"')
MB = 1e6


def add_arguments(parser: ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--jobs", type=int, default=1_000_000, metavar="N", help="jobs in the database (default 1000000)")
    parser.add_argument("--times", type=int, default=50, metavar="K", help="how often each question is asked (default 50)")
    parser.add_argument("--only", default="", metavar="TEXT", help="ask only the questions with this in their name")
    folder = parser.add_mutually_exclusive_group()
    folder.add_argument("--keep", type=Path, metavar="DIR", help="keep the filled database in this folder")
    folder.add_argument("--reuse", type=Path, metavar="DIR", help="ask the database that --keep left in this folder; fill none")


def run(options: Namespace) -> Iterator[Line]:
    """Fill, ask each question, then a CSV of all jobs: a line for each, the last with what holds."""
    with _filled(options) as (server, said):
        for line in answers(server, options.times, options.only):
            if "page" in line:
                yield {"name": "pages", **line}
        yield {
            "name": "pages", "ours": line["worst"], "reference": None, "ratio": None, "unit": "p95 / limit", **line, **said,
            "times": options.times,
        }  # fmt: skip


@contextmanager
def _filled(options: Namespace) -> Iterator[tuple[Bench, Line]]:
    """A server with rows, and how many jobs they are and how long they took."""
    if options.reuse:
        with kept(options.reuse, fresh=False) as (server, said):
            yield server, said
    elif options.keep:
        with kept(options.keep, fresh=True) as (server, _):
            said = _fill(server, options.jobs)
            keep(server, said)
            yield server, said
    else:
        with bench() as server:
            yield server, _fill(server, options.jobs)


def _fill(server: Bench, jobs: int) -> Line:
    began = time.monotonic()
    filling_pages.fill(server, jobs)
    fill_s = round(time.monotonic() - began, 1)
    decide()
    return {"fill_s": fill_s, "jobs": jobs}


def answers(server: Bench, times: int, only: str = "") -> Iterator[Line]:
    """A line for each question and for a CSV of all jobs, the last with what holds; of tables that are filled. `only`: what the
    names of the questions have in them.
    """
    cookies, places, load = _signed_in(), _places(server), round(os.getloadavg()[0], 1)
    lines = []
    with web(server) as system, bare(system) as nothing:
        nothing_ms = _nothing(nothing, times)
        for question in (each for each in QUESTIONS if only in each.name):
            asking = question._replace(path=question.path.format(**places))
            line = asked(server, system, asking, cookies[question.who], times, nothing_ms)
            lines.append(line)
            yield line
        csv = _csv(system, cookies[OPERATOR])
        yield csv
    worst = max(lines, key=lambda line: line["p95"] / line["limit"])
    yield {
        "worst": round(worst["p95"] / worst["limit"], 3), "worst_page": worst["page"], "held": sum(line["ok"] for line in lines),
        "of": len(lines), "broken": [line["page"] for line in lines if not line["ok"]], "nothing_ms": round(nothing_ms, 2),
        "csv_rows": csv["rows"], "csv_grew_mb": csv["grew_mb"], "load": [load, round(os.getloadavg()[0], 1)],
    }  # fmt: skip


def asked(server: Bench, system: System, question: Question, cookie: str, times: int, nothing_ms: float) -> Line:
    """One question, measured."""
    queries = _queries(question.path, cookie)
    with Visitor(system.url, cookie) as visitor:
        for _ in range(WARM_UP):
            status, body, _ms = visitor.get(question.path)
        before = _cpu_s(server, system)
        taken = [visitor.get(question.path)[2] - nothing_ms for _ in range(times if status != TOO_LONG else 2)]
        cpu_ms = (_cpu_s(server, system) - before) * 1000 / len(taken)
        several = taken if len(taken) > 1 else taken * 2  # of one time, too
        p50, p95 = statistics.median(taken), statistics.quantiles(several, n=20, method="inclusive")[-1]
        size = visitor.first_load_kb(body)
    limit = LIMITS_MS[question.kind]
    return {
        "page": question.name, "kind": question.kind, "p50": round(p50, 1), "p95": round(p95, 1), "limit": limit,
        "ok": p95 <= limit and queries <= MOST_QUERIES and size <= MOST_KB, "queries": queries, "kB": round(size, 1),
        "cpu_ms": round(cpu_ms, 1),
    }  # fmt: skip


def _cpu_s(server: Bench, system: System) -> float:
    """CPU seconds of the web processes, and of the database where that is ours."""
    web_pid = system.children["web"].pid
    return (tree_cpu_s(web_pid) if web_pid else 0.0) + (server.cpu_s() or 0.0)


class Visitor:
    """One who asks over one connection that is kept open."""

    def __init__(self, url: str, cookie: str) -> None:
        where = urlsplit(url)
        self._connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
        self._headers = {"Cookie": cookie} if cookie else {}
        self._sizes: dict[bytes, int] = {}

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def get(self, path: str) -> tuple[int, bytes, float]:
        """Status, body and milliseconds; BadAnswer where it is no page."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        taken = (time.perf_counter() - began) * 1000
        if answer.status not in (200, TOO_LONG):
            raise BadAnswer(f"{path}: {answer.status}\n{body[:1000].decode(errors='replace')}")
        return answer.status, body, taken

    def first_load_kb(self, body: bytes) -> float:
        """The page and what it names of scripts, styles and pictures, each compressed."""
        for name in set(ASSETS.findall(body)) - self._sizes.keys():
            self._sizes[name] = len(gzip.compress(self.get(name.decode())[1]))
        return (len(gzip.compress(body)) + sum(self._sizes.values())) / 1000

    def rows(self, path: str) -> Iterator[bytes]:
        """The answer in parts, as they come."""
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise BadAnswer(f"{path}: {answer.status}")
        while part := answer.read(1 << 16):
            yield part


def _signed_in() -> dict[str, str]:
    """The cookie of each visitor."""
    from django.conf import settings
    from django.test import Client

    from broker_site.foundation.access.credentials import ensure_user

    cookies = {}
    for who, user in (
        (OPERATOR, ensure_user("bench", superuser=True)),
        (USER, ensure_user(HUGE_USER, roles=[(VOS[0], role) for role in ("submitter", "operator")])),
    ):
        client = Client()
        client.force_login(user)
        cookies[who] = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    return cookies


def _places(server: Bench) -> dict[str, str]:
    found: dict[str, Any] = {}
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for name, query in PLACES.items():
            cursor.execute(query)
            (found[name],) = cursor.fetchone() or (None,)
    return places_of({**found, "config_key": "jobbroker.STORAGE_MIN_FREE_SIZE", "config_value": 60_000})


def _nothing(url: str, times: int) -> float:
    """Median ms of a view that does nothing."""
    with Visitor(url, "") as visitor:
        return statistics.median([visitor.get("/healthz")[2] for _ in range(WARM_UP + 4 * times)][WARM_UP:])


def _queries(path: str, cookie: str) -> int:
    """Statements of one answer, the second one in this process."""
    from django.db import connections
    from django.test import Client

    n = 0

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal n
        n += 1
        return execute(sql, params, many, context)

    client = Client(headers={"Cookie": cookie, "Host": "127.0.0.1"})
    client.get(path)
    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(count))
        client.get(path)
    return n


def _csv(system: System, cookie: str) -> Line:
    """All jobs as CSV: rows, seconds, and the memory of the web processes before and at most, MB."""
    with Visitor(system.url, cookie) as visitor:
        visitor.get("/jobs/")
        began = time.monotonic()
        with _memory(system) as samples:
            n = sum(part.count(b"\n") for part in visitor.rows("/jobs.csv"))
        seconds = time.monotonic() - began
    return {
        "page": "CSV of all jobs", "rows": n - 1, "seconds": round(seconds, 1), "rss_mb": round(samples[0] / MB),
        "rss_most_mb": round(max(samples) / MB),
        "rss_after_mb": round(samples[-1] / MB), "grew_mb": round((max(samples) - samples[0]) / MB, 1),
    }  # fmt: skip


@contextmanager
def _memory(system: System) -> Iterator[list[int]]:
    """Bytes that the web processes hold together, four times a second."""
    leader = psutil.Process(system.children["web"].pid)
    samples, over = [_rss(leader)], threading.Event()

    def look() -> None:
        while not over.wait(0.25):
            samples.append(_rss(leader))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield samples
    finally:
        over.set()
        watcher.join()
        samples.append(_rss(leader))


def _rss(leader: psutil.Process) -> int:
    return sum(process.memory_info().rss for process in (leader, *leader.children(recursive=True)))
