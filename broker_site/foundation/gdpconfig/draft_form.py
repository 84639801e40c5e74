"""Lines of a change as forms of the pages send them: `kind`, `key`, `vo`, `value`, `until` and `act`, once for each line.

Of a row `key` is its name and `value` its columns as a JSON object.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import zip_longest

from django.http import QueryDict

from broker_site.foundation.gdpconfig.changesets import CONFIG, Line, named_line
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.kernel.verdict import Problem

FIELDS = ("key", "vo", "value", "until", "act", "kind")
MOST_TYPED = 100
"""Lines that one form may have; more go by REST or by an import."""
REMOVE = "remove"
"""The `act` of a line that removes an override; any other sets it."""


def sent_rows(sent: QueryDict) -> list[dict[str, str]]:
    """The lines as they were typed; those without a key are left out. BadConfig: too many for a form."""
    columns = [sent.getlist(field)[: MOST_TYPED + 1] for field in FIELDS]
    rows = [dict(zip(FIELDS, cells, strict=True)) for cells in zip_longest(*columns, fillvalue="")]
    typed = [row for row in rows if row["key"].strip()]
    if len(typed) > MOST_TYPED:
        raise BadConfig(Problem("lines", "range", f"there are more lines than the {MOST_TYPED} of a form: import them"))
    return typed


def draft_lines(rows: list[dict[str, str]]) -> list[Line]:
    """The lines that they mean. BadConfig: an end that is no time."""
    lines, faults = [], []
    for number, row in enumerate(rows):
        kind = row["kind"].strip() or CONFIG
        remove = row["act"] == REMOVE
        until = None
        if row["until"].strip() and not remove:
            try:
                until = read_time(row["until"])
            except ValueError:
                faults.append(Problem(f"lines[{number}].until", "format", "a time as 2026-12-24 18:00, in UTC"))
        value = None if remove else row["value"].strip()
        lines.append(named_line(kind, row["key"], row["vo"].strip(), value, remove=remove, until=until))
    if faults:
        raise BadConfig(*faults)
    return lines


def sent_base(sent: QueryDict) -> int | None:
    """The revision that the author looked at; None where the form says none. BadConfig: no number."""
    text = sent.get("base", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadConfig(Problem("base", "type", "the number of a revision"))
    return int(text)


def read_time(text: str) -> datetime:
    """A time as people type it, UTC where it names no zone. ValueError, also for one that UTC has not."""
    at = datetime.fromisoformat(text.strip())
    if at.tzinfo is None:
        return at.replace(tzinfo=UTC)
    try:
        at.astimezone(UTC)
    except OverflowError:
        raise ValueError(text) from None
    return at
