"""How rows and texts are printed: a table on a terminal, TSV into a pipe, JSON lines, CSV, or ids alone."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Callable, TextIO

from broker_site.client.command import terminal
from broker_site.client.errors import Unusable

Row = Mapping[str, Any]
LEAST = 24
"""Signs that a column keeps at least that is cut for another one."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TONES = {
    "done": terminal.GREEN, "finished": terminal.GREEN, "online": terminal.GREEN, "running": terminal.BOLD,
    "failed": terminal.RED, "broken": terminal.RED, "aborted": terminal.RED, "exhausted": terminal.RED, "offline": terminal.RED,
    "pending": terminal.YELLOW, "throttled": terminal.YELLOW, "paused": terminal.YELLOW, "holding": terminal.YELLOW,
}  # fmt: skip
"""Words that get a colour, beside what they say."""


@dataclass(frozen=True)
class Column:
    """A column of a list: its title, and where its value is. `yields`: it is cut where the terminal has no room for all."""

    title: str
    of: Callable[[Row], Any]
    right: bool = False
    yields: bool = False


def column(name: str, title: str = "", right: bool = False, time: bool = False) -> Column:
    """A field of the row as it is; times are in UTC to the second, of which most tell by their name that they are."""
    time = time or name == "at" or name.endswith(("_at", "_since", "_date"))
    return Column(title or name, lambda row: terminal.moment(row[name]) if time and row.get(name) else row.get(name), right)


class Printer:
    """Standard output in the form that was asked for.

    `form`: table, tsv, json, csv or quiet; `fields`: those of JSON, none: all. `colours`: whether words may have them.
    """

    def __init__(self, out: TextIO, form: str, fields: Sequence[str] = (), colours: bool = False) -> None:
        self.out, self.form, self.fields, self.colours = out, form, tuple(fields), colours

    def rows(self, rows: Iterable[Row], columns: Sequence[Column], key: str = "id") -> None:
        """A list; `key` is what `--quiet` prints of a row."""
        if self.form == "json":
            for row in rows:
                self.line(self._json(row))
        elif self.form == "quiet":
            for row in rows:
                self.line(terminal.cell(row.get(key)))
        elif self.form == "csv":
            writer = csv.writer(self.out, lineterminator="\n")
            writer.writerow([each.title for each in columns])
            writer.writerows([_csv_cell(each.of(row)) for each in columns] for row in rows)
        elif self.form == "tsv":
            for row in rows:
                self.line("\t".join(terminal.cell(each.of(row)) for each in columns))
        else:
            self._table(rows, columns)

    def document(self, document: Row, lines: Iterable[str], key: str = "id") -> None:
        """One thing: as text, or as one line of JSON. The lines are made safe here."""
        if self.form == "json":
            self.line(self._json(document))
        elif self.form == "quiet":
            self.line(terminal.cell(document.get(key)))
        else:
            for line in lines:
                self.line(terminal.safe(line))

    def line(self, text: str) -> None:
        self.out.write(text + "\n")

    def _json(self, row: Row) -> str:
        """One line, in ASCII: no sign of it means anything to a terminal."""
        if missing := [name for name in self.fields if name not in row]:
            raise Unusable(f"No field {missing[0]}", f"there are: {', '.join(map(terminal.safe, row))}")
        return json.dumps({name: row[name] for name in self.fields} if self.fields else row)

    def _table(self, rows: Iterable[Row], columns: Sequence[Column]) -> None:
        """As wide as the terminal at most; a screenful decides how wide a column is."""
        room = terminal.columns()
        left = iter(rows)
        widths = None
        while part := list(islice(left, 200)):
            cells = [[terminal.cell(each.of(row)) for each in columns] for row in part]
            if widths is None:
                widths = [max(map(terminal.width, [each.title, *texts])) for each, texts in zip(columns, zip(*cells))]
                _fit(widths, columns, room - 2 * (len(widths) - 1))
                titles = [each.title.upper() for each in columns]
                self.line(self._dim("  ".join(_padded(*each) for each in zip(titles, widths, columns)).rstrip()))
            for texts in cells:
                self.line("  ".join(self._toned(*each) for each in zip(texts, widths, columns)).rstrip())

    def _toned(self, text: str, size: int, of: Column) -> str:
        padded = _padded(text, size, of)
        tone = _TONES.get(text) if self.colours else None
        return f"{tone}{padded}{terminal.PLAIN}" if tone else padded

    def _dim(self, text: str) -> str:
        return f"{terminal.BOLD}{text}{terminal.PLAIN}" if self.colours else text


def _fit(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Cut columns that yield, the widest first, down to a few words, and the last one by what is over then."""
    least = [LEAST if each.yields else width for each, width in zip(columns, widths)]
    least[-1] = LEAST
    while sum(widths) > room and (wide := [i for i, width in enumerate(widths) if width > least[i]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
    widths[-1] = max(min(widths[-1], room - sum(widths[:-1])), 8)


def _padded(text: str, size: int, of: Column) -> str:
    shown = terminal.cut(text, size)
    blanks = " " * (size - terminal.width(shown))
    return blanks + shown if of.right else shown + blanks


def _csv_cell(value: Any) -> str:
    """No spreadsheet takes it for a formula."""
    text = terminal.cell(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
