"""Why a pilot got nothing, told apart: nothing waits, nothing fits and what the closest lacks, limits, the pilot itself (X1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from brokerage.rules.dispatch.requirement import CONDITIONS, Misfit, Requirement, Resource, closest
from brokerage.rules.dispatch.waiting_list import WaitingList, WaitingQueue

Reason = Literal["no_job", "no_fit", "limits", "taken", "policy", "queue", "pilot_full"]
SENTENCES: dict[Reason, str] = {
    "no_job": "no job waits here",
    "no_fit": "jobs wait here, and none suits the pilot",
    "limits": "jobs that would suit are held back by limits",
    "taken": "the jobs that suited went to other pilots at this moment",
    "policy": "jobs that would suit wait for the dispatch policy that is to choose among them",
    "queue": "the queue hands nothing out now",
    "pilot_full": "the pilot holds as many jobs, or cores, as it may",
}
GOT_JOBS: Final = "job"


def sentence_of(outcome: str) -> str:
    """An outcome of an ask in words: a reason, or that it got jobs."""
    return "it got jobs" if outcome == GOT_JOBS else SENTENCES[cast("Reason", outcome)]


MOST_COMPARED = 500
"""Task queues among which the closest is looked for: share after share, in each those with the highest priority first."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """An ask in vain: the reason, and for `no_fit` the closest task queue with what the pilot lacks, for `limits` which ones.

    `wait_s`: after how long it may be worth asking again; 0: not known. `vo`: whose the task queue is, or one that is held.
    """

    reason: Reason
    task_queue: int = 0
    lacks: Sequence[Misfit] = ()
    limits: Sequence[str] = ()
    wait_s: float = 0.0
    note: str = ""
    vo: str = ""

    @property
    def sentence(self) -> str:
        """The whole in words."""
        told = SENTENCES[self.reason]
        if self.lacks:
            missing = "; ".join(f"{lack.attribute}: it needs {lack.needs}, the pilot has {lack.has}" for lack in self.lacks)
            told += f"; closest is task queue {self.task_queue}: {missing}"
        if self.limits:
            told += f": {'; '.join(self.limits)}"
        return f"{told}{': ' + self.note if self.note else ''}"

    def document(self) -> dict[str, Any]:
        """As pilots and pages get it."""
        return {
            "reason": self.reason,
            "text": self.sentence,
            "task_queue": self.task_queue or None,
            "lacks": [lack._asdict() for lack in self.lacks],
            "limits": list(self.limits),
            "wait_s": self.wait_s,
        }


def may_know(need: Requirement, resource: Resource) -> bool:
    """Whether a pilot may be told of such work: it is of its VO and, where it serves only some, of their owners and groups."""
    return CONDITIONS["vo"](need, resource) and CONDITIONS["owner"](need, resource)


def why_nothing(
    waiting: WaitingList, resource: Resource, held: Sequence[tuple[WaitingQueue, Sequence[str]]], *, closely: bool
) -> Nothing:
    """Why an ask got nothing of a list. `closely`: with the closest task queue.

    `held`: task queues that suit, each with the kinds of its jobs that are at a limit.
    """
    if held:
        first = held[0][0]
        return Nothing("limits", first.id, limits=sorted({kind for _, kinds in held for kind in kinds}), vo=first.unit.vo)
    rows = [row for row in waiting.rows if may_know(row.requirement, resource)]
    if not rows:
        return Nothing("no_job")
    if waiting.suits(resource):
        return Nothing("taken")
    if not closely:
        return Nothing("no_fit")
    ids: dict[Requirement, int] = {}
    for row in rows[:MOST_COMPARED]:
        ids.setdefault(row.requirement, row.id)
    found = closest(ids, resource)
    return Nothing("no_fit", ids[found[0]], found[1], vo=found[0].vo) if found else Nothing("no_fit")
