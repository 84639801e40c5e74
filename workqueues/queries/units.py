"""The units of every VO now: which model drives it, and which units are never throttled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from broker_site.foundation import gdpconfig
from workqueues.models import GlobalShare, WorkQueue
from workqueues.rules.throttle.units import Group, Model, QueueOfUnit, Unit, unit_of


@dataclass(frozen=True, slots=True)
class Units:
    """What is known at one moment: VOs with a share tree, work queues by id, and leaves that are never throttled."""

    with_tree: frozenset[str]
    queues: Mapping[int, QueueOfUnit]
    unthrottled_shares: frozenset[str]

    @classmethod
    def load(cls, using: str = "default") -> Units:
        """Read them; two statements."""
        shares = list(GlobalShare.objects.using(using).values_list("name", "vo", "throttled"))
        rows = WorkQueue.objects.using(using).values_list("id", "queue_name", "queue_function", "queue_share", "partition_id")
        return cls(
            with_tree=frozenset(vo for _, vo, _ in shares),
            queues={id_: QueueOfUnit(name, function, share, partition or 0) for id_, name, function, share, partition in rows},
            unthrottled_shares=frozenset(name for name, _, throttled in shares if not throttled),
        )

    def model(self, vo: str) -> Model:
        """What drives a VO: its work queues where SHARE_MODEL says so, or where it has no share tree."""
        return "global" if vo in self.with_tree and gdpconfig.value("shares", "SHARE_MODEL", vo=vo) == "global" else "work_queue"

    def of(self, group: Group) -> Unit:
        """The unit of work with these columns."""
        return unit_of(group, self.model(group.vo), self.queues)

    def unthrottled(self, unit: Unit) -> bool:
        """Whether a unit is never throttled: a leaf marked so, a work queue without share, and work without either."""
        if unit.work_queue_id:
            return self.queues[unit.work_queue_id].share is None
        return not unit.name or unit.name in self.unthrottled_shares
