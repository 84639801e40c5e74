"""Shares and work queues as lines of change sets have them: places, texts, and the rows that a text means.

The name of a share is unique over all VOs. The name of a work queue in a line has its label after a slash where it is for one:
`evgen/managed`. Not here: what may stand, and writing it (`ledger.share_lines`, `ledger.work_queue_lines`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.gdpconfig.changesets import Place, columns_of
from broker_site.foundation.gdpconfig.keys import APP
from broker_site.foundation.gdpconfig.row_columns import Column, written
from workqueues.models import GlobalShare, WorkQueue
from workqueues.queries.shares import PATTERNS
from workqueues.queries.work_queues import unique_name
from workqueues.rules.shares.editing import EditedShare

SHARE, WORK_QUEUE = "share", "work_queue"
BETWEEN = "/"
"""What stands between name and label of a work queue."""
SHARE_COLUMNS = (
    Column("parent", "text", "", longest=32),
    Column("value", "number", required=True),
    Column("position", "integer", 0),
    Column("throttled", "flag", True),
    *(Column(name, "text", "") for name in PATTERNS),
)
WORK_QUEUE_COLUMNS = (
    Column("queue_order", "integer", required=True),
    Column("queue_share", "integer", None, optional=True),
    Column("criteria", "text", ""),
    Column("variables", "text", ""),
    Column("partition", "text", "", longest=128),
    Column("is_partition", "flag", False),
    Column("stretchable", "flag", False),
    Column("queue_function", "text", "", longest=32),
    Column("status", "text", "active", longest=64),
)


def share_place(name: str, vo: str) -> Place:
    return Place(SHARE, APP, SHARE, name, vo)


def shares_as_texts(using: str = "default") -> dict[Place, str]:
    """All shares by VO and name; one statement."""
    rows = GlobalShare.objects.using(using).order_by("vo", "name")
    return {share_place(row.name, row.vo): share_text(row) for row in rows}


def share_text(row: GlobalShare) -> str:
    """The columns of a share."""
    columns = {name: getattr(row, name) for name in ("value", "position", "throttled", *PATTERNS)}
    return written({"parent": row.parent_id or "", **columns})


def share_row(place: Place, text: str) -> GlobalShare:
    """The row that a text means, unsaved."""
    columns = columns_of(text)
    return GlobalShare(name=place.name, vo=place.vo, parent_id=columns.pop("parent") or None, **columns)


def edited_share(place: Place, text: str) -> EditedShare:
    """A share of a draft as the rules see it."""
    columns = columns_of(text)
    patterns = tuple((name, columns[name]) for name in PATTERNS if columns.get(name))
    return EditedShare(place.name, place.vo, columns["parent"], float(columns["value"]), patterns)


def queue_place(row: WorkQueue) -> Place:
    """Where a work queue stands in change sets."""
    label = f"{BETWEEN}{row.queue_type}" if row.queue_type else ""
    return Place(WORK_QUEUE, APP, WORK_QUEUE, f"{row.queue_name}{label}", row.vo)


def split_name(name: str) -> tuple[str, str]:
    """Name and label of a work queue."""
    front, _, label = name.partition(BETWEEN)
    return front, label


def queues_as_texts() -> dict[Place, str]:
    """All work queues in their order; one statement."""
    rows = WorkQueue.objects.select_related("partition").order_by("queue_order")
    return {queue_place(row): queue_text(row) for row in rows}


def queue_text(row: WorkQueue) -> str:
    """The columns of a work queue; `partition` is the name of the one it is in, with its VO and label."""
    columns = {column.name: getattr(row, column.name) for column in WORK_QUEUE_COLUMNS}
    return written(columns | {"partition": unique_name(row.partition) if row.partition else ""})


def bare_queue(place: Place, text: str) -> WorkQueue:
    """The row that a text means, unsaved and in no partition yet."""
    columns: dict[str, Any] = columns_of(text)
    columns.pop("partition")
    name, label = split_name(place.name)
    return WorkQueue(queue_name=name, queue_type=label, vo=place.vo, **columns)


def queue_rows(texts: Mapping[Place, str]) -> dict[Place, WorkQueue]:
    """The rows that all texts mean, unsaved, each in its partition."""
    rows = {place: bare_queue(place, text) for place, text in texts.items()}
    by_name = {unique_name(row): row for row in rows.values()}
    for place, text in texts.items():
        rows[place].partition = by_name.get(columns_of(text)["partition"])
    return rows
