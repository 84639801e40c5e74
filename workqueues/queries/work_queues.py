"""The work queues, and which of them takes a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workqueues.models import WorkQueue
from workqueues.rules.criteria import BadCriteria
from workqueues.rules.criteria.variables import BadVariables
from workqueues.rules.task_attributes import attributes_of
from workqueues.rules.work_queue_lint import Definition
from workqueues.rules.work_queue_mapping import Mapping as Mapped
from workqueues.rules.work_queue_mapping import Queue, choose


@dataclass(frozen=True, slots=True)
class WorkQueues:
    """The active work queues of one moment, by the name under which the mapping knows them."""

    rows: Mapping[str, WorkQueue]
    queues: Sequence[Queue]

    @classmethod
    def load(cls) -> WorkQueues:
        """Read them. Raises BadQueue for one that was written past the admin and cannot be read."""
        rows = {unique_name(row): row for row in WorkQueue.objects.filter(status="active").select_related("partition")}
        return cls(rows, [_read(name, row) for name, row in rows.items()])

    def mapped(self, columns: Mapping[str, Any]) -> Mapped:
        """Which queue takes a task with these columns, and what the others said."""
        return choose(self.queues, attributes_of(columns), columns["vo"], columns["prod_source_label"])

    def taking(self, columns: Mapping[str, Any]) -> WorkQueue | None:
        """The queue that takes a task with these columns; None where none does."""
        name = self.mapped(columns).queue
        return None if name is None else self.rows[name]

    def named(self, name: str, columns: Mapping[str, Any]) -> WorkQueue | None:
        """The queue that a task names itself, whatever its criteria; None where its VO and label have none of that name."""
        scope = (("", "*", columns["vo"]), ("", "*", columns["prod_source_label"]))
        return next(
            (
                row
                for row in self.rows.values()
                if row.queue_name == name and not row.is_partition and row.vo in scope[0] and row.queue_type in scope[1]
            ),
            None,
        )


class BadQueue(ValueError):
    """A work queue whose criteria cannot be read; the message names it and the fault."""


def _read(name: str, row: WorkQueue) -> Queue:
    try:
        return definition(row).read()
    except (BadCriteria, BadVariables) as error:
        raise BadQueue(f"work queue {name}: {error}") from error


def definition(row: WorkQueue) -> Definition:
    """A work queue as it is written."""
    return Definition(
        name=unique_name(row),
        order=row.queue_order,
        criteria=row.criteria,
        variables=row.variables,
        share=row.queue_share,
        is_partition=row.is_partition,
        partition=unique_name(row.partition) if row.partition else "",
        vo=row.vo,
        label=row.queue_type,
    )


def unique_name(row: WorkQueue) -> str:
    """The name, with VO and label where the queue is for one: names are unique only with these."""
    scope = [word for word in (row.vo, row.queue_type) if word not in ("", "*")]
    return f"{row.queue_name} ({', '.join(scope)})" if scope else row.queue_name
