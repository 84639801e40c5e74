"""Where a job that waits for a pilot stands, and which asks passed it by (row X1, decision H9). Computed when it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from brokerage.rules.dispatch.queue_asks import told_has
from brokerage.rules.dispatch.requirement import Misfit, Requirement, Resource, misfits
from brokerage.rules.dispatch.waiting_list import Unit
from brokerage.rules.dispatch.why_nothing import GOT_JOBS, sentence_of


class WaitingTurn(NamedTuple):
    """A task queue with jobs at a computing queue: its unit, where that stands (least first), and its first job."""

    task_queue: int
    unit: Unit
    place: float
    priority: int
    job_id: int

    @property
    def turn(self) -> tuple[float, int, int]:
        """By shares, then the highest priority, then the oldest job."""
        return self.place, -self.priority, self.job_id

    @property
    def words(self) -> str:
        """What is served now of it: the priority of its first job, and its share."""
        return f"the first of them has the priority {self.priority}{f', share {self.unit.gshare}' if self.unit.gshare else ''}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the job's task queue stands at one computing queue, among those of its VO. `fault`: why there is no `policy`, and
    nothing is handed out.

    `ahead`: task queues there that are served before, None where chance decides; `share_place` of `shares` that have jobs there,
    from 1; `share`: empty for jobs of none. `other_vos` have jobs there too: VOs take turns, whatever stands before in each.
    """

    queue: str
    policy: str
    task_queues: int
    ahead: int | None
    share: str
    share_place: int
    shares: int
    other_vos: int = 0
    fault: str = ""


class Ask(NamedTuple):
    """An ask at one of the computing queues to which the job may go. `served`: the task queue that it got jobs of; `whose`: the
    reader may know the owners and groups of a private pilot.
    """

    at: datetime
    queue: str
    pilot_id: UUID
    resource: Resource
    outcome: str
    served: int | None = None
    limits: Sequence[str] = ()
    whose: bool = True


@dataclass(frozen=True, slots=True)
class PassedBy:
    """An ask that passed the job by: whether its task queue suited the pilot, what the pilot lacked, and in words why."""

    at: datetime
    queue: str
    pilot_id: UUID
    suited: bool
    lacks: tuple[Misfit, ...]
    why: str

    def to_document(self) -> dict[str, Any]:
        """As a part of that of the job."""
        lacks = [lack._asdict() for lack in self.lacks]
        return {**asdict(self), "at": self.at.isoformat(), "pilot_id": str(self.pilot_id), "lacks": lacks}


class SiteWait(NamedTuple):
    """What keeps a job from being submitted to a site: the reason, and in words."""

    site: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class JobStanding:
    """A job that waits. `ahead` of `waiting` jobs of its task queue go before it; `more`: there are more than were counted.
    `requires`: what all jobs of its task queue require, in words.

    `asks` came since it waits and are still known, `passed`: the newest of them; `lacked`: attribute -> asks that lacked it.
    """

    ready: bool
    task_queue: int
    requires: str
    ahead: int
    waiting: int
    more: bool
    places: tuple[Place, ...]
    asks: int
    suited: int
    lacked: Mapping[str, int]
    passed: tuple[PassedBy, ...]
    submission: tuple[SiteWait, ...] | None = None
    """What keeps it from being submitted, by site; None: it goes to pilots that ask."""

    def to_document(self) -> dict[str, Any]:
        """As REST and the page's data have it."""
        submission = None if self.submission is None else [wait._asdict() for wait in self.submission]
        passed = [one.to_document() for one in self.passed]
        return {**asdict(self), "lacked": dict(self.lacked), "passed": passed, "submission": submission}


def place_at(
    queue: str, policy: str, by_chance: bool, turns: Sequence[WaitingTurn], task_queue: int, work_queue: str = ""
) -> Place | None:
    """Where a task queue stands among those of its VO with jobs at a computing queue; None: it has no job there now.

    `work_queue`: the name of its own, told where it has no share.
    """
    mine = next((turn for turn in turns if turn.task_queue == task_queue), None)
    if mine is None:
        return None
    of_vo = [turn for turn in turns if turn.unit.vo == mine.unit.vo]
    places = sorted({turn.place for turn in of_vo})
    ahead = None if by_chance else sum(turn.turn < mine.turn for turn in of_vo)
    other_vos = len({turn.unit.vo for turn in turns}) - 1
    share = mine.unit.gshare or (f"work queue {work_queue}" if work_queue else "")
    return Place(queue, policy, len(of_vo), ahead, share, places.index(mine.place) + 1, len(places), other_vos)


def passed_by(need: Requirement, task_queue: int, ask: Ask, turns: Mapping[int, WaitingTurn]) -> PassedBy:
    """Why an ask did not take a job with these needs; `turns`: task queues that have jobs there now."""
    found = misfits(need, ask.resource)
    lacks = tuple(lack._replace(has=told_has(lack.attribute, lack.has, ask.whose)) for lack in found)
    if lacks:
        why = "; ".join(f"{lack.attribute}: the job needs {lack.needs}, the pilot had {lack.has}" for lack in lacks)
    elif ask.outcome != GOT_JOBS:
        why = f"{sentence_of(ask.outcome)}{': ' + '; '.join(ask.limits) if ask.limits else ''}"
    elif ask.served == task_queue:
        why = "another job of the same task queue was first"
    elif ask.served:
        why = f"other jobs were served first{f': {turns[ask.served].words}' if ask.served in turns else ''}"
    else:
        why = "the pilot got jobs of another task queue"
    return PassedBy(ask.at, ask.queue, ask.pilot_id, not lacks, lacks, why)


def lacked_by(passed: Sequence[PassedBy]) -> dict[str, int]:
    """How many of the asks lacked each attribute, the most frequent first."""
    return dict(Counter(lack.attribute for one in passed for lack in one.lacks).most_common())
