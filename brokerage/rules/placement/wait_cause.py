"""Why a task waits for a place, as data: tasks that ask for the same wait together, and are looked at together (decision B18).

Not here: where causes are kept (`brokerage.ledger.waits`) and what ends a wait (`brokerage.agents.free`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from brokerage.rules.decision.assembly import TaskDecision
from brokerage.rules.decision.pipeline import able_in_time

OF_ONE_TASK = ("task_id", "waits_s", "usage", "task_priority", "station_sites")
"""Fields of an ask by which tasks that ask for the same may differ; what a user has on the grid, and where
stations are offered, is the same for all.
"""

LOOK_NOW, MORE_LEFT = -1, -2
"""In place of the revision by which a group was judged: somebody says "look now"; more of its tasks found a place than are let go
at a time.
"""


@dataclass(frozen=True, slots=True)
class WorldVersion:
    """Which world a decision saw: when it was read, the revisions of grid and configuration then, and when the root of a storage
    had last come or gone.
    """

    at: datetime
    grid: int
    config: int
    roots_at: datetime | None


@dataclass(frozen=True, slots=True)
class WaitCause:
    """What a task waits for: `key` is the same for tasks that ask for the same.

    `criteria`: those by which candidates failed that only time, a limit or somebody's hand keeps away. `queues`: candidates that
    fail nothing else; of a choice of nuclei their names, and those of their queues that only time keeps from the jobs.
    """

    key: str
    criteria: tuple[str, ...]
    queues: tuple[str, ...]


def cause_of(decision: TaskDecision[Any]) -> WaitCause:
    """The cause of a wait by a decision that found no place."""
    policy, ask, columns, _ = decision.inputs
    document = ask.to_document()
    for name in OF_ONE_TASK:
        document.pop(name, None)
    for dataset in document["chunk"]["datasets"]:
        dataset["name"] = ""  # where the input is tells, not what it is called
    places = sorted({(replica["storage"], replica["files"]) for replica in decision.task_facts.replicas})
    asked = json.dumps([policy.name, document, places, _ended(decision)], sort_keys=True, default=str)
    failed = decision.decision.failed()[: len(policy.judged)]
    passing = [number for number, criterion in enumerate(policy.judged) if not criterion.lasts]
    lasting = [number for number, criterion in enumerate(policy.judged) if criterion.lasts]
    able = ~failed[lasting].any(axis=0)
    names = getattr(columns, "own_names", columns.name)
    candidates = {str(names[row]) for row in np.flatnonzero(able).tolist()}
    return WaitCause(
        hashlib.sha256(asked.encode()).hexdigest(),
        tuple(sorted({policy.judged[number].label for number in passing if (failed[number] & able).any()})),
        tuple(sorted(candidates | _queues_of_nuclei(decision, candidates))),
    )


def _queues_of_nuclei(decision: TaskDecision[Any], nuclei: Collection[str]) -> set[str]:
    """Queues by which one of these nuclei, none of whose queues could run the jobs, may be able to another time."""
    if decision.hint is None:
        return set()
    able_now, queues = decision.task_facts.able_queues or {}, decision.hint.columns
    names, sites = queues.own_names, queues.source_site.tolist()
    rows = np.flatnonzero(able_in_time(*decision.hint)).tolist()
    return {names[row] for row in rows if sites[row] in nuclei and not able_now.get(sites[row])}


def _ended(decision: TaskDecision[Any]) -> object:
    """How jobs of the task ended lately, which keeps it from queues: of its own."""
    return [decision.inputs.ask.task_id, list(decision.task_facts.ended)] if decision.task_facts.ended else []
