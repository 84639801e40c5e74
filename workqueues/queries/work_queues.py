"""The work queues: which of them takes a task, and those of each VO with their shares."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from workqueues.models import Task, WorkQueue
from workqueues.rules.work_queues.criteria import BadCriteria
from workqueues.rules.work_queues.criteria.parse import BadVariables
from workqueues.rules.work_queues.lint import Definition
from workqueues.rules.work_queues.mapping import Queue, QueueChoice, choose
from workqueues.rules.work_queues.queue_shares import QueueShare
from workqueues.rules.work_queues.task_attributes import attributes_of
from workqueues.states import TASK

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkQueues:
    """The active work queues of one moment, by the name under which the mapping knows them.

    `faults`: those that were written past the admin and cannot be read, with what is wrong; they take no task by their criteria.
    """

    rows: Mapping[str, WorkQueue]
    queues: Sequence[Queue]
    faults: Mapping[str, str]

    @classmethod
    def load(cls) -> WorkQueues:
        """Read them; a fault is logged once."""
        found = cls.of(WorkQueue.objects.filter(status="active").select_related("partition"))
        for fault in found.faults.items():
            _log_once(*fault)
        return found

    @classmethod
    def of(cls, active: Iterable[WorkQueue]) -> WorkQueues:
        """These ones, stored or not."""
        rows = {unique_name(row): row for row in active}
        queues, faults = [], {}
        for name, row in rows.items():
            try:
                queues.append(definition(row).read())
            except (BadCriteria, BadVariables) as error:
                faults[name] = str(error)
        return cls(rows, queues, faults)

    def mapped(self, columns: Mapping[str, Any]) -> QueueChoice:
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


@lru_cache(maxsize=256)
def _log_once(name: str, fault: str) -> None:
    logger.error("work queue %s takes no tasks, it cannot be read: %s", name, fault)


def definition(row: WorkQueue) -> Definition:
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


def active_queues() -> dict[str, set[int]]:
    """VO -> ids of the work queues with tasks that get jobs, which makes them active as jobs do; one statement."""
    active: dict[str, set[int]] = {}
    for vo, queue in Task.objects.filter(status__in=TASK.generating).order_by().values_list("vo", "work_queue_id").distinct():
        active.setdefault(vo, set()).add(queue or 0)
    return active


def shared_queues(vo: str, rows: Iterable[WorkQueue], active: Collection[int]) -> list[QueueShare]:
    """The queues that are for a VO, in order, known by their ids; one whose partition is not for it stands for itself."""
    queues = [row for row in rows if row.vo in ("", "*", vo)]
    partitions = {row.id for row in queues if row.is_partition}
    return [
        QueueShare(
            name=str(row.id),
            share=row.queue_share,
            active=row.id in active,
            stretchable=row.stretchable,
            is_partition=row.is_partition,
            partition=str(row.partition_id) if row.partition_id in partitions else "",
        )
        for row in queues
    ]
