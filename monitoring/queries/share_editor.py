"""A share tree as somebody edits it: rows as they were and as they are typed, with what each then is of all. No writes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.http import QueryDict

from broker_site.foundation.gdpconfig.changesets import Line, columns_of, named_line
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.row_columns import canonical
from broker_site.foundation.kernel.verdict import Problem
from monitoring.queries.database import alias
from monitoring.queries.shares import ShareRow
from workqueues.queries.shares import PATTERNS
from workqueues.queries.steered_rows import SHARE, SHARE_COLUMNS, shares_as_texts
from workqueues.rules.work_queues.task_attributes import spelled

COLUMNS = ("parent", "value", "position", "throttled", *PATTERNS)
FIELDS = ("name", "was", *COLUMNS, "act")
REMOVE = "remove"
LABELS = {name: spelled(name.replace("_", "")) for name in PATTERNS}
NEW_ROWS = 2
"""Empty rows below a tree, for new shares."""
MOST_ROWS = 500


@dataclass(slots=True)
class EditedRow:
    """One row of the form. `was`: its text when the form was made, empty of a new share. `level`: its depth. `beside`: percent of
    its siblings; `percent`: of all; None where it has no weight that counts. `problems`: by column, what is wrong.
    """

    name: str
    was: str
    typed: Mapping[str, str]
    act: str = ""
    level: int = 0
    beside: float | None = None
    percent: float | None = None
    line: int | None = None
    stands: ShareRow | None = None
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def new(self) -> bool:
        return not self.was

    @property
    def removed(self) -> bool:
        return self.act == REMOVE

    @property
    def changed(self) -> bool:
        return self.line is not None

    @property
    def patterns(self) -> list[tuple[str, str, str, str]]:
        """Column, the attribute of tasks, its expression, and what is wrong with that."""
        return [(name, LABELS[name], self.typed[name], self.problems.get(name, "")) for name in PATTERNS]

    @property
    def faults(self) -> list[tuple[str, str]]:
        """Field and what is wrong."""
        return [(LABELS.get(column, column), message) for column, message in self.problems.items()]

    @property
    def value(self) -> float:
        """The weight that is typed; 0 where it is none."""
        try:
            value = float(self.typed["value"])
        except ValueError:
            return 0.0
        return value if math.isfinite(value) and value > 0 and not self.removed else 0.0


@dataclass(frozen=True, slots=True)
class LevelSum:
    """Siblings together: the one above them (empty: the top) and the sum of their values, which need not be 100."""

    parent: str
    total: float


def stored_rows(vo: str) -> list[EditedRow]:
    """The tree of a VO as it is, parents before what is below them, and some empty rows."""
    texts = {place.name: text for place, text in shares_as_texts(alias()).items() if place.vo == vo}
    below: dict[str, list[str]] = defaultdict(list)
    for name, text in texts.items():
        below[columns_of(text)["parent"]].append(name)

    def inside(parent: str) -> list[str]:
        names = sorted(below[parent], key=lambda name: (columns_of(texts[name])["position"], name))
        return [each for name in names for each in (name, *inside(name))]

    rows = [EditedRow(name, texts[name], typed_of(texts[name])) for name in inside("")]
    return [*rows, *(_empty() for _ in range(NEW_ROWS))]


def sent_rows(sent: QueryDict) -> list[EditedRow]:
    """The rows as they were typed. BadConfig: more than a form may have, or columns of different lengths."""
    lists = [sent.getlist(name) for name in FIELDS]
    if len({len(each) for each in lists}) != 1 or len(lists[0]) > MOST_ROWS:
        raise BadConfig(Problem("rows", "form", f"each row has all of {', '.join(FIELDS)}, and there are at most {MOST_ROWS}"))
    rows = []
    for cells in zip(*lists, strict=True):
        row = dict(zip(FIELDS, cells, strict=True))
        name, was, act = row.pop("name").strip(), row.pop("was"), row.pop("act")
        rows.append(EditedRow(name, was, {key: value.strip() for key, value in row.items()}, act))
    missing = NEW_ROWS - sum(not row.name for row in rows)
    return [*rows, *(_empty() for _ in range(missing))]


def typed_of(text: str) -> dict[str, str]:
    """The columns of a row as a form shows them."""
    columns = columns_of(text)
    return {name: str(columns[name]).lower() if name == "throttled" else str(columns[name]) for name in COLUMNS}


def draft_of(rows: Sequence[EditedRow], vo: str) -> list[Line]:
    """Lines for the rows that differ from what they were; each row then knows its line."""
    lines: list[Line] = []
    for row in rows:
        if not row.name or (row.new and row.removed) or not _differs(row):
            continue
        row.line = len(lines)
        before = row.was or None
        if row.removed:
            lines.append(named_line(SHARE, row.name, vo, remove=True, says_before=True, before=before))
        else:
            lines.append(named_line(SHARE, row.name, vo, dict(row.typed), says_before=True, before=before))
    return lines


def add_sums(rows: Sequence[EditedRow]) -> list[LevelSum]:
    """Note the depth of each row and its part of its siblings and of all; the sums of the levels."""
    known = {row.name: row for row in rows if row.name}
    totals: dict[str, float] = defaultdict(float)
    for row in known.values():
        totals[row.typed["parent"]] += row.value
    for row in known.values():
        total = totals[row.typed["parent"]]
        row.beside = row.value / total * 100 if total else None
        row.level, row.percent = _in_all(row, known, totals)
    levels = dict.fromkeys(row.typed["parent"] for row in known.values() if not row.removed)
    return [LevelSum(parent, totals[parent]) for parent in levels]


def put_problems(rows: Sequence[EditedRow], problems: Sequence[Problem]) -> list[Problem]:
    """Put each problem beside the field that it is about; those about no field are handed back."""
    by_line = {row.line: row for row in rows if row.line is not None}
    others = []
    for problem in problems:
        front, _, column = problem.field.partition(".")
        number = front.removeprefix("lines[").removesuffix("]")
        row = by_line.get(int(number)) if front.startswith("lines[") and number.isdigit() else None
        if row is None:
            others.append(problem)
        else:
            message = problem.message.removeprefix(f"{column}: ")
            row.problems.setdefault("name" if column in ("", "key", "vo") else column, message)
    return others


def _empty() -> EditedRow:
    return EditedRow("", "", dict.fromkeys(COLUMNS, "") | {"position": "0", "throttled": "true"})


def _differs(row: EditedRow) -> bool:
    if row.new or row.removed:
        return True
    try:
        return canonical(SHARE_COLUMNS, dict(row.typed)) != row.was
    except BadConfig:
        return True


def _in_all(row: EditedRow, known: Mapping[str, EditedRow], totals: Mapping[str, float]) -> tuple[int, float | None]:
    """Depth and percent of all; no percent in a circle or below something that is not there."""
    part, level, seen = 100.0, 0, set[str]()
    at: EditedRow | None = row
    while at is not None and at.name not in seen:
        seen.add(at.name)
        total = totals[at.typed["parent"]]
        part *= at.value / total if total else 0.0
        if not at.typed["parent"]:
            return level, part
        at, level = known.get(at.typed["parent"]), level + 1
    return 0, None
