"""Rows into PostgreSQL by COPY: ten times faster than inserts for files and jobs (facts, performance 1d)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from django.db import connection

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _cell(value: object) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    if isinstance(value, bool):
        return "t" if value else "f"
    return str(value)


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """COPY `rows` into `columns` of `table` in the current transaction. Values: text, numbers, booleans, None."""
    text = io.StringIO()
    for row in rows:
        text.write("\t".join(map(_cell, row)))
        text.write("\n")
    text.seek(0)
    with connection.cursor() as cursor, connection.wrap_database_errors:
        cursor.copy_expert(f"COPY {table} ({', '.join(columns)}) FROM STDIN", text)


def take_ids(sequence_of: str, n: int) -> list[int]:
    """Reserve `n` values of the id sequence of a table."""
    if not n:
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [sequence_of, n])
        return [row[0] for row in cursor.fetchall()]
