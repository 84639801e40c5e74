"""What task queues require, whose they are, and where their jobs may go: that never changes, but for the id of a queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections

from brokerage.rules.dispatch.requirement import Requirement, with_sets
from brokerage.rules.dispatch.waiting_list import Unit
from brokerage.rules.facts.cpu_classes import cpu_time_of

_FACTS = """
SELECT t.id, t.computing_queue_id, q.name, t.core_count, t.ram_mb, t.disk_mb, t.walltime_s, t.vo, t.cpu_time_s, t.owner,
    t.owner_group, t.setup, t.gshare, t.work_queue_id, t.prod_source_label, t.resource_type,
    ARRAY(SELECT v.attribute || E'\\x01' || v.value FROM brokerage_requirementvalue v
        WHERE v.requirement_set_id = t.requirement_set_id),
    CASE WHEN t.computing_queue_id IS NULL THEN ARRAY(
        SELECT p.computing_queue_id || E'\\x01' || c.name || E'\\x01' || p.own_datasets::int || E'\\x01' || p.storage
        FROM brokerage_requirementplace p JOIN brokerage_computingqueue c ON c.id = p.computing_queue_id
        WHERE p.requirement_set_id = t.requirement_set_id) END
FROM brokerage_taskqueue t LEFT JOIN brokerage_computingqueue q ON q.id = t.computing_queue_id WHERE t.id = ANY (%s)
"""


class OutputPlace(NamedTuple):
    """A storage endpoint, empty: any; and whether the computing queue may have datasets of its own."""

    storage: str = ""
    own_datasets: bool = True


class TaskQueueFacts(NamedTuple):
    """What never changes of a task queue. `places`: id of a computing queue -> where outputs go, where its jobs are open."""

    requirement: Requirement
    unit: Unit
    label: str
    queue_id: int | None
    places: Mapping[int, OutputPlace]
    resource_type: str = ""
    queue_names: Mapping[int, str] = {}
    """Of the computing queues to which its jobs may go, when this was read."""

    @property
    def queues(self) -> Collection[int]:
        """Ids of the computing queues to which its jobs may go."""
        return self.places if self.queue_id is None else (self.queue_id,)


def task_queue_facts(ids: Collection[int], using: str = DEFAULT_DB_ALIAS) -> dict[int, TaskQueueFacts]:
    """Those of these task queues that are there; one statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(_FACTS, [list(ids)])
        return {id_: _of_row(*columns) for id_, *columns in cursor.fetchall()}


_SEPARATOR = "\x01"


def _of_row(
    queue_id: int | None,
    queue: str | None,
    cores: int,
    ram: int,
    disk: int,
    walltime: int,
    vo: str,
    cpu_time: int,
    owner: str,
    group: str,
    setup: str,
    gshare: str,
    work_queue_id: int,
    label: str,
    resource_type: str,
    values: Iterable[str],
    places: Iterable[str] | None,
) -> TaskQueueFacts:
    sets: dict[str, set[str]] = defaultdict(set)
    for attribute, value in (text.split(_SEPARATOR, 1) for text in values):
        sets[attribute].add(value)
    of_queues: dict[int, OutputPlace] = {}
    names = {} if queue_id is None else {queue_id: queue or ""}
    for id_, name, own_datasets, storage in (text.split(_SEPARATOR, 3) for text in places or ()):
        sets["queues"].add(name)
        of_queues[int(id_)], names[int(id_)] = OutputPlace(storage, own_datasets == "1"), name
    # Jobs wait together by classes, and are compared with pilots by their times.
    needed = cpu_time_of(walltime, cores) or cpu_time
    plain = Requirement(queue or "", cores, ram, disk, walltime, vo, needed, owner, group, setup)
    requirement = with_sets(plain, sets)
    return TaskQueueFacts(requirement, Unit(vo, gshare, work_queue_id), label, queue_id, of_queues, resource_type, names)
