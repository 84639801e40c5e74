"""The units of every VO now: which model drives it, which are never throttled, and what the throttler last decided of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connections

from broker_site.foundation import gdpconfig
from workqueues.models import GlobalShare, Task, ThrottleVerdict, WorkQueue
from workqueues.queries.agent_work import WORK
from workqueues.rules.throttle.units import Group, Model, QueueOfUnit, Unit, unit_of
from workqueues.states import TASK


@dataclass(frozen=True, slots=True)
class Units:
    """What is known at one moment: VOs with a share tree, work queues by id, leaves that are never throttled, and what percentage
    of all each leaf is to have, by VO and name.
    """

    with_tree: frozenset[str]
    queues: Mapping[int, QueueOfUnit]
    unthrottled_shares: frozenset[str]
    percents: Mapping[tuple[str, str], float]

    @classmethod
    def load(cls, using: str = "default") -> Units:
        """Read them; two statements."""
        columns = ("name", "vo", "throttled", "standing__percent", "standing__place")
        shares = list(GlobalShare.objects.using(using).values_list(*columns))
        rows = WorkQueue.objects.using(using).values_list("id", "queue_name", "queue_function", "queue_share", "partition_id")
        return cls(
            with_tree=frozenset(vo for _, vo, *_ in shares),
            queues={id_: QueueOfUnit(name, function, share, partition or 0) for id_, name, function, share, partition in rows},
            unthrottled_shares=frozenset(name for name, _, throttled, *_ in shares if not throttled),
            percents={(vo, name): percent for name, vo, _, percent, place in shares if place is not None},
        )

    def model(self, vo: str) -> Model:
        """What drives a VO: its work queues where SHARE_MODEL says so, or where it has no share tree."""
        return "global" if vo in self.with_tree and gdpconfig.value("shares", "SHARE_MODEL", vo=vo) == "global" else "work_queue"

    def percents_of_shares(self) -> Mapping[str, float]:
        """What percentage of all each share is to have, of VOs that their shares drive."""
        return {name: percent for (vo, name), percent in self.percents.items() if self.model(vo) == "global"}

    def without_shares(self, vos: Iterable[str]) -> frozenset[str]:
        """Those of some VOs that no shares drive."""
        return frozenset(vo for vo in vos if self.model(vo) != "global")

    def of(self, group: Group) -> Unit:
        return unit_of(group, self.model(group.vo), self.queues)

    def unthrottled(self, unit: Unit) -> bool:
        """Whether a unit is never throttled: a leaf marked so, a work queue without share, and work without either."""
        if unit.work_queue_id:
            return self.queues[unit.work_queue_id].share is None
        return not unit.name or unit.name in self.unthrottled_shares


_OF_TASK = f"""
SELECT EXISTS (SELECT FROM workqueues_globalshare WHERE vo = %s), q.id, q.queue_name, q.queue_function, q.queue_share,
    coalesce(q.partition_id, 0)
FROM workqueues_task t LEFT JOIN workqueues_workqueue q ON true WHERE t.id = %s AND {WORK["unused inputs"]}
"""
"""What makes the unit of a task that has files to use: whether its VO has a share tree, and the work queues."""


def throttle_reason(task: Task, using: str = "default") -> str:
    """Why the throttler makes no jobs for a task that has files to use, in words; empty where it does."""
    if task.status not in TASK.generating:
        return ""
    with connections[using].cursor() as cursor:
        cursor.execute(_OF_TASK, [task.vo, task.id])
        rows = cursor.fetchall()
    if not rows:
        return ""
    with_tree = frozenset([task.vo] if rows[0][0] else [])
    queues = {id_: QueueOfUnit(name, function, share, above) for _, id_, name, function, share, above in rows if id_}
    group = Group(task.vo, task.prod_source_label, task.gshare, task.work_queue_id or 0, task.resource_type)
    unit = Units(with_tree, queues, frozenset(), {}).of(group)
    verdict = last_verdict(unit, using)
    if verdict is None:
        return ""
    if verdict.decision == "SKIP":
        return f"{unit} is throttled: {verdict.reason}"
    if verdict.least_priority is not None and task.current_priority < verdict.least_priority:
        return f"{unit} is throttled: only {verdict.reason}, and this one has {task.current_priority}"
    return ""


def last_verdict(unit: Unit, using: str = "default") -> ThrottleVerdict | None:
    verdicts = ThrottleVerdict.objects.using(using).filter(vo=unit.vo, prod_source_label=unit.label, unit=unit.name)
    return verdicts.filter(work_queue_id=unit.work_queue_id, resource_type=unit.resource_type).order_by("-id").first()
