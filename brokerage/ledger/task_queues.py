"""Task queues: made where jobs are to wait that require what no others do (row D1). Removing them: `empty_task_queues`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from brokerage.models import RequirementPlace, RequirementValue, TaskQueue
from brokerage.queries.task_requirements import requirement_of
from brokerage.rules.dispatch.dispatch_policy import DISPATCH_POLICIES
from brokerage.rules.dispatch.policies import Panda
from brokerage.rules.dispatch.requirement import Requirement, with_sets
from brokerage.rules.dispatch.task_queue_key import digest
from brokerage.rules.dispatch.task_requirement import TaskRequirement
from brokerage.rules.facts.cpu_classes import cpu_time_of
from brokerage.rules.placement.slots import Slot
from workqueues.ledger.moves import Stale
from workqueues.models import Task
from workqueues.rules.jobs.split_rule import parse


class TaskQueueKey(NamedTuple):
    """What makes jobs share a task queue. `computing_queue_id`: None of open jobs."""

    computing_queue_id: int | None
    vo: str
    prod_source_label: str
    work_queue_id: int
    gshare: str
    resource_type: str
    core_count: int
    ram_mb: int
    disk_mb: int
    walltime_s: int
    cpu_time_s: int
    owner: str
    owner_group: str
    setup: str
    requirement_set_id: int | None

    def in_order(self) -> tuple[object, ...]:
        """Its place in the order in which all make them: two that make the same ones never wait for each other in a circle."""
        return tuple(0 if value is None else value for value in self)


SAME_BUT_SHARE = " AND ".join(
    f"n.{name} IS NOT DISTINCT FROM q.{name}" if name.endswith("_id") else f"n.{name} = q.{name}"
    for name in TaskQueueKey._fields
    if name != "gshare"
)
"""That the task queue n is q with another share, as SQL."""

_FIND = f"""
SELECT {", ".join(TaskQueueKey._fields)}, id, used_at < now() - interval '30 s' FROM brokerage_taskqueue
WHERE vo = %(vo)s AND owner = %(owner)s AND gshare = %(gshare)s AND (
    computing_queue_id = ANY (%(queues)s) OR computing_queue_id IS NULL AND requirement_set_id = ANY (%(sets)s))
"""
_KEEP = "SELECT id FROM brokerage_taskqueue WHERE id = ANY (%s) ORDER BY id FOR KEY SHARE"
_USED = """
UPDATE brokerage_taskqueue SET used_at = now() WHERE id IN (
    SELECT id FROM brokerage_taskqueue WHERE id = ANY (%s) AND used_at < now() - interval '30 s' FOR NO KEY UPDATE SKIP LOCKED)
