"""The work queues of each VO with their shares, and which of them are active."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from workqueues.models import Task, WorkQueue
from workqueues.rules.work_queues.queue_shares import Shared
from workqueues.states import TASK


def active_queues() -> dict[str, set[int]]:
    """VO -> ids of the work queues with tasks that get jobs, which makes them active as jobs do; one statement."""
    found: dict[str, set[int]] = {}
    for vo, queue in Task.objects.filter(status__in=TASK.generating).order_by().values_list("vo", "work_queue_id").distinct():
        found.setdefault(vo, set()).add(queue or 0)
    return found


def shared_queues(vo: str, rows: Iterable[WorkQueue], active: Collection[int]) -> list[Shared]:
    """The queues that are for a VO, in order, known by their ids; one whose partition is not for it stands for itself."""
    own = {row.id: row for row in rows if row.vo in ("", "*", vo)}
    return [
        Shared(
            name=str(row.id),
            share=row.queue_share,
            active=row.id in active,
            stretchable=row.stretchable,
            is_partition=row.is_partition,
            partition=str(row.partition_id) if _is_partition(own, row.partition_id) else "",
        )
        for row in own.values()
    ]


def _is_partition(rows: Mapping[int, WorkQueue], id_: int | None) -> bool:
    return id_ is not None and id_ in rows and rows[id_].is_partition
