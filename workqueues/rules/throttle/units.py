"""Units: the parts of the work that generation and dispatch serve, judge and lock (decision C1; seed 001, job throttling).

Here: what a unit is, and to which one work of a task belongs. Not here: how much a unit has (`share_standing`), whether it gets
jobs (`throttle`), and which model a VO has (`workqueues.queries.units`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Model = Literal["global", "work_queue"]
"""What drives a VO: the leaves of its share tree, or its work queues."""

RESOURCE = "Resource"
"""Function of work queues that are units of their own beside global shares."""

WHOLE = frozenset({"eventservice"})
"""Work queues that are judged whole: their tasks make jobs of several resource types."""


class Group(NamedTuple):
    """The columns of tasks and task queues that say to which unit they belong; `work_queue_id` 0 = none."""

    vo: str
    label: str
    gshare: str
    work_queue_id: int
    resource_type: str


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A leaf share or a work queue, times a resource type (empty: whole), of one source label of a VO.

    `work_queue_id`: 0 for a share. A share that is empty is work without one.
    """

    vo: str
    label: str
    name: str
    work_queue_id: int = 0
    resource_type: str = ""

    @property
    def kind(self) -> Literal["share", "work queue"]:
        return "work queue" if self.work_queue_id else "share"

    def __str__(self) -> str:
        return f"{self.kind} {self.name or 'none'}{f' {self.resource_type}' if self.resource_type else ''}"


@dataclass(frozen=True, slots=True)
class QueueOfUnit:
    """A work queue as a unit: its own name, function and share, and the id of its partition (0: none)."""

    name: str
    function: str = ""
    share: float | None = None
    partition_id: int = 0


def unit_of(group: Group, model: Model, queues: Mapping[int, QueueOfUnit]) -> Unit:
    """The unit of work with these columns, in a VO of this model; `queues` by id.

    Tasks of a sub queue are handled together with those of its whole partition (seed 001, work queues). Work whose queue is gone
    belongs to its share.
    """
    queue = queues.get(group.work_queue_id)
    if queue is None or (model == "global" and queue.function != RESOURCE):
        return Unit(group.vo, group.label, group.gshare, 0, group.resource_type)
    id_ = group.work_queue_id
    if queue.partition_id in queues:
        id_, queue = queue.partition_id, queues[queue.partition_id]
    return Unit(group.vo, group.label, queue.name, id_, "" if queue.name in WHOLE else group.resource_type)
