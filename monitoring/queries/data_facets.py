"""What the facets of datasets, files and transfers count: the newest that the visitor may see, to a bound, along an index.

No roll-up has them, and to group them all is a look at every row. Where there are more than were looked at, each number says
that it is one of at least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from broker_site.foundation.access.permissions import VoScope
from brokerage.states import TRANSFER
from monitoring.queries.database import rows, seen_by
from monitoring.tables.facets import MOST, Facet, facet
from monitoring.tables.selection import Selection
from workqueues.models.dataset import STATUSES as DATASET_STATUSES
from workqueues.models.file import STATUSES as FILE_STATUSES
from workqueues.states import PREMERGED_TYPES, TYPES

MOST_LOOKED = 5_000
"""Rows that are looked at: the newest, of each VO the same share; of one task as many of each type of file."""
MOST_FILES = 10_000
"""Files of one dataset in one state that are counted."""

_DATASETS = ("status", "type", "vo")
_FILES = ("status", "type")
_TRANSFERS = ("status", "source_site", "destination_site", "reason", "activity")


def _counted(columns: Sequence[str], source: str) -> str:
    """A statement: for each value of each column how many rows of the source have it, and under '' the largest of its parts.

    `source`: a bounded SELECT of the columns, of `part`, what its bound is of, and of `shown`, whether the visitor may see it.
    """
    by = " ".join(f"UNION ALL SELECT '{name}', {name}, count(*) FROM looked WHERE shown GROUP BY 2" for name in columns)
    return f"""
    WITH looked AS MATERIALIZED ({source})
    SELECT '', '', coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM looked GROUP BY part) AS parts {by}
    """


def _newest(table: str, columns: Sequence[str], where: str = "true") -> str:
    """The newest rows of a table, whatever their VO."""
    return f"SELECT {', '.join(columns)}, '' AS part, {where} AS shown FROM {table} ORDER BY id DESC LIMIT %(most)s"


def _newest_of_vos(table: str, columns: Sequence[str], where: str = "true") -> str:
    """The newest rows of each of some VOs, by an index of the table by VO and number.

    The planner does not know which VO it will be, and would leaf through all rows for a rare one: only the index has this order.
    """
    return f"""
    SELECT t.*, v.vo AS part FROM unnest(%(vos)s::text[]) AS v(vo) CROSS JOIN LATERAL (
        SELECT {", ".join(columns)}, {where} AS shown FROM {table}
        WHERE vo >= v.vo AND vo <= v.vo ORDER BY {table}.vo, id DESC LIMIT %(most)s) AS t
    """


_SHOWN_TYPE = "NOT type = ANY(%(hidden)s::text[])"
DATASETS = _counted(_DATASETS, _newest("workqueues_dataset", _DATASETS, _SHOWN_TYPE))
DATASETS_OF_VOS = _counted(_DATASETS, _newest_of_vos("workqueues_dataset", _DATASETS, _SHOWN_TYPE))
TRANSFERS = _counted(_TRANSFERS, _newest("brokerage_transfer", _TRANSFERS))
TRANSFERS_OF_VOS = _counted(_TRANSFERS, _newest_of_vos("brokerage_transfer", _TRANSFERS))
# A file does not know its VO.
FILES = _counted(
    _FILES,
    f"""
    SELECT f.status, f.type, '' AS part, f.shown AND (%(everything)s OR t.vo = ANY(%(vos)s)) AS shown FROM (
        SELECT status, type, task_id, {_SHOWN_TYPE} AS shown FROM workqueues_file ORDER BY id DESC LIMIT %(most)s
    ) AS f JOIN workqueues_task t ON t.id = f.task_id
    """,
)
FILES_OF_TASK = _counted(
    _FILES,
    f"""
    SELECT f.status, f.type, f.type AS part, f.shown FROM workqueues_task t CROSS JOIN unnest(%(types)s::text[]) AS k(type)
    CROSS JOIN LATERAL (
        SELECT status, type, {_SHOWN_TYPE} AS shown FROM workqueues_file
        WHERE task_id = t.id AND type = k.type ORDER BY id DESC LIMIT %(most)s
    ) AS f WHERE t.id = %(task)s AND (%(everything)s OR t.vo = ANY(%(vos)s))
    """,
)
FILES_OF_DATASET = """
SELECT 'status', s.status, n.n FROM workqueues_dataset d JOIN workqueues_task t ON t.id = d.task_id
CROSS JOIN unnest(%(states)s::text[]) AS s(status)
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    SELECT FROM workqueues_file f WHERE f.dataset_id = d.id AND f.status = s.status LIMIT %(most)s) AS first) AS n
WHERE d.id = %(dataset)s AND NOT d.type = ANY(%(hidden)s::text[]) AND (%(everything)s OR t.vo = ANY(%(vos)s)) AND n.n > 0
"""


class _Numbers(NamedTuple):
    """Column -> value -> rows. `bounded`: there are more than were looked at."""

    by: Mapping[str, Mapping[str, int]]
    bounded: bool

    def in_order(self, column: str, order: Sequence[str]) -> list[tuple[str, int | None]]:
        """The values of a column in this order; those that were not among the rows looked at without a number."""
        known = self.by.get(column, {})
        return [(value, known.get(value)) for value in order if value in known or self.bounded]

    def most_first(self, column: str) -> Sequence[tuple[str, int | None]]:
        pairs: list[tuple[str, int]] = sorted(self.by.get(column, {}).items(), key=lambda pair: (-pair[1], pair[0]))
        return pairs


def _numbers(sql: str, parameters: Mapping[str, object], most: int) -> _Numbers:
    by: dict[str, dict[str, int]] = defaultdict(dict)
    for column, value, n in rows(sql, {**parameters, "most": most + 1}):
        by[column][value] = n
    return _Numbers(by, by.pop("", {}).get("", 0) > most)


def _newest_seen(scope: VoScope, everywhere: str, of_vos: str, **more: object) -> _Numbers:
    """Of the newest rows that the visitor may see."""
    if scope.everything:
        return _numbers(everywhere, more, MOST_LOOKED)
    return _numbers(of_vos, {"vos": sorted(scope.names), **more}, MOST_LOOKED // max(len(scope.names), 1))


def dataset_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """Datasets by state, type and VO."""
    found = _newest_seen(scope, DATASETS, DATASETS_OF_VOS, hidden=_hidden(selection))
    of = partial(_facet, selection, found, "of the newest" if found.bounded else "datasets")
    return of("status", "State", DATASET_STATUSES), of("type", "Type", tuple(TYPES)), of("vo", "VO")


def file_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """Files by state and type: of the dataset or the task that the list is of, else the newest."""
    asked = {**seen_by(scope), "hidden": _hidden(selection)}
    if (dataset := _number(selection, "dataset")) is not None:
        values = {**asked, "dataset": dataset, "states": list(FILE_STATUSES)}
        states = _numbers(FILES_OF_DATASET, values, MOST_FILES).in_order("status", FILE_STATUSES)
        return (facet(selection, "status", "State", "of the dataset", states, most=MOST_FILES),)
    if (task := _number(selection, "task")) is not None:
        found, words = _numbers(FILES_OF_TASK, {**asked, "task": task, "types": list(TYPES)}, MOST_LOOKED), "of the task"
    else:
        found = _numbers(FILES, asked, MOST_LOOKED)
        words = "of the newest" if found.bounded else "files"
    of = partial(_facet, selection, found, words)
    return of("status", "State", FILE_STATUSES), of("type", "Type", tuple(TYPES))


def transfer_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """Transfers by state, reason, ends of their link, and activity."""
    found = _newest_seen(scope, TRANSFERS, TRANSFERS_OF_VOS)
    of = partial(_facet, selection, found, "of the newest" if found.bounded else "transfers")
    return (
        of("status", "State", TRANSFER.states),
        of("reason", "Why"),
        of("source_site", "From site", nameless="none yet"),
        of("destination_site", "To site"),
        of("activity", "Activity"),
    )


def _facet(
    selection: Selection, found: _Numbers, words: str, column: str, label: str, order: Sequence[str] = (), nameless: str = ""
) -> Facet:
    """Of a column whose values have an order: all of them; else those with most."""
    numbers = found.in_order(column, order) if order else found.most_first(column)
    shown = len(order) or MOST
    return facet(selection, column, label, words, numbers, at_least=found.bounded, nameless=nameless, shown=shown)


def _hidden(selection: Selection) -> list[str]:
    """Types that the list shows only when they are asked for: then none."""
    asked = str(selection.parameters.get("type", ""))
    shown = selection.parameters.get("premerged") == "true" or any(name in asked for name in PREMERGED_TYPES)
    return [] if shown else list(PREMERGED_TYPES)


def _number(selection: Selection, name: str) -> int | None:
    """The one number that a filter asks for; None: it asks for none, for several, or in other words."""
    text = str(selection.parameters.get(name, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