"""
_NEW_SET = """
INSERT INTO brokerage_requirementset (digest) VALUES (%s) ON CONFLICT (digest) DO UPDATE SET used_at = now()
RETURNING id, xmax = 0
"""

REMOVED = "a task queue was removed, as no job had waited there for long"
"""Why a job cannot go there; the next try makes the task queue anew."""
Places = Mapping[int, tuple[str, str]]
"""Where open jobs may go: id of a computing queue -> its name, and the storage endpoint for their outputs there."""
NO_PLACES: Places = MappingProxyType({})


def task_queues(task: Task, asks: Iterable[tuple[int, Slot]]) -> dict[tuple[int, Slot], int]:
    """The task queue of jobs of the task for each computing queue and slot; missing ones are made. Few statements, however many
    there are.
    """
    wanted = set(asks)
    requirement, set_id = requirement_of(task), None
    if requirement.sets:
        set_id = requirement_set(requirement.sets)
    keys = {(queue_id, slot): _key(task, requirement, queue_id, slot, set_id) for queue_id, slot in wanted}
    ids = _made(keys.values())
    return {ask: ids[key] for ask, key in keys.items()}


def open_task_queues(task: Task, slots: Iterable[Slot], places: Places) -> dict[Slot, int]:
    """The same of jobs that may go to several computing queues."""
    requirement, own = requirement_of(task), parse(task.split_rule).instantiate_per_queue
    set_id = requirement_set(requirement.sets, places, own_datasets=own)
    keys = {slot: _key(task, requirement, None, slot, set_id) for slot in set(slots)}
    ids = _made(keys.values())
    return {slot: ids[key] for slot, key in keys.items()}


def requirement_set(sets: Mapping[str, Collection[str]], places: Places = NO_PLACES, *, own_datasets: bool = False) -> int:
    """The row of these values and places; made with all of them, or not at all.

    `own_datasets`: outputs go to other datasets at each place.
    """
    # Of either kind no set is the same as one of before an update, when it was not told apart and jobs of both wait together.
    datasets = "own datasets" if own_datasets else "common datasets"
    queues = frozenset(f"{name} {storage} {datasets}" for name, storage in places.values())
    text = digest(with_sets(Requirement(queues=queues), sets))
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_NEW_SET, [text])
            set_id, is_new = cursor.fetchone()
        if is_new:
            value = partial(RequirementValue, requirement_set_id=set_id)
            RequirementValue.objects.bulk_create(value(attribute=name, value=one) for name, some in sets.items() for one in some)
        if places:  # of a set that is there too: a queue that was removed and came back has another id
            place = partial(RequirementPlace, requirement_set_id=set_id)
            values = {"own_datasets": own_datasets}
            rows = [place(computing_queue_id=i, storage=storage, **values) for i, (_, storage) in sorted(places.items())]
            RequirementPlace.objects.bulk_create(rows, ignore_conflicts=True)
        return int(set_id)


def locked_task_queues(ids: Collection[int]) -> set[int]:
    """Those of these task queues that are there, locked until the commit, so that nobody removes them meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, [list(ids)])
        return {id_ for (id_,) in cursor.fetchall()}


def keep(ids: Collection[int]) -> None:
    """Lock these task queues, to which jobs come now. Stale: one of them is gone."""
    if len(locked_task_queues(ids)) < len(set(ids)):
        raise Stale(REMOVED)
    with connection.cursor() as cursor:
        cursor.execute(_USED, [list(ids)])


def _key(task: Task, requirement: TaskRequirement, queue_id: int | None, slot: Slot, set_id: int | None) -> TaskQueueKey:
    policy = DISPATCH_POLICIES.get(gdpconfig.value("dispatch", "DISPATCH_POLICY", vo=task.vo)) or DISPATCH_POLICIES[Panda.name]
    return TaskQueueKey(
        queue_id,
        task.vo,
        task.prod_source_label,
        task.work_queue_id or 0,
        task.gshare,
        task.resource_type,
        slot.core_count,
        slot.ram_mb,
        slot.disk_mb,
        slot.walltime_s,
        policy.cpu_class(cpu_time_of(slot.walltime_s, slot.core_count)),
        requirement.owner,
        requirement.owner_group,
        requirement.setup,
        set_id,
    )


def _made(keys: Iterable[TaskQueueKey]) -> dict[TaskQueueKey, int]:
    """The ids of these task queues of one task; those that are missing are made."""
    wanted = sorted(set(keys), key=TaskQueueKey.in_order)
    if not wanted:
        return {}
    known = _find(wanted)
    if missing := [key for key in wanted if key not in known]:
        TaskQueue.objects.bulk_create([TaskQueue(**key._asdict()) for key in missing], ignore_conflicts=True)
        known = _find(wanted)
        if len(known) < len(wanted):
            raise Stale(REMOVED)
    return known


def _find(wanted: Collection[TaskQueueKey]) -> dict[TaskQueueKey, int]:
    first = next(iter(wanted))
    values: dict[str, Any] = {
        "vo": first.vo,
        "owner": first.owner,
        "gshare": first.gshare,
        "queues": [key.computing_queue_id for key in wanted if key.computing_queue_id is not None],
        "sets": [key.requirement_set_id for key in wanted if key.computing_queue_id is None],
    }
    with connection.cursor() as cursor:
        cursor.execute(_FIND, values)
        found = {TaskQueueKey(*columns): (id_, is_old) for *columns, id_, is_old in cursor.fetchall()}
        known = {key: found[key] for key in wanted if key in found}
        if old := [id_ for id_, is_old in known.values() if is_old]:
            cursor.execute(_USED, [old])  # so that they are still there when the jobs are made
    return {key: id_ for key, (id_, _) in known.items()}
