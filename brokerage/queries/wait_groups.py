"""Groups of waiting tasks that something has happened to, and the tasks in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection
from django.db.models import Q

from broker_site.foundation.outside_data import OutsideDataError
from brokerage.models import TaskWait, WaitGroup
from brokerage.rules.decision.declare import POLICIES, Policy
from brokerage.rules.facts.ask import Ask
from brokerage.rules.placement.wait_cause import MORE_LEFT, WorldVersion
from brokerage.rules.world.stored_snapshot import BadSnapshot, TaskFacts


@dataclass(frozen=True, slots=True)
class AskTogether:
    """What the tasks of a group ask for, and of which policy."""

    group_id: int
    policy: Policy
    ask: Ask
    task_facts: TaskFacts


class TaskInGroup(NamedTuple):
    """A task that waits, and how many files are due for jobs."""

    task_id: int
    files: int


def any_waits() -> bool:
    """Whether any task waits for a place."""
    return TaskWait.objects.exists()


def groups_to_judge(world: WorldVersion, idle: Collection[str], again_s: float, most: int) -> list[WaitGroup]:
    """Groups for which the grid or the configuration changed, or somebody said "look now"; and those that may go to queues with
    `idle` slots, or of which more are left, which are judged every `again_s` seconds at most. First those judged longest ago.
    """
    more = Q(grid_revision=MORE_LEFT)
    due = Q(grid_revision__lt=world.grid) & ~more | Q(config_revision__lt=world.config) | more & _rested(world, again_s)
    if idle:
        due |= Q(queues__overlap=sorted(idle)) & _rested(world, again_s)
    return list(WaitGroup.objects.filter(due).order_by("judged_at", "id")[:most])


def groups_beside(idle_since: Mapping[str, datetime], most: int, but: Sequence[WaitGroup]) -> list[WaitGroup]:
    """Groups besides that may go to a queue at which a slot began to idle since they were judged, those judged longest ago first.

    `idle_since`: when the last slot of each queue began to idle.
    """
    if not idle_since:
        return []
    queues, since = list(idle_since), list(idle_since.values())
    return list(WaitGroup.objects.raw(_BESIDE, [queues, [group.id for group in but], queues, since, most]))


_BESIDE = """
SELECT g.* FROM brokerage_waitgroup g
WHERE g.queues && %s::varchar[] AND g.id <> ALL (%s::bigint[]) AND EXISTS (
    SELECT FROM unnest(%s::varchar[], %s::timestamptz[]) AS idle(queue, since)
    WHERE idle.queue = ANY (g.queues) AND g.judged_at < idle.since)
ORDER BY g.judged_at, g.id LIMIT %s
"""


def groups_touched(
    world: WorldVersion, moved: Collection[str], again_s: float, most: int, but: Sequence[WaitGroup]
) -> tuple[list[WaitGroup], bool]:
    """Groups besides that may go to queues or nuclei that `moved`, judged every `again_s` seconds at most; and whether some of
    them are left for later.
    """
    if not moved:
        return [], False
    touched = WaitGroup.objects.filter(queues__overlap=sorted(moved)).exclude(id__in=[group.id for group in but])
    found = list(touched.filter(_rested(world, again_s)).order_by("judged_at", "id")[: most + 1])
    return found[:most], len(found) > most or touched.exclude(_rested(world, again_s)).exists()


def _rested(world: WorldVersion, again_s: float) -> Q:
    return Q(judged_at__lte=world.at - timedelta(seconds=again_s))


def ask_together(group: WaitGroup) -> AskTogether | None:
    """What a group asks for; None where this release cannot read it, and its tasks wait until their time is over."""
    policy = POLICIES.get(group.policy)
    try:
        ask, facts = Ask.from_document(group.ask), TaskFacts.from_bytes(bytes(group.own))
    except (OutsideDataError, BadSnapshot):
        return None
    return AskTogether(group.id, policy, ask, facts) if policy is not None else None


def tasks_in(group_id: int, most: int) -> Sequence[TaskInGroup]:
    """The tasks of a group that wait, at most so many, of the highest priority first."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT t.id, coalesce((
                SELECT sum(d.n_files_to_be_used - d.n_files_used) FROM workqueues_dataset d
                WHERE d.task_id = t.id AND d.master_id IS NULL AND d.status = 'ready' AND d.n_files_to_be_used > d.n_files_used
            ), 0)::bigint
            FROM brokerage_taskwait w JOIN workqueues_task t ON t.id = w.task_id AND t.next_look_at = w.until
            WHERE w.group_id = %s AND t.next_look_at > now() AND t.ended_at IS NULL
            ORDER BY t.current_priority DESC, t.id LIMIT %s
            """,
            [group_id, most],
        )
        return [TaskInGroup(*row) for row in cursor.fetchall()]
