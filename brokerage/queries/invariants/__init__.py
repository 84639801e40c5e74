"""What must hold of the data at every moment, as named SQL statements that find what does not.

Each statement is true of every snapshot, also under load: it compares only what one transaction writes together. One
transaction, REPEATABLE READ and READ ONLY, runs them all. Used by `manage.py check_invariants`, by tests and by whoever watches
an installation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection, transaction

from brokerage.queries.invariants import datasets, elements, events, files, histories, jobs, merging, rollups, tasks, transfers
from brokerage.queries.invariants.statement import PARAMETERS, Invariant

__all__ = ["INVARIANTS", "Finding", "Invariant", "check", "look", "look_at"]

INVARIANTS: tuple[Invariant, ...] = (
    *tasks.INVARIANTS,
    *datasets.INVARIANTS,
    *files.INVARIANTS,
    *events.INVARIANTS,
    *jobs.INVARIANTS,
    *elements.INVARIANTS,
    *merging.INVARIANTS,
    *histories.INVARIANTS,
    *transfers.INVARIANTS,
    *rollups.INVARIANTS,
)

TIMEOUT = "10min"
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """What one statement found: how many violations, and some of them in words."""

    invariant: Invariant
    violations: int
    examples: tuple[str, ...]
    seconds: float


def check() -> list[Finding]:
    """Run every statement on one snapshot of the database."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [TIMEOUT])
        return list(look())


def look() -> Iterator[Finding]:
    """Run every statement on what the current transaction sees."""
    for invariant in INVARIANTS:
        yield look_at(invariant)


def look_at(invariant: Invariant) -> Finding:
    """Run one statement on what the current transaction sees."""
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*), coalesce((array_agg(what ORDER BY what))[1:{EXAMPLES}], '{{}}') FROM ({invariant.sql}) AS v(what)",
            dict(PARAMETERS),
        )
        count, examples = cursor.fetchone() or (0, [])
    return Finding(invariant, int(count), tuple(examples), time.monotonic() - began)
