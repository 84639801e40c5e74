"""What a change of shares or work queues would have meant: for the work of the last hour, for the verdicts of the throttler in
it, and for where the tasks of the last day belong. Only read, within a time (decision L1).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from django.db.models.fields.json import KeyTextTransform

from broker_site.foundation.gdpconfig.changesets import Place, Step, columns_of
from brokerage.queries.series import series
from brokerage.rules.facts.series import Asked
from brokerage.states import JOB
from workqueues.models import Task, ThrottleVerdict, WorkQueue
from workqueues.queries.shares import PATTERNS, Tree, trees
from workqueues.queries.steered_rows import (
    SHARE,
    WORK_QUEUE,
    queue_place,
    queue_rows,
    queues_as_texts,
    share_row,
    shares_as_texts,
)
from workqueues.queries.work_queues import WorkQueues
from workqueues.rules.shares.mapping import leaf_of
from workqueues.rules.shares.trial import Moment, ShareOutcome, TreeTrial, tree_trial
from workqueues.rules.throttle.again import StoredVerdict, judged_again
from workqueues.rules.throttle.throttler import Counts
from workqueues.rules.work_queues.task_attributes import ATTRIBUTES

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MOST_TASKS, MOST_VERDICTS, MOST_TOLD = 1000, 500, 20
LONGEST_S = 0.1
"""Time after which no further task is looked at."""
ROWS = {SHARE: shares_as_texts, WORK_QUEUE: queues_as_texts}
RUNNING, QUEUED = tuple(JOB.begun - JOB.delivering), tuple(JOB.waiting | JOB.starting)


@dataclass(frozen=True, slots=True)
class Changed:
    """How many went from one thing to another."""

    what: str
    before: str
    after: str
    n: int


@dataclass(frozen=True, slots=True)
class SteeringTrial:
    """By VO what its tree would have meant; the verdicts and tasks that were looked at, and those that come out otherwise.

    `kept`: tasks of the last day; fewer may have been looked at.
    """

    trees: Mapping[str, TreeTrial]
    verdicts: int
    verdicts_changed: Sequence[Changed]
    tasks: int
    kept: int
    tasks_changed: Sequence[Changed]

    @property
    def sentence(self) -> str:
        """What it says, and on how much that rests."""
        said = []
        moments = sum(trial.moments for trial in self.trees.values())
        if self.trees and not moments:
            said.append("no job ran or waited in the last hour, so nothing is known of order and entitlements")
        elif self.trees:
            reordered = sum(trial.reordered for trial in self.trees.values())
            said.append(f"in {reordered} of {moments} moments of the last hour shares would have been served in another order")
        n = sum(change.n for change in self.verdicts_changed)
        said.append(f"{n} of {self.verdicts} verdicts of the throttler in the last hour would be others")
        n = sum(change.n for change in self.tasks_changed)
        more = f" ({self.kept - self.tasks} further ones were not looked at)" * (self.kept > self.tasks)
        said.append(f"{n} of {self.tasks} tasks of the last day would belong elsewhere{more}")
        text = "; ".join(said)
        return f"{text[:1].upper()}{text[1:]}."

    def outcomes(self) -> Iterable[tuple[str, ShareOutcome]]:
        """VO and share of all for which something differs."""
        return ((vo, share) for vo, trial in self.trees.items() for share in trial.shares if share.differs)


def steering_trial(steps: Sequence[Step], now: datetime) -> SteeringTrial | None:
    """What the steps of a preview would have meant; None where none of them is about shares or work queues."""
    changed = [step for step in steps if step.differs and step.place.kind in (SHARE, WORK_QUEUE)]
    if not changed:
        return None
    shares, queues = _states(SHARE, changed), _states(WORK_QUEUE, changed)
    vos = {step.place.vo for step in changed if step.place.kind == SHARE}
    forests = [trees(share_row(place, text) for place, text in _in_order(side) if place.vo in vos) for side in shares]
    before, after = forests
    of_queues = any(step.place.kind == WORK_QUEUE for step in changed)
    verdicts, verdicts_changed = _verdicts(changed, now)
    mappings = [WorkQueues.of(_active(side)) for side in queues]
    tasks, kept, tasks_changed = _tasks(forests, mappings, vos, now, of_queues)
    trials = {vo: tree_trial(_nodes(before, vo), _nodes(after, vo), _moments(vo, now)) for vo in sorted(vos)}
    return SteeringTrial(trials, verdicts, verdicts_changed, tasks, kept, tasks_changed)


def _states(kind: str, steps: Sequence[Step]) -> tuple[dict[Place, str], dict[Place, str]]:
    """All rows of a kind before and after."""
    before = dict(ROWS[kind]())
    after = dict(before)
    for step in steps:
        if step.place.kind == kind and step.after is None:
            after.pop(step.place, None)
        elif step.place.kind == kind and step.after is not None:
            after[step.place] = step.after
    return before, after


def _in_order(rows: Mapping[Place, str]) -> list[tuple[Place, str]]:
    """In the order in which the database gives shares."""
    return sorted(rows.items(), key=lambda row: (share_row(*row).position, row[0].name))


def _active(rows: Mapping[Place, str]) -> list[WorkQueue]:
    return [row for row in queue_rows(rows).values() if row.status == "active"]


def _nodes(forest: Mapping[str, Tree], vo: str) -> Sequence[Any]:
    return forest[vo].nodes if vo in forest else ()


def _moments(vo: str, now: datetime) -> list[Moment]:
    """What ran and waited by share every five minutes of the last hour."""
    found = series(Asked((*RUNNING, *QUEUED), window_s=3600, by="share"), now, {vo})
    moments = []
    for at in range(len(found.times)):
        sums: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for line in found.lines:
            sums[line.what not in RUNNING][line.of] += line.points[at]
        running, queued = ({name: float(n) for name, n in counted.items()} for counted in sums)
        moments.append(Moment(running, queued))
    return moments


def _verdicts(steps: Sequence[Step], now: datetime) -> tuple[int, list[Changed]]:
    """Verdicts of the last hour on units that would be throttled and were not, or the other way round."""
    flips = {step.place: flip for step in steps if (flip := _flip(step)) is not None}
    rows = list(ThrottleVerdict.objects.filter(last_at__gte=now - HOUR).order_by("-last_at")[:MOST_VERDICTS])
    queues = {row.id: row for row in WorkQueue.objects.all()} if any(place.kind == WORK_QUEUE for place in flips) else {}
    changed: Counter[tuple[str, str, str]] = Counter()
    for row in rows if flips else ():
        unthrottled = next((flip for place, flip in flips.items() if _is_of(row, place, queues)), None)
        if unthrottled is None:
            continue
        again = judged_again(_stored(row), unthrottled=unthrottled)
        if (again.decision, again.rule) != (row.decision, row.rule):
            unit = f"{row.unit} {row.resource_type}".strip()
            changed[unit, f"{row.decision} ({row.rule})", f"{again.decision} ({again.rule})"] += 1
    return len(rows), [Changed(*key, n) for key, n in changed.most_common(MOST_TOLD)]


def _flip(step: Step) -> bool | None:
    """Whether the unit would never be throttled; None where that stays as it is."""
    if step.before is None or step.after is None:
        return None
    before, after = columns_of(step.before), columns_of(step.after)
    if step.place.kind == SHARE:
        return not after["throttled"] if before["throttled"] != after["throttled"] else None
    was, is_ = before["queue_share"] is None, after["queue_share"] is None
    return is_ if was != is_ else None


def _is_of(row: ThrottleVerdict, place: Place, queues: Mapping[int, WorkQueue]) -> bool:
    if place.kind == SHARE:
        return not row.work_queue_id and (row.vo, row.unit) == (place.vo, place.name)
    return row.work_queue_id in queues and queue_place(queues[row.work_queue_id]) == place


def _stored(row: ThrottleVerdict) -> StoredVerdict:
    counts = Counts(**{field.name: getattr(row, field.name) for field in fields(Counts) if field.default == 0})
    return StoredVerdict(row.decision, row.rule, row.resource_type, counts, row.ratio, row.limits, row.practice)


def _tasks(
    forests: Sequence[Mapping[str, Tree]], queues: Sequence[WorkQueues], vos: set[str], now: datetime, of_queues: bool
) -> tuple[int, int, list[Changed]]:
    """The newest tasks of the last day: how many were looked at, how many there are, and which would belong elsewhere."""
    recent = Task.objects.all() if of_queues else Task.objects.filter(vo__in=vos)
    newest = recent.order_by("-id").values_list("id", "creation_date")[: MOST_TASKS + 1]
    ids = [id_ for id_, at in newest if at >= now - DAY]
    named = {
        "named_share": KeyTextTransform("gshare", "params__task_params"),
        "named_queue": KeyTextTransform("workQueueName", "params__task_params"),
    }
    columns = sorted({*ATTRIBUTES.values(), *PATTERNS})
    ends, looked = time.monotonic() + LONGEST_S, 0
    changed: Counter[tuple[str, str, str]] = Counter()
    for row in Task.objects.filter(id__in=ids[:MOST_TASKS]).order_by("-id").values(*columns, **named).iterator(200):
        if time.monotonic() >= ends:
            break
        looked += 1
        if row["vo"] in vos and not row["named_share"]:
            _count(changed, "share", *(_leaf(forest.get(row["vo"]), row) for forest in forests))
        if of_queues and not row["named_queue"]:
            _count(changed, "work queue", *(found.mapped(row).queue or "none" for found in queues))
    return looked, len(ids), [Changed(*key, n) for key, n in changed.most_common(MOST_TOLD)]


def _count(changed: Counter[tuple[str, str, str]], what: str, before: str, after: str) -> None:
    if before != after:
        changed[what, before, after] += 1


def _leaf(tree: Tree | None, row: Mapping[str, Any]) -> str:
    return leaf_of(tree.leaves, row) if tree else "none"
