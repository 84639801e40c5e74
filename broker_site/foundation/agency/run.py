"""One run of an agent: the gate that keeps its period, the record in the database, and the loop that no error ends.

An agent is a function `Run -> number of rows handled`. It may be killed at any instruction and run twice at once; what makes that
harmless are the claims and epochs of the ledgers, not anything here.
"""

from __future__ import annotations

import functools
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from celery import shared_task
from django.db import close_old_connections, connection, transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import in_words, is_of_others
from broker_site.foundation.agency.look import look_again, looking
from broker_site.foundation.kernel import clock

logger = logging.getLogger(__name__)

Body = Callable[["Run"], int]


@dataclass(frozen=True, slots=True)
class Run:
    """Who is running: agent name, identity of this run (claims carry it), the time, and how long claims last (seconds).

    `left`: what the run could not work on, and why; the record of the agent shows it.
    """

    agent: str
    id: str
    now: datetime
    claim_s: float
    left: list[str] = field(default_factory=list)

    @property
    def who(self) -> str:
        """What history rows say."""
        return f"agent:{self.agent}"

    def leave(self, what: str, error: Exception) -> None:
        """Note that the run could not work on something; the log has more of a fault that nobody foresaw."""
        self.left.append(f"{what}: {in_words(error)}")
        trace = None if is_of_others(error) else error
        logger.warning("agent %s leaves %s: %s", self.agent, what, in_words(error), exc_info=trace)


EARLY = 0.5
"""The part of its period after which a tick makes an agent run: ticks jitter, and a second beat must not double the pace."""

BODIES: dict[str, Body] = {}
"""Every declared agent's body by name; tests and the simulator run them without Celery."""


def agent(name: str) -> Callable[[Body], Body]:
    """Declare a function as the agent `name` and give it its Celery task `agent.<name>`."""

    def declare(body: Body) -> Body:
        BODIES[name] = body

        @shared_task(name=f"agent.{name}", ignore_result=True)
        def task(looked: bool = False) -> None:
            close_old_connections()  # as Django does before each request: one that is broken is not used again
            run_agent(name, looked=looked)

        @functools.wraps(body)
        def wrapped(run: Run) -> int:
            return body(run)

        wrapped.task = task  # type: ignore[attr-defined]
        return wrapped

    return declare


def new_run(name: str) -> Run:
    """A run with an identity that no other run has."""
    identity = f"{name}-{socket.gethostname()[:20]}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
    return Run(name, identity[:56], clock.now(), gdpconfig.value("agents", "CLAIM"))


def run_agent(name: str, *, looked: bool = False) -> int | None:
    """Run the agent once if it is due (or was told to look): rows handled, or None when it did not run or failed."""
    if not gdpconfig.value("agents", f"ENABLED_{name}"):
        return None
    run = new_run(name)
    if not _begin(run, 0.0 if looked else gdpconfig.value("agents", f"PERIOD_{name}") * EARLY):
        return None
    looks = looking(name)
    began = time.monotonic()
    try:
        rows = BODIES[name](run)
    except Exception as error:  # the agent loop: whatever happens, the record says so and the next period tries again
        logger.exception("agent %s failed", name)
        _failed(run, error)
        return None
    _succeeded(run, rows, time.monotonic() - began)
    look_again(name, looks, rows)
    return rows


def _begin(run: Run, period_s: float) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO agency_agent (name, last_start, last_run, last_error, left_out, rows, total_rows, runs, duration_s)
            VALUES (%(name)s, now(), %(run)s, '', '', 0, 0, 1, 0)
            ON CONFLICT (name) DO UPDATE SET last_start = now(), last_run = %(run)s, runs = agency_agent.runs + 1
            WHERE agency_agent.last_start IS NULL OR agency_agent.last_start <= now() - make_interval(secs => %(period)s)
            """,
            {"name": run.agent, "run": run.id, "period": period_s},
        )
        return bool(cursor.rowcount == 1)


def _succeeded(run: Run, rows: int, duration_s: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE agency_agent SET last_success = now(), rows = %s, total_rows = total_rows + %s, duration_s = %s,"
            " left_out = %s WHERE name = %s",
            [rows, rows, duration_s, "\n".join(run.left)[:2000].replace("\x00", ""), run.agent],
        )


def _failed(run: Run, error: Exception) -> None:
    if transaction.get_connection().in_atomic_block:
        return
    close_old_connections()  # it may have broken under the run
    text = f"{type(error).__name__}: {error}"[:2000]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE agency_agent SET last_error_at = now(), last_error = %s WHERE name = %s",
            [text.replace("\x00", ""), run.agent],
        )
