"""The plans that PostgreSQL makes for the statements of the code, and what they must not do: read or sort whole tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, cast

from django.db import connection

from broker_site.foundation.sql.postgresql.base import DatabaseWrapper
from broker_site.foundation.sql.prepared import Prepared

Node = Mapping[str, Any]
PLANNED = ("SELECT", "(SELECT", "UPDATE", "DELETE", "WITH", "INSERT")
MOST_SORTED = 3_000
"""Rows that a statement may sort: an index selected them first."""
MOST_READ = 12_000
"""Rows of a table that a statement may leaf through until its LIMIT is reached; counts of lists stop at 10,001."""
STREAMING = ("Limit", "LockRows", "Subquery Scan", "Result", "Nested Loop")
"""Steps that end when the LIMIT above them is reached: those below, the first one at least, read no further."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one statement."""

    sql: str
    root: Node

    def nodes(self) -> Iterator[Node]:
        """Every step, the outermost first."""
        rest = [self.root]
        while rest:
            node = rest.pop()
            yield node
            rest += node.get("Plans", [])

    def indexes(self) -> set[str]:
        """The indexes that it uses."""
        return {node["Index Name"] for node in self.nodes() if "Index Name" in node}

    def faults(self, rows: Mapping[str, float], partial: frozenset[str]) -> list[str]:
        """What in it costs more the more rows there are. `rows`: table -> number; `partial`: indexes of some rows only."""
        return [fault for node, limit in _limited(self.root, inf) if (fault := _fault(node, limit, rows, partial))]


def _limited(node: Node, limit: float) -> Iterator[tuple[Node, float]]:
    """Every step with the number of rows after which it may stop."""
    yield node, limit
    if node["Node Type"] == "Limit":
        limit = min(limit, node["Plan Rows"])
    for i, below in enumerate(node.get("Plans", [])):
        yield from _limited(below, limit if node["Node Type"] in STREAMING and i == 0 else inf)


def _fault(node: Node, limit: float, rows: Mapping[str, float], partial: frozenset[str]) -> str:
    kind, index = node["Node Type"], node.get("Index Name", "")
    if kind == "Sort" and node["Plans"][0]["Plan Rows"] > MOST_SORTED:
        return f"sorts {node['Plans'][0]['Plan Rows']} rows"
    walks = kind in ("Index Scan", "Index Only Scan") and "Index Cond" not in node and index not in partial
    if walks or kind == "Seq Scan":
        table = node["Relation Name"]
        read = rows[table] * min(limit / max(node["Plan Rows"], 1), 1)
        if read > MOST_READ:
            return f"reads {read:.0f} rows of {table}" + (f" along {index}" if walks else "")
    return ""


def plan_of_prepared(statement: Prepared) -> Plan:
    """The plan of a prepared statement, which is one for all values."""
    with connection.create_cursor() as cursor:
        statement.ensure(cast("DatabaseWrapper", connection), cursor)
        n = statement.execute.count("%s")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement.execute}", [None] * n)
        return Plan(statement.sql, cursor.fetchone()[0][0]["Plan"])


@contextmanager
def plans() -> Iterator[list[Plan]]:
    """The plans of the statements that Django's cursors execute meanwhile, with their values."""
    seen: list[Plan] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().upper().startswith(PLANNED):
            with connection.create_cursor() as cursor:
                cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
                seen.append(Plan(sql, cursor.fetchone()[0][0]["Plan"]))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield seen


def partial_indexes() -> frozenset[str]:
    """Indexes that have only some of the rows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indpred IS NOT NULL")
        return frozenset(row[0] for row in cursor.fetchall())
