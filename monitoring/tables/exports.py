"""The rows of a list as JSON and as CSV: same rows, same order, same names as the database; times ISO 8601 in UTC with Z."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse

COMMA_SEPARATED = "text/csv; charset=utf-8"
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters that make a spreadsheet take a text for a formula."""


class _Lines:
    """A file for the CSV writer that hands each line back."""

    def write(self, line: str) -> str:
        return line


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def json_answer(rows: Iterable[Any], more: Mapping[str, Any]) -> HttpResponse:
    """`{"rows": [...], ...}`."""
    records = [{name: plain(value) for name, value in asdict(row).items()} for row in rows]
    body = json.dumps({"rows": records, **{name: plain(value) for name, value in more.items()}}, ensure_ascii=False)
    return HttpResponse(body, content_type="application/json; charset=utf-8")


def headers_of(name: str) -> dict[str, str]:
    """Headers of a CSV of this name."""
    return {"Content-Disposition": f'attachment; filename="{name}.csv"'}


def csv_lines(kind: type[Any], rows: Iterable[Any]) -> Iterator[str]:
    """All rows to the last, made while they are read, below a line of names; `kind` is the dataclass of the rows."""
    writer = csv.writer(_Lines())
    columns = [f.name for f in fields(kind)]
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([cell(getattr(row, column)) for column in columns])


def cell(value: Any) -> Any:
    """A value as a cell that no spreadsheet runs."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = plain(value)
    if isinstance(text, Mapping):
        text = [list(item) for item in text.items()]
    if isinstance(text, list):
        text = " ".join("/".join(map(str, item)) if isinstance(item, list) else str(item) for item in text)
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA) else text
