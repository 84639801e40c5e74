"""Why a queue gets little or no work: what the latest decisions about living tasks said of it, counted. Pure.

The inverse of `explain`, which is about one task. Not here: reading the decisions (`brokerage.queries.why_empty`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from broker_site.foundation.kernel.verdict import Kind
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.record import Record

EXAMPLES = 5
"""Tasks that are named for each criterion."""


@dataclass(frozen=True, slots=True)
class LatestDecision:
    """The latest decision about a task, with the rows of its table that stand for the queue (several for a unified queue).

    `policy`: as it is now, if there is still one of that name.
    """

    task_id: int
    decision_id: int
    record: Record
    rows: tuple[int, ...]
    policy: Policy | None = None

    def lasts(self, row: int) -> bool:
        """Whether who fails this criterion can never pass unless somebody changes something; as far as the record tells."""
        if self.policy is not None and self.policy.version == self.record.decision.version:
            return self.policy.criteria[row].lasts
        return self.record.kinds[row] == "persistent"


@dataclass(slots=True)
class Tally:
    """One criterion: how many decisions it was the first to skip the queue in, in how many it fails it at all, in how many
    nothing else does; with tasks of the first kind. `lasts`: no passing of time mends it, nor that something comes back.
    """

    criterion: str
    kind: Kind
    lasts: bool
    first: int = 0
    failed: int = 0
    alone: int = 0
    examples: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Load:
    """What is at the queue now. `pilots`: seen in the last minutes."""

    status: str
    waiting: int
    running: int
    pilots: int


@dataclass(frozen=True, slots=True)
class WhyEmpty:
    """What `decisions` latest decisions said of a queue. `chosen`: (task, decision) that took it; `absent`: it took no part in.

    `tallies`: the criteria by how often they were the first to skip it.
    """

    name: str
    verdict: str
    decisions: int
    chosen: tuple[tuple[int, int], ...]
    absent: int
    tallies: tuple[Tally, ...]

    def to_document(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self)


def why_empty(name: str, load: Load, latest_decisions: Iterable[LatestDecision]) -> WhyEmpty:
    """Count what the decisions say of the queue, and say it in one line."""
    tallies: dict[str, Tally] = {}
    chosen: list[tuple[int, int]] = []
    decisions = absent = 0
    for latest in latest_decisions:
        decisions += 1
        if not latest.rows:
            absent += 1
        elif any(latest.record.decision.first[row] < 0 for row in latest.rows):
            chosen.append((latest.task_id, latest.decision_id))
        else:
            _count(latest, tallies)
    ranked = tuple(sorted(tallies.values(), key=lambda tally: (-tally.first, -tally.failed, tally.criterion)))
    return WhyEmpty(name, verdict(load, decisions - absent, len(chosen), ranked), decisions, tuple(chosen), absent, ranked)


def _count(latest: LatestDecision, tallies: dict[str, Tally]) -> None:
    """Add what a decision said of the row that is nearest to passing; a label that several criteria share counts once."""
    failed = latest.record.decision.failed()[:, list(latest.rows)]
    nearest = int(np.argmin(failed.sum(axis=0)))
    failed_criteria = np.flatnonzero(failed[:, nearest]).tolist()
    labels = dict.fromkeys(f"-{latest.record.labels[i]}" for i in failed_criteria)
    first = {f"-{latest.record.labels[i]}": i for i in reversed(failed_criteria)}
    for place, label in enumerate(labels):
        row = first[label]
        tally = tallies.setdefault(label, Tally(label, latest.record.kinds[row], latest.lasts(row)))
        tally.failed += 1
        tally.alone += len(labels) == 1
        if place == 0:
            tally.first += 1
            if len(tally.examples) < EXAMPLES:
                tally.examples.append((latest.task_id, latest.decision_id))


def verdict(load: Load, decisions: int, chosen: int, tallies: Sequence[Tally]) -> str:
    """One line: what is there, and what keeps work away."""
    load_in_words = f"{_jobs(load.running)} {'runs' if load.running == 1 else 'run'} and {load.waiting:,} wait"
    if not load.running and not load.waiting:
        load_in_words = "Empty"
    return f"{load_in_words}: {_because(load, decisions, chosen, tallies)}."


def _because(load: Load, decisions: int, chosen: int, tallies: Sequence[Tally]) -> str:
    if load.waiting and not load.pilots:
        return "no pilot has asked for work in the last minutes"
    if load.status != "online":
        return f"the queue is {load.status}"
    if not decisions:
        return "no decision about a living task has looked at it"
    taken = f"{chosen:,} of {decisions:,} latest decisions took it"
    if not tallies:
        return taken
    top = tallies[0]
    return f"{taken}; {top.first:,} skipped it by {top.criterion}"


def _jobs(n: int) -> str:
    return "1 job" if n == 1 else f"{n:,} jobs"
